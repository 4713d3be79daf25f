"""Publications and their editions."""

from __future__ import annotations

from typing import Any, TypedDict

from .problems import Problem, Warning
from .releases import Recipient
from .words import EditionStatus, Trigger


class PublicationRecipient(TypedDict, total=False):
    """An organization that gets the next editions."""

    recipient: Recipient
    purpose: str
    expires_at: str | None


class Publication(TypedDict, total=False):
    """A publication; a recipient has its id, name, holder and time alone."""

    id: str
    name: str
    holder: str
    dataset_id: str
    job: dict[str, Any]
    recipients: list[PublicationRecipient]
    trigger: Trigger
    paused: bool
    created_at: str
    warnings: list[Warning]


class Edition(TypedDict, total=False):
    """An edition; a recipient has its number, release, rows, SHA-256, time and whether it is a base."""

    number: int
    status: EditionStatus
    submissions: list[str]
    job_id: str
    release_id: str | None
    rows: int | None
    held_back_rows: int | None
    is_base: bool | None
    sha256: str | None
    created_at: str
    published_at: str | None
    withdrawn_at: str
    error: Problem


class PublicationManifest(TypedDict):
    """The published editions that may be read."""

    publication_id: str
    editions: list[Edition]
