"""Releases and grants (roles `holder` and `recipient`)."""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ._admin import timestamp
from ._documents import ReleaseDocument, ReportDocument
from ._frames import require_pandas, require_pyarrow
from ._operations import Chunks, Operation, Pages, Request, Work, delete, get, post, without_none
from ._operations import path as at
from ._released import frame_from_csv, frame_from_parquet
from .errors import IntegrityError
from .types import (
    Composition,
    Format,
    FrameFormat,
    Grant,
    Intervals,
    Release,
    ReleaseFile,
    Report,
    Table,
    Withdrawal,
)

if TYPE_CHECKING:
    import pandas as pd


def create_release(
    job_id: str,
    *,
    step: int | None = None,
    name: str | None = None,
    **combination: float | str,
) -> Operation[Release]:
    """Releases the table of a job after `step`, by default the last step. Role: holder.

    For a sweep, `l=`, `k=`, `c=`, `recoding=` and `objective=` select the combination. Raises
    `Conflict` for a job that has not succeeded or whose dataset was deleted.
    """
    fields = without_none({"job_id": job_id, "step": step, "name": name, **combination})
    answer = yield post(at("releases"), fields)
    return documented(answer)


def releases(*, page_size: int | None = None) -> Pages[Release]:
    """Yields the releases of the organization (holder) or granted to it (recipient)."""
    return Pages(at("releases"), page_size, documented)


def release(release_id: str) -> Operation[Release]:
    """Returns a release: tables, privacy model, cut, verification. Roles: holder, recipient."""
    answer = yield get(at("releases", release_id))
    return documented(answer)


def report(release_id: str) -> Operation[Report]:
    """Returns the utility and risk measures of a release. Roles: holder, recipient."""
    answer = yield get(at("releases", release_id, "report"))
    return cast(Report, ReportDocument(answer))


def download(
    release_id: str,
    path: str | os.PathLike[str],
    *,
    format: Format = "csv",
    table: str | None = None,
    intervals: Intervals | None = None,
) -> Operation[Path]:
    """Writes a table of a release to a file and returns its path. Roles: holder, recipient.

    The table is streamed. The SHA-256 of CSV is compared with the release's; raises
    `IntegrityError` if it differs. The file is created, or an older one replaced, only when
    the download is complete. An anatomized release has several tables: `table` is `qit`, or
    `st_` followed by a column's name. `intervals="bounds"` adds the columns `<column>_lo` and
    `<column>_hi`; such a table has no SHA-256 to compare with.
    """
    return (yield from to_file(path, lambda out: fetch(release_id, out, format, table, intervals)))


def release_files(release_id: str, *, page_size: int | None = None) -> Pages[ReleaseFile]:
    """Yields the Parquet files of a release that its job has written to a location.

    Roles: holder, recipient. There are none for other releases.
    """
    files = at("releases", release_id, "files")
    return Pages(files, page_size, lambda each: cast(ReleaseFile, each))


def download_file(
    release_id: str, file: ReleaseFile, path: str | os.PathLike[str]
) -> Operation[Path]:
    """Writes one of the `release_files` to a file and returns its path. Roles: holder, recipient.

    Raises `IntegrityError` if its SHA-256 differs from that of the list. The file is created, or an
    older one replaced, only when the download is complete.
    """
    return (yield from to_file(path, lambda out: fetch_file(release_id, file, out)))


def download_package(release_id: str, path: str | os.PathLike[str]) -> Operation[Path]:
    """Writes the signed package of a release to a file. Roles: holder, recipient.

    It is a zip with the tables, their description and the report. `pais verify-package` checks
    its signature. The file is created, or an older one replaced, only when the download is
    complete.
    """
    return (yield from to_file(path, lambda out: fetch_package(release_id, out)))


