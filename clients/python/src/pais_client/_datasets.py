"""Datasets (role `holder`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import IO, TYPE_CHECKING, Any, cast

from ._documents import DatasetDocument, DatasetRiskDocument, DraftDocument, ProfileDocument
from ._operations import Operation, Pages, Request, Work, delete, get, patch, path, post, put
from ._operations import without_none as given
from ._submissions import STORE_TIMEOUT, text_parameters
from ._upload import Upload, upload
from .types import (
    Column,
    ColumnChange,
    Dataset,
    DatasetLocation,
    DatasetRisk,
    DatasetSummary,
    Decimal,
    Draft,
    Encoding,
    LegalHold,
    Profile,
    RowsFormat,
    TextFormat,
)

if TYPE_CHECKING:
    import pandas as pd


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED
"""A field that stays as it is; `None` removes its value."""


def create(
    name: str,
    columns: Sequence[Column],
    *,
    description: str | None = None,
    retention_days: int | None = None,
    submission_retention_days: int | None = None,
    missing: Sequence[str] | None = None,
    format: TextFormat | None = None,
    location: DatasetLocation | None = None,
) -> Operation[Dataset]:
    """Declares a table. Role: holder.

    Each column has a `name` and a `role`: `identifier` (dropped while the upload is parsed,
    never stored), `subject` (at most one: names the person a row is about; stored only as a
    keyed hash, never released), `quasi_identifier`, `sensitive`, `class` (at most one) or
    `insensitive`.
    `kind` is `categorical` (the default), `numeric`, `date`, `datetime` or `set`. `taxonomy` is the
    id of a taxonomy, a tree or a hierarchy that the service makes (`pais_client.hierarchies`).
    `domain`, `separator`, `missing`, `order` and `from` are described in the service's API
    reference (`/docs`). `missing` has the words that mean missing in the columns that declare none
    themselves. The rows are deleted `retention_days` after the dataset was declared, and those of a
    submission `submission_retention_days` after its arrival. `format` says how files of text are
    written where a submission does not, as a draft proposes it. `location` is the URL of Parquet
    files that the service reads in place of submissions, below a prefix that its operator has
    granted to the organization; the call ends when the rows are stored.
    """
    definition = given(
        {
            "name": name,
            "description": description,
            "columns": [dict(column) for column in columns],
            "retention_days": retention_days,
            "submission_retention_days": submission_retention_days,
            "missing": None if missing is None else list(missing),
            "format": None if format is None else dict(format),
            "location": None if location is None else dict(location),
        }
    )
    request = post(path("datasets"), definition)
    answer = yield request if location is None else replace(request, read_timeout=STORE_TIMEOUT)
    return cast(Dataset, DatasetDocument(answer))


def listed(*, page_size: int | None = None) -> Pages[DatasetSummary]:
    """Yields the organization's datasets without their columns. Role: holder."""
    return Pages(path("datasets"), page_size, lambda each: cast(DatasetSummary, each))


def dataset(dataset_id: str) -> Operation[Dataset]:
    """Returns a dataset: its columns, number of rows and latest submissions. Role: holder."""
    answer = yield get(path("datasets", dataset_id))
    return cast(Dataset, DatasetDocument(answer))


def profile(dataset_id: str) -> Operation[Profile]:
    """Returns statistics of the stored rows by column, without cell values. Role: holder.

    They are the numbers of distinct and of missing values, sizes of sets and ranges of
    numbers, and with a column of the role `subject` the number of persons and the most rows of
    one. Use them to check that the service parsed the upload as intended.
    """
    answer = yield get(path("datasets", dataset_id, "profile"))
    return cast(Profile, ProfileDocument(answer))


def risk(dataset_id: str, *, l: int | None = None) -> Operation[DatasetRisk]:  # noqa: E741
    """Returns how far the stored rows single persons out, before any run. Role: holder.

    `l` is the largest number of columns in a combination. The answer has the distinctness and the
    separation of columns, the share of rows (with a subject, of persons) with a unique combination,
    and the greatest `k` and `l` that are feasible.
    """
    answer = yield get(path("datasets", dataset_id, "risk"), l=l)
    return cast(DatasetRisk, DatasetRiskDocument(answer))


def change(
    dataset_id: str,
    *,
    columns: Sequence[ColumnChange] | None = None,
    description: str | Unchanged | None = UNCHANGED,
    retention_days: int | Unchanged | None = UNCHANGED,
    submission_retention_days: int | Unchanged | None = UNCHANGED,
    format: TextFormat | Unchanged | None = UNCHANGED,
) -> Operation[Dataset]:
    """Changes a dataset where its stored rows still fit. Role: holder.

    `columns` has the columns that change, by `name`, each with the fields that change; `None`
    resets a field. Roles change except to and from `identifier` and `subject`. Raises `Conflict`
    for what needs the rows to be read again.
    """
    changes: dict[str, Any] = {
        "description": description,
        "retention_days": retention_days,
        "submission_retention_days": submission_retention_days,
        "format": format,
    }
    changes = {name: value for name, value in changes.items() if value is not UNCHANGED}
    if columns is not None:
        changes["columns"] = [dict(column) for column in columns]
    answer = yield patch(path("datasets", dataset_id), changes)
    return cast(Dataset, DatasetDocument(answer))


def destroy(dataset_id: str) -> Operation[None]:
    """Destroys the raw rows irrecoverably and cancels the dataset's jobs. Role: holder.

    Releases remain.
    """
    yield delete(path("datasets", dataset_id))


def place_legal_hold(dataset_id: str, reason: str) -> Operation[LegalHold]:
    """Keeps the dataset and its submissions from being deleted, also by retention. Role: holder."""
    answer = yield put(path("datasets", dataset_id, "legal-hold"), {"reason": reason})
    return cast(LegalHold, answer)


def lift_legal_hold(dataset_id: str) -> Operation[None]:
    """Ends the legal hold of a dataset. Role: holder."""
    yield delete(path("datasets", dataset_id, "legal-hold"))


def draft(
    data: str | os.PathLike[str] | bytes | IO[bytes] | pd.DataFrame,
    *,
    name: str | None = None,
    format: RowsFormat | None = None,
    gzip: bool = False,
    delimiter: str | None = None,
    decimal: Decimal | None = None,
    thousands: str | None = None,
    encoding: Encoding | None = None,
) -> Operation[Draft]:
    """Proposes a dataset from its rows, which are not stored. Role: holder.

    `data` is as for `submit`. The answer has a definition for `create_dataset`, how the text is
    written, and for each column the reasons, which contain no value of a cell. Check the roles: a
    proposal is no decision. What is given of `delimiter`, `decimal`, `thousands` and `encoding`
    wins over what the service finds.
    """
    text = text_parameters(data, delimiter, decimal, thousands, encoding)
    body: Upload = yield Work(lambda: upload(data, format, gzip, None))
    answer = yield Request(
        "POST",
        path("datasets", "draft"),
        params=given({"name": name, **text}),
        headers=body.headers(),
        body=body.body,
        replayable=body.replayable,
        read_timeout=STORE_TIMEOUT,
    )
    return cast(Draft, DraftDocument(answer))
