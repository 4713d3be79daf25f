"""Organizations, tokens and the audit log."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .words import ApprovalStatus, Model, Role


class Organization(TypedDict):
    """A hospital, or a recipient of releases."""

    id: str
    name: str
    display_name: str | None
    created_at: str
    disabled_at: str | None


class _Token(TypedDict):
    id: str
    organization: str
    organization_id: str
    role: Role
    label: str | None
    oidc_subject: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class Token(_Token, total=False):
    """A token without its secret; `enrolment_expires_at` until its enrolment code is redeemed."""

    enrolment_expires_at: str | None


class _NewToken(TypedDict, total=False):
    token: str
    enrolment_code: str


class NewToken(Token, _NewToken):
    """A token with its secret, which is returned only when the token is created.

    Where the service has `security.enrolment`, it has an `enrolment_code` in place of `token`: the
    organization passes it to `redeem_enrolment` and gets the secret.
    """


class Policy(TypedDict, total=False):
    """The floor of a holder's jobs, releases and grants; what is absent is not restricted."""

    models: list[Model]
    k_min: int
    l_min: int
    c_max: float
    suppression_max: float
    quasi_identifiers: list[str]
    sensitive_values: dict[str, Literal["all"] | list[str]]
    recipients: list[str]
    require_approval: bool


class DecidedBy(TypedDict):
    """The token that approved or rejected a release."""

    token_id: str
    label: str | None


class Approval(TypedDict, total=False):
    """Whether a second person lets a release leave; `by` and `reason` are for its organization."""

    status: ApprovalStatus
    by: DecidedBy
    at: str
    reason: str


class DecidedRelease(Approval, total=False):
    """A decision about a release."""

    release_id: str


class ListedApproval(Approval, total=False):
    """A release that waits for an approval, or was decided."""

    release_id: str
    name: str | None
    dataset_id: str
    requested_at: str


class AuditEvent(TypedDict):
    """An action in the organization."""

    id: str
    seq: int
    at: str
    action: str
    subject: str | None
    token_id: str | None
    token_label: str | None
    oidc_subject: str | None
    address: str | None
    outcome: Literal["done", "refused"]
    detail: dict[str, Any]
    hash: str
    previous_hash: str
