"""Organizations, tokens and the audit log."""

from __future__ import annotations

from typing import Any, TypedDict

from .words import Role


class Organization(TypedDict):
    """A hospital, or a recipient of releases."""

    id: str
    name: str
    display_name: str | None
    created_at: str


class Token(TypedDict):
    """A token without its secret."""

    id: str
    organization: str
    organization_id: str
    role: Role
    label: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class NewToken(Token):
    """A token with its secret, which is returned only when the token is created."""

    token: str


class AuditEvent(TypedDict):
    """An action in the auditor's organization."""

    id: str
    at: str
    action: str
    subject: str | None
    token_id: str | None
    detail: dict[str, Any]
