"""Organizations and tokens (role `admin`), and the audit log (roles `auditor` and `officer`)."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from ._operations import Operation, Pages, Request, patch, path, post, without_none
from .types import AuditEvent, NewToken, Organization, Role, Token


def create_organization(name: str, display_name: str | None = None) -> Operation[Organization]:
    """Creates an organization; `name` is a unique slug such as `st-anna`. Role: admin."""
    fields = without_none({"name": name, "display_name": display_name})
    answer = yield post(path("organizations"), fields)
    return cast(Organization, answer)


def organizations(*, page_size: int | None = None) -> Pages[Organization]:
    """Yields all organizations. Role: admin."""
    return Pages(path("organizations"), page_size, lambda each: cast(Organization, each))


def disable_organization(organization_id: str) -> Operation[Organization]:
    """Refuses the tokens and people of an organization until it is enabled. Role: admin."""
    answer = yield patch(path("organizations", organization_id), {"disabled": True})
    return cast(Organization, answer)


def enable_organization(organization_id: str) -> Operation[Organization]:
    """Lets the tokens and people of an organization act again. Role: admin."""
    answer = yield patch(path("organizations", organization_id), {"disabled": False})
    return cast(Organization, answer)


def create_token(
    organization: str,
    role: Role,
    *,
    label: str | None = None,
    expires_at: datetime | str | None = None,
) -> Operation[NewToken]:
    """Creates a token for an organization, given by its slug or id. Role: admin.

    Keep `["token"]` of the result: the service stores only a hash of it and cannot return it
    again.
    """
    fields = without_none(
        {
            "organization": organization,
            "role": role,
            "label": label,
            "expires_at": timestamp(expires_at),
        }
    )
    answer = yield post(path("tokens"), fields)
    return cast(NewToken, answer)


def tokens(*, page_size: int | None = None) -> Pages[Token]:
    """Yields all tokens, without their secrets. Role: admin."""
    return Pages(path("tokens"), page_size, lambda each: cast(Token, each))


def own_tokens(*, page_size: int | None = None) -> Pages[Token]:
    """Yields all tokens of the token's organization, without their secrets. Role: holder, officer, auditor."""
    return Pages(
        path("organization", "tokens"), page_size, lambda each: cast(Token, each)
    )


def redeem_enrolment(code: str) -> Operation[NewToken]:
    """Redeems an enrolment code, once; `["token"]` of the result is the secret. Needs no token."""
    answer = yield post(path("enrolments"), {"code": code})
    return cast(NewToken, answer)


def revoke_token(token_id: str) -> Operation[None]:
    """Revokes a token immediately. Role: admin."""
    yield Request("DELETE", path("tokens", token_id))


def audit(
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    action: str | None = None,
    actor: str | None = None,
    page_size: int | None = None,
) -> Pages[AuditEvent]:
    """Yields the audit events of the token's organization, newest first. Role: auditor, officer.

    Only those from `start` on and before `end`, of an `action` such as `release.fetched`, and with
    the token of the id `actor`, where these are given. The iterator continues to the first event;
    stop iterating when you have enough.
    """
    params = without_none(
        {"from": timestamp(start), "to": timestamp(end), "action": action, "actor": actor}
    )
    return Pages(path("audit"), page_size, lambda each: cast(AuditEvent, each), params)


def timestamp(value: datetime | str | None) -> str | None:
    """Returns a point in time as RFC 3339; raises `ValueError` if it has no time zone."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError("the time has no time zone; add one, as in datetime.now(timezone.utc)")
    return value.isoformat()