def to_file(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], Operation[object]]
) -> Operation[Path]:
    """Writes a file, which exists only when it is complete."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            yield from write(file)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return target


def fetch_file(release_id: str, file: ReleaseFile, out: IO[bytes]) -> Operation[None]:
    """Writes a file of a release to an open file and checks its SHA-256."""
    digest = hashlib.sha256()

    def accept(chunk: bytes) -> None:
        digest.update(chunk)
        out.write(chunk)

    yield Request(
        "GET", at("releases", release_id, "files", file["name"]), receive=Chunks(accept)
    )
    if digest.hexdigest() != file["sha256"]:
        raise IntegrityError(
            f"file {file['name']} of release {release_id} arrived with SHA-256 "
            f"{digest.hexdigest()}, but was written with {file['sha256']}; download it again"
        )


def fetch_package(release_id: str, out: IO[bytes]) -> Operation[None]:
    """Writes the package of a release to an open file."""

    def accept(chunk: bytes) -> None:
        out.write(chunk)

    yield Request("GET", at("releases", release_id, "package"), receive=Chunks(accept))


def release_frame(
    release_id: str,
    *,
    format: FrameFormat = "csv",
    table: str | None = None,
    intervals: Intervals | None = None,
) -> Operation[pd.DataFrame]:
    """Returns a table of a release as a DataFrame; needs pandas. Roles: holder, recipient.

    Generalized cells are text: a label of the taxonomy, or an interval such as `[30,60)`.
    Numbers that were not generalized are numbers, and other cells are text: `001` stays `001`.
    Cells that the column declares as missing become NaN, or NA in a column of whole numbers, whose
    type is then `Int64`. With CSV, the default, a set is text, its
    items joined by the column's separator; with `format="parquet"`, which needs pyarrow, it is a
    list. `table` and `intervals` are as in `download`.
    """
    if format not in ("csv", "parquet"):
        raise ValueError(f"a DataFrame can be read from 'csv' or 'parquet', not {format!r}")
    (require_pyarrow if format == "parquet" else require_pandas)()
    with tempfile.TemporaryFile() as file:
        shown = yield from fetch(release_id, file, format, table, intervals)
        file.seek(0)

        def read() -> pd.DataFrame:
            if format == "parquet":
                return frame_from_parquet(file)
            name = select_table(shown, table)["name"]
            return frame_from_csv(file, shown.get("codebook"), name)

        frame: pd.DataFrame = yield Work(read)
        return frame


def fetch(
    release_id: str,
    out: IO[bytes],
    format: Format,
    table: str | None,
    intervals: Intervals | None = None,
) -> Operation[Release]:
    """Writes a table of a release to an open file and checks its SHA-256; returns the release."""
    shown = yield from release(release_id)
    chosen = select_table(shown, table)
    digest = hashlib.sha256()

    def accept(chunk: bytes) -> None:
        digest.update(chunk)
        out.write(chunk)

    yield Request(
        "GET",
        at("releases", release_id, "tables", chosen["name"]),
        params=without_none({"format": format, "intervals": intervals}),
        receive=Chunks(accept),
    )
    if format == "csv" and intervals is None and digest.hexdigest() != chosen["sha256"]:
        raise IntegrityError(
            f"table {chosen['name']} of release {release_id} arrived with SHA-256 "
            f"{digest.hexdigest()}, but was released with {chosen['sha256']}; download it again"
        )
    return shown


def create_grant(
    release_id: str,
    recipient: str,
    purpose: str,
    *,
    expires_at: datetime | str | None = None,
    acknowledge_composition_risk: str | None = None,
) -> Operation[Grant]:
    """Allows an organization, given by its slug or id, to fetch a release. Role: holder.

    It is refused with `composition_risk` where the release breaks a privacy model together with
    what the recipient knows of the dataset; a reason in `acknowledge_composition_risk` overrides
    that and is kept in the audit log.
    """
    fields = without_none(
        {
            "recipient": recipient,
            "purpose": purpose,
            "expires_at": timestamp(expires_at),
            "acknowledge_composition_risk": acknowledge_composition_risk,
        }
    )
    answer = yield post(at("releases", release_id, "grants"), fields)
    return cast(Grant, answer)


def grants(release_id: str, *, page_size: int | None = None) -> Pages[Grant]:
    """Yields the grants of a release: recipient and purpose. Role: holder."""
    path = at("releases", release_id, "grants")
    return Pages(path, page_size, lambda each: cast(Grant, each))


def delete_grant(release_id: str, grant_id: str) -> Operation[None]:
    """Revokes a grant; tables that were already fetched are not affected. Role: holder."""
    yield delete(at("releases", release_id, "grants", grant_id))


def composition(release_id: str, recipient: str) -> Operation[Composition]:
    """Returns what a release and a recipient's other releases say together. Role: holder."""
    answer = yield get(at("releases", release_id, "composition"), recipient=recipient)
    return cast(Composition, answer)


def withdraw_release(release_id: str, reason: str) -> Operation[Withdrawal]:
    """Withdraws a release for good: its tables and report are no longer served. Role: holder."""
    answer = yield post(at("releases", release_id, "withdrawal"), {"reason": reason})
    return cast(Withdrawal, answer)


def select_table(release: Release, table: str | None) -> Table:
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


def documented(answer: Mapping[str, Any]) -> Release:
    """Returns a release that a notebook shows as a table."""
    return cast(Release, ReleaseDocument(answer))
