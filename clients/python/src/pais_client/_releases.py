"""Releases and grants (roles `holder` and `recipient`)."""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ._frames import frame_from_csv, frame_from_parquet, require_pandas, require_pyarrow
from ._resource import Resource, timestamp
from ._transport import path, translate_errors, without_none
from .errors import IntegrityError
from .types import Document, Format, Grant, Release

if TYPE_CHECKING:
    import pandas as pd


class Releases(Resource):
    """Calls for anonymized tables and the grants to fetch them."""

    def create_release(
        self,
        job_id: str,
        *,
        step: int | None = None,
        name: str | None = None,
        **combination: float,
    ) -> Release:
        """Releases the table of a job after `step`, by default the last step. Role: holder.

        For a sweep, `l=`, `k=` and `c=` select the combination. Raises `Conflict` for a job that
        has not succeeded or whose dataset was deleted.
        """
        fields = without_none({"job_id": job_id, "step": step, "name": name, **combination})
        return cast(Release, self._transport.post(path("releases"), fields))

    def releases(self, *, page_size: int | None = None) -> Iterator[Release]:
        """Yields the releases of the organization (holder) or granted to it (recipient)."""
        return self._transport.pages(path("releases"), page_size)

    def release(self, release_id: str) -> Release:
        """Returns a release: tables, privacy model, cut, verification. Roles: holder, recipient."""
        return cast(Release, self._transport.get(path("releases", release_id)))

    def report(self, release_id: str) -> Document:
        """Returns the utility and risk measures of a release. Roles: holder, recipient."""
        return cast(Document, self._transport.get(path("releases", release_id, "report")))

    def download(
        self,
        release_id: str,
        path: str | os.PathLike[str],
        *,
        format: Format = "csv",
        table: str | None = None,
    ) -> Path:
        """Writes a table of a release to a file and returns its path. Roles: holder, recipient.

        The table is streamed. The SHA-256 of CSV is compared with the release's; raises
        `IntegrityError` if it differs. The file is created, or an older one replaced, only when
        the download is complete. An anatomized release has several tables: `table` is `qit`, or
        `st_` followed by a column's name.
        """
        target = Path(path)
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        try:
            with part.open("xb") as file:
                self._fetch(release_id, file, format, table)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return target

    def release_frame(
        self, release_id: str, *, format: Format = "csv", table: str | None = None
    ) -> pd.DataFrame:
        """Returns a table of a release as a DataFrame; needs pandas. Roles: holder, recipient.

        Generalized cells are text: a label of the taxonomy, or an interval such as `[30,60)`.
        Numbers that were not generalized are numbers. Only empty cells become NaN, so a label
        `None` remains text. With CSV, the default, a set is text, its items joined by the
        column's separator; with `format="parquet"`, which needs pyarrow, it is a list. `table` is
        as in `download`.
        """
        if format == "ndjson":
            raise ValueError("a DataFrame can be read from 'csv' or 'parquet', not from 'ndjson'")
        (require_pyarrow if format == "parquet" else require_pandas)()
        with tempfile.TemporaryFile() as file:
            self._fetch(release_id, file, format, table)
            file.seek(0)
            read = frame_from_parquet if format == "parquet" else frame_from_csv
            return cast("pd.DataFrame", read(file))

    def _fetch(self, release_id: str, out: IO[bytes], format: str, table: str | None) -> None:
        release = self.release(release_id)
        chosen = select_table(release, table)
        digest = hashlib.sha256()
        stream = self._transport.stream(
            "GET", path("releases", release_id, "tables", chosen["name"]), params={"format": format}
        )
        with stream as response, translate_errors():
            for chunk in response.iter_bytes():
                digest.update(chunk)
                out.write(chunk)
        if format == "csv" and digest.hexdigest() != chosen["sha256"]:
            raise IntegrityError(
                f"table {chosen['name']} of release {release_id} arrived with SHA-256 "
                f"{digest.hexdigest()}, but was released with {chosen['sha256']}; download it again"
            )

    def create_grant(
        self,
        release_id: str,
        recipient: str,
        purpose: str,
        *,
        expires_at: datetime | str | None = None,
    ) -> Grant:
        """Allows an organization, given by its slug or id, to fetch a release. Role: holder."""
        fields = without_none(
            {"recipient": recipient, "purpose": purpose, "expires_at": timestamp(expires_at)}
        )
        return cast(Grant, self._transport.post(path("releases", release_id, "grants"), fields))

    def grants(self, release_id: str, *, page_size: int | None = None) -> Iterator[Grant]:
        """Yields the grants of a release: recipient and purpose. Role: holder."""
        return self._transport.pages(path("releases", release_id, "grants"), page_size)

    def delete_grant(self, release_id: str, grant_id: str) -> None:
        """Revokes a grant; tables that were already fetched are not affected. Role: holder."""
        self._transport.delete(path("releases", release_id, "grants", grant_id))


def select_table(release: Release, table: str | None) -> Any:
    """Returns the table of that name, or the only table if no name is given."""
    tables = release["tables"]
    names = ", ".join(each["name"] for each in tables)
    if table is None:
        if len(tables) == 1:
            return tables[0]
        raise ValueError(f"the release has several tables; set `table` to one of: {names}")
    for each in tables:
        if each["name"] == table:
            return each
    raise ValueError(f"the release has no table {table!r}; its tables are: {names}")
