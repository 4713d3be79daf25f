"""Publications: a job that repeats for new rows (roles `holder` and `recipient`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ._frames import require_pandas
from ._operations import (
    Chunks,
    Operation,
    Pages,
    Request,
    Work,
    delete,
    get,
    patch,
    post,
    without_none,
)
from ._operations import path as at
from ._released import frame_from_csv
from ._releases import release, to_file
from .types import Edition, EditionLabels, Format, Publication, PublicationManifest, Trigger

if TYPE_CHECKING:
    import pandas as pd


def create_publication(
    name: str,
    dataset_id: str,
    job: Mapping[str, Any],
    *,
    recipients: Sequence[Mapping[str, Any]] = (),
    trigger: Trigger = "submission",
) -> Operation[Publication]:
    """Makes a publication: each edition has the rows that no edition has. Role: holder.

    `job` is as for `create_job`, with single values. A recipient is `{"recipient": name,
    "purpose": text}`, with `expires_at` where its access ends. With the trigger `submission` each
    submission is published; with `manual` each call of `publish_edition`.
    """
    body = {
        "name": name,
        "dataset_id": dataset_id,
        "job": dict(job),
        "recipients": [dict(recipient) for recipient in recipients],
        "trigger": trigger,
    }
    answer = yield post(at("publications"), body)
    return cast(Publication, answer)


def publications(*, page_size: int | None = None) -> Pages[Publication]:
    """Yields the publications of the organization (holder) or for it (recipient), without jobs."""
    return Pages(at("publications"), page_size, lambda item: cast(Publication, item))


def publication(publication_id: str) -> Operation[Publication]:
    """Returns a publication. Roles: holder, recipient."""
    answer = yield get(at("publications", publication_id))
    return cast(Publication, answer)


def change_publication(
    publication_id: str,
    *,
    paused: bool | None = None,
    recipients: Sequence[Mapping[str, Any]] | None = None,
) -> Operation[Publication]:
    """Pauses a publication or goes on, and replaces its recipients. Role: holder."""
    listed = None if recipients is None else [dict(recipient) for recipient in recipients]
    body = without_none({"paused": paused, "recipients": listed})
    answer = yield patch(at("publications", publication_id), body)
    return cast(Publication, answer)


def delete_publication(publication_id: str) -> Operation[None]:
    """Deletes a publication; its editions stay. Role: holder."""
    yield delete(at("publications", publication_id))


def publish_edition(publication_id: str) -> Operation[Edition]:
    """Queues an edition of the rows that no edition has. Role: holder.

    Raises `Conflict` where there are none, or where an edition is under way.
    """
    answer = yield post(at("publications", publication_id, "editions"), {})
    return cast(Edition, answer)


def editions(
    publication_id: str, *, after: int = 0, wait: int = 0
) -> Operation[list[Edition]]:
    """Returns the editions after number `after`, oldest first. Roles: holder, recipient.

    With `wait`, at most 30 seconds, the answer comes as soon as there is one. A recipient gets the
    published editions that it may read.
    """
    found: list[Edition] = []
    cursor: str | None = None
    while True:
        page = yield get(
            at("publications", publication_id, "editions"),
            **without_none({"after": after, "wait": wait or None, "cursor": cursor}),
        )
        found.extend(page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def publication_manifest(publication_id: str) -> Operation[PublicationManifest]:
    """Returns the published editions with the SHA-256 of each. Roles: holder, recipient."""
    answer = yield get(at("publications", publication_id, "manifest"))
    return cast(PublicationManifest, answer)


def download_publication(
    publication_id: str,
    path: str | os.PathLike[str],
    *,
    editions: EditionLabels = "as_released",
    format: Format = "csv",
) -> Operation[Path]:
    """Writes all published editions as one table to a file. Roles: holder, recipient.

    Its first column is `edition`. `editions="common"` brings labels to the finest ones that cover
    those of all editions, so that one query fits the whole.
    """
    return (yield from to_file(path, lambda out: _fetch(publication_id, out, editions, format)))


def publication_frame(
    publication_id: str, *, editions: EditionLabels = "common"
) -> Operation[pd.DataFrame]:
    """Returns all published editions as one DataFrame; needs pandas. Roles: holder, recipient.

    Its cells are as in `release_frame`, by the codebook of the latest edition.
    """
    require_pandas()
    with tempfile.TemporaryFile() as file:
        yield from _fetch(publication_id, file, editions, "csv")
        file.seek(0)
        published = (yield from publication_manifest(publication_id))["editions"]
        latest = yield from release(str(published[-1]["release_id"]))
        frame: pd.DataFrame = yield Work(lambda: frame_from_csv(file, latest.get("codebook")))
        return frame


def _fetch(
    publication_id: str, out: IO[bytes], editions: EditionLabels, format: Format
) -> Operation[None]:
    def accept(chunk: bytes) -> None:
        out.write(chunk)

    yield Request(
        "GET",
        at("publications", publication_id, "data"),
        params={"editions": editions, "format": format},
        receive=Chunks(accept),
    )
