"""Organizations and tokens (role `admin`), and the audit log (role `auditor`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import cast

from ._resource import Resource, timestamp
from ._transport import path, without_none
from .types import AuditEvent, NewToken, Organization, Role, Token


class Admin(Resource):
    """Calls for operators and auditors."""

    def create_organization(self, name: str, display_name: str | None = None) -> Organization:
        """Creates an organization; `name` is a unique slug such as `st-anna`. Role: admin."""
        fields = without_none({"name": name, "display_name": display_name})
        return cast(Organization, self._transport.post(path("organizations"), fields))

    def organizations(self, *, page_size: int | None = None) -> Iterator[Organization]:
        """Yields all organizations. Role: admin."""
        return self._transport.pages(path("organizations"), page_size)

    def create_token(
        self,
        organization: str,
        role: Role,
        *,
        label: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> NewToken:
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
        return cast(NewToken, self._transport.post(path("tokens"), fields))

    def tokens(self, *, page_size: int | None = None) -> Iterator[Token]:
        """Yields all tokens, without their secrets. Role: admin."""
        return self._transport.pages(path("tokens"), page_size)

    def revoke_token(self, token_id: str) -> None:
        """Revokes a token immediately. Role: admin."""
        self._transport.delete(path("tokens", token_id))

    def audit(self, *, page_size: int | None = None) -> Iterator[AuditEvent]:
        """Yields the audit events of the token's organization, newest first. Role: auditor.

        The generator continues to the first event; stop iterating when you have enough.
        """
        return self._transport.pages(path("audit"), page_size)
