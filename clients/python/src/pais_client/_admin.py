"""Organizations and tokens (role `admin`), and the audit log (role `auditor`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import cast

from ._resource import Resource, timestamp
from ._transport import only_given, path
from .types import AuditEvent, NewToken, Organization, Role, Token


class Admin(Resource):
    """What operators and auditors do."""

    def create_organization(self, name: str, display_name: str | None = None) -> Organization:
        """Makes an organization; `name` is a unique slug such as `st-anna`. Role: admin."""
        fields = only_given({"name": name, "display_name": display_name})
        return cast(Organization, self._transport.post(path("organizations"), fields))

    def organizations(self, *, page_size: int | None = None) -> Iterator[Organization]:
        """All organizations. Role: admin."""
        return self._transport.pages(path("organizations"), page_size)

    def create_token(
        self,
        organization: str,
        role: Role,
        *,
        label: str | None = None,
        expires_at: datetime | str | None = None,
    ) -> NewToken:
        """Makes a token of an organization, named by its slug or id. Role: admin.

        Keep `["token"]` of the answer: the service stores only a hash of it and never tells it
        again.
        """
        fields = only_given(
            {
                "organization": organization,
                "role": role,
                "label": label,
                "expires_at": timestamp(expires_at),
            }
        )
        return cast(NewToken, self._transport.post(path("tokens"), fields))

    def tokens(self, *, page_size: int | None = None) -> Iterator[Token]:
        """All tokens, without their secrets. Role: admin."""
        return self._transport.pages(path("tokens"), page_size)

    def revoke_token(self, token_id: str) -> None:
        """Makes a token useless at once. Role: admin."""
        self._transport.delete(path("tokens", token_id))

    def audit(self, *, page_size: int | None = None) -> Iterator[AuditEvent]:
        """The events of the token's own organization, newest first. Role: auditor.

        The generator goes back to the first event; stop iterating where enough is seen.
        """
        return self._transport.pages(path("audit"), page_size)
