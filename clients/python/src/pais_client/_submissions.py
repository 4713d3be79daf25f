"""Submissions: rows that are sent to a dataset (role `holder`)."""

from __future__ import annotations

import os
import uuid
from typing import IO, TYPE_CHECKING, Any, cast

from ._frames import is_frame
from ._operations import Operation, Pages, Request, Work, delete, get, path, without_none
from ._upload import Upload, upload
from .errors import IntegrityError
from .types import Column, Dataset, Decimal, Encoding, RowsFormat, Submission

if TYPE_CHECKING:
    import pandas as pd

PLAIN_TEXT = {"delimiter": ",", "decimal": ".", "encoding": "utf-8"}
"""How the client writes a DataFrame, whatever the dataset's `format` says."""

STORE_TIMEOUT = 600.0
"""Seconds to wait for the answer to a submission after its last byte was sent."""


def submissions(dataset_id: str, *, page_size: int | None = None) -> Pages[Submission]:
    """Yields the submissions of a dataset, oldest first. Role: holder."""
    at = path("datasets", dataset_id, "submissions")
    return Pages(at, page_size, lambda each: cast(Submission, each))


def delete_submission(dataset_id: str, submission_id: str) -> Operation[None]:
    """Destroys the rows of one submission irrecoverably. Releases remain. Role: holder."""
    yield delete(path("datasets", dataset_id, "submissions", submission_id))


def submit(
    dataset_id: str,
    data: str | os.PathLike[str] | bytes | IO[bytes] | pd.DataFrame,
    *,
    format: RowsFormat | None = None,
    gzip: bool = False,
    idempotency_key: str | None = None,
    allow_duplicate: bool = False,
    replaces: str | None = None,
    delimiter: str | None = None,
    decimal: Decimal | None = None,
    thousands: str | None = None,
    encoding: Encoding | None = None,
) -> Operation[Submission]:
    """Sends rows; either all are stored or none. Role: holder.

    `data` is

    - a path (a `str` is a path too, not CSV text). The suffix of its name determines the format
      and the compression: `rows.csv`, `rows.tsv.gz`, `rows.ndjson.zst`, `rows.parquet`;
    - bytes, or a file opened in binary mode. The format is CSV unless `format` is given. A file
      that cannot seek, such as a pipe, is sent once and is not retried;
    - a pandas DataFrame, without its index, sent as CSV, or with `format="parquet"` as Parquet
      (which needs pyarrow). Lists in a column of kind `set` are joined by its separator; NaN
      and None are replaced by a word that the column declares as missing. Dates, times and periods
      are written in ISO 8601 or in the `format` of the column, intervals as `[20,40)`.

    The columns must be the declared ones, in any order. `gzip=True` compresses the body while
    it is sent. Files are streamed; a DataFrame is converted to text in memory.

    Text that is neither plain CSV nor as the dataset's `format` says is sent as it is, with how it
    is written: `delimiter` (one
    character or `"tab"`), `decimal` (`"."` or `","`), `thousands` (one character) and
    `encoding`. The service then stores the same rows as for plain CSV. They are not for a
    DataFrame, which the client writes itself.

    With an `idempotency_key`, such as the name of the batch, the same rows sent again within
    24 hours are stored once, even if another process sends them; the same key with other rows
    is a `Conflict`. Without a key the client generates one for this call, so its own retries
    do not store rows twice.

    Rows that an earlier submission of the dataset has, in whatever order and format, are a
    `Conflict` whose code is `duplicate_submission`; `allow_duplicate=True` stores them again.

    With `replaces`, the id of an earlier submission, the rows take the place of its rows: later
    jobs and editions are without the replaced ones. A `Conflict` whose code is `not_replaceable`
    says that another submission has done so, or that the rows were released and the dataset has
    no column of the role `subject`.

    Raises `ProblemError` for invalid rows; its `errors` name the first 20 cells, and
    `errors_by_column` counts all. Raises `IntegrityError` if the SHA-256 that the service computed
    differs from that of the bytes sent.
    """
    text = text_parameters(data, delimiter, decimal, thousands, encoding)
    columns: list[Column] | None = None
    if is_frame(data):
        columns = declared(cast(Dataset, (yield get(path("datasets", dataset_id)))))
    body: Upload = yield Work(lambda: upload(data, format, gzip, columns))
    if columns is not None and body.format == "csv":
        text = PLAIN_TEXT
    answer: Submission = yield Request(
        "POST",
        path("datasets", dataset_id, "submissions"),
        params=text
        | ({"allow_duplicate": "true"} if allow_duplicate else {})
        | without_none({"replaces": replaces}),
        headers={**body.headers(), "Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        body=body.body,
        replayable=body.replayable,
        read_timeout=STORE_TIMEOUT,
    )
    sent = body.sha256()
    if sent is not None and answer["sha256"] != sent:
        raise IntegrityError(
            f"submission {answer['id']} arrived with SHA-256 {answer['sha256']}, "
            f"but the bytes sent have SHA-256 {sent}; submit the rows again"
        )
    return answer


def text_parameters(
    data: object,
    delimiter: str | None,
    decimal: Decimal | None,
    thousands: str | None,
    encoding: Encoding | None,
) -> dict[str, Any]:
    """Returns the query that says how text is written; a DataFrame takes none."""
    text = without_none(
        {
            "delimiter": delimiter,
            "decimal": decimal,
            "thousands": thousands,
            "encoding": encoding,
        }
    )
    if text and is_frame(data):
        raise ValueError(f"a DataFrame is sent as plain text; leave out {', '.join(text)}")
    return text


def declared(dataset: Dataset) -> list[Column]:
    """Returns the columns of a dataset, each with the words that mean missing in it."""
    words = dataset.get("missing")
    columns = [column.copy() for column in dataset["columns"]]
    for column in columns:
        if words is not None and column.get("missing") is None:
            column["missing"] = words
    return columns
