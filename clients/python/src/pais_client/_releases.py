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
from ._transport import only_given, path, translated
from .errors import IntegrityError
from .types import Document, Format, Grant, Release

if TYPE_CHECKING:
    import pandas as pd


class Releases(Resource):
    """Anonymized tables, and who may fetch them."""

    def create_release(
        self,
        job_id: str,
        *,
        step: int | None = None,
        name: str | None = None,
        **combination: float,
    ) -> Release:
        """Releases the table of a job as it stood after `step`, the last by default. Role: holder.

        Of a sweep `l=`, `k=` and `c=` say which combination. `Conflict` for a job that has not
        ended well or whose dataset was deleted.
        """
        fields = only_given({"job_id": job_id, "step": step, "name": name, **combination})
        return cast(Release, self._transport.post(path("releases"), fields))

    def releases(self, *, page_size: int | None = None) -> Iterator[Release]:
        """The releases of the organization (holder), or granted to it (recipient)."""
        return self._transport.pages(path("releases"), page_size)

    def release(self, release_id: str) -> Release:
        """A release: its tables, privacy model, cut and verification. Roles: holder, recipient."""
        return cast(Release, self._transport.get(path("releases", release_id)))

    def report(self, release_id: str) -> Document:
        """How useful and how risky the release is, in numbers. Roles: holder, recipient."""
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

        The table is streamed, and CSV checked against the release's SHA-256 (`IntegrityError` if
        it differs). The file appears when it is complete, and an older one is replaced then. An
        anatomized release has several tables: `table` is `qit` or `st_` and a column's name.
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
        """A table of a release as a DataFrame; needs pandas. Roles: holder, recipient.

        Generalized cells are texts: a label of the taxonomy, or an interval such as `[30,60)`.
        Untouched numbers are numbers. Only empty cells become NaN, so that a label `None` stays
        one. Sets are texts joined by the column's separator in CSV, the default, and lists with
        `format="parquet"`, which needs pyarrow. `table` as in `download`.
        """
        if format == "ndjson":
            raise ValueError("a DataFrame is made of csv or parquet")
        (require_pyarrow if format == "parquet" else require_pandas)()
        with tempfile.TemporaryFile() as file:
            self._fetch(release_id, file, format, table)
            file.seek(0)
            read = frame_from_parquet if format == "parquet" else frame_from_csv
            return cast("pd.DataFrame", read(file))

    def _fetch(self, release_id: str, out: IO[bytes], format: str, table: str | None) -> None:
        release = self.release(release_id)
        chosen = choose(release, table)
        digest = hashlib.sha256()
        stream = self._transport.stream(
            "GET", path("releases", release_id, "tables", chosen["name"]), params={"format": format}
        )
        with stream as response, translated():
            for chunk in response.iter_bytes():
                digest.update(chunk)
                out.write(chunk)
        if format == "csv" and digest.hexdigest() != chosen["sha256"]:
            raise IntegrityError(
                f"table {chosen['name']} of release {release_id} has the SHA-256 "
                f"{digest.hexdigest()}, not {chosen['sha256']} as released"
            )

    def create_grant(
        self,
        release_id: str,
        recipient: str,
        purpose: str,
        *,
        expires_at: datetime | str | None = None,
    ) -> Grant:
        """Lets an organization, named by its slug or id, fetch a release. Role: holder."""
        fields = only_given(
            {"recipient": recipient, "purpose": purpose, "expires_at": timestamp(expires_at)}
        )
        return cast(Grant, self._transport.post(path("releases", release_id, "grants"), fields))

    def grants(self, release_id: str, *, page_size: int | None = None) -> Iterator[Grant]:
        """Who may fetch a release, and for what. Role: holder."""
        return self._transport.pages(path("releases", release_id, "grants"), page_size)

    def delete_grant(self, release_id: str, grant_id: str) -> None:
        """Takes the right back; what was fetched before is not undone. Role: holder."""
        self._transport.delete(path("releases", release_id, "grants", grant_id))


def choose(release: Release, table: str | None) -> Any:
    """The table of that name, or the only one."""
    tables = release["tables"]
    names = ", ".join(each["name"] for each in tables)
    if table is None:
        if len(tables) == 1:
            return tables[0]
        raise ValueError(f"the release has several tables; name one of them: {names}")
    for each in tables:
        if each["name"] == table:
            return each
    raise ValueError(f"the release has no table {table!r}, but {names}")
