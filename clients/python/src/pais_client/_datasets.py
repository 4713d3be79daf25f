"""Taxonomies, datasets and submissions (role `holder`)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from ._frames import is_frame
from ._resource import Resource
from ._transport import path, without_none
from ._upload import upload
from .errors import IntegrityError
from .types import (
    Column,
    Dataset,
    DatasetSummary,
    Document,
    Encoding,
    RowsFormat,
    Submission,
    Taxonomy,
    TaxonomyNode,
    TaxonomySummary,
)

if TYPE_CHECKING:
    import pandas as pd

STORE_TIMEOUT = 600.0
"""Seconds to wait for the answer to a submission after its last byte was sent."""


class Datasets(Resource):
    """Calls a hospital makes before it anonymizes."""

    def create_taxonomy(self, name: str, tree: TaxonomyNode | Mapping[str, Any] | str) -> Taxonomy:
        """Creates a taxonomy: how the values of a column may be generalized. Role: holder.

        `tree` is a dictionary `{"label": …, "children": [...]}`, where a node without children is
        a leaf, or CSV text with a row for each leaf, such as `Janitor;Blue-collar;Any`, which is
        the hierarchy format of ARX and Amnesia. Labels must be unique in a tree, names in the
        organization.
        """
        if isinstance(tree, str):
            content = tree.encode()
            answer = self._transport.call(
                "POST",
                path("taxonomies"),
                params={"name": name},
                headers={"Content-Type": "text/csv"},
                body=lambda: content,
            )
        else:
            answer = self._transport.post(path("taxonomies"), {"name": name, "root": tree})
        return cast(Taxonomy, answer)

    def taxonomies(self, *, page_size: int | None = None) -> Iterator[TaxonomySummary]:
        """Yields the organization's taxonomies, without their trees. Role: holder."""
        return self._transport.pages(path("taxonomies"), page_size)

    def taxonomy(self, taxonomy_id: str) -> Taxonomy:
        """Returns a taxonomy with its tree. Role: holder."""
        return cast(Taxonomy, self._transport.get(path("taxonomies", taxonomy_id)))

    def create_dataset(
        self,
        name: str,
        columns: Sequence[Column | Mapping[str, Any]],
        *,
        description: str | None = None,
        retention_days: int | None = None,
        missing: Sequence[str] | None = None,
    ) -> Dataset:
        """Declares a table. Role: holder.

        Each column has a `name` and a `role`: `identifier` (dropped while the upload is parsed,
        never stored), `subject` (at most one: names the person a row is about; stored only as a
        keyed hash, never released), `quasi_identifier`, `sensitive`, `class` (at most one) or
        `insensitive`.
        `kind` is `categorical` (the default), `numeric` or `set`. `taxonomy` is the id of a
        taxonomy or a tree. `domain`, `separator`, `missing` and `from` are described in the
        service's API reference (`/docs`). `missing` has the words that mean missing in the columns
        that declare none themselves.
        """
        fields = without_none(
            {
                "name": name,
                "description": description,
                "columns": [dict(column) for column in columns],
                "retention_days": retention_days,
                "missing": None if missing is None else list(missing),
            }
        )
        return cast(Dataset, self._transport.post(path("datasets"), fields))

    def datasets(self, *, page_size: int | None = None) -> Iterator[DatasetSummary]:
        """Yields the organization's datasets without their columns. Role: holder."""
        return self._transport.pages(path("datasets"), page_size)

    def dataset(self, dataset_id: str) -> Dataset:
        """Returns a dataset: its columns, number of rows and latest submissions. Role: holder."""
        return cast(Dataset, self._transport.get(path("datasets", dataset_id)))

    def submissions(self, dataset_id: str, *, page_size: int | None = None) -> Iterator[Submission]:
        """Yields the submissions of a dataset, oldest first. Role: holder."""
        return self._transport.pages(path("datasets", dataset_id, "submissions"), page_size)

    def profile(self, dataset_id: str) -> Document:
        """Returns statistics of the stored rows by column, without cell values. Role: holder.

        They are the numbers of distinct and of missing values, sizes of sets and ranges of
        numbers, and with a column of the role `subject` the number of persons and the most rows of
        one. Use them to check that the service parsed the upload as intended.
        """
        return cast(Document, self._transport.get(path("datasets", dataset_id, "profile")))

    def delete_dataset(self, dataset_id: str) -> None:
        """Destroys the raw rows irrecoverably and cancels the dataset's jobs. Role: holder.

        Releases remain.
        """
        self._transport.delete(path("datasets", dataset_id))

    def submit(
        self,
        dataset_id: str,
        data: str | os.PathLike[str] | bytes | IO[bytes] | pd.DataFrame,
        *,
        format: RowsFormat | None = None,
        gzip: bool = False,
        idempotency_key: str | None = None,
        allow_duplicate: bool = False,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        encoding: Encoding | None = None,
    ) -> Submission:
        """Sends rows; either all are stored or none. Role: holder.

        `data` is

        - a path (a `str` is a path too, not CSV text). The suffix of its name determines the format
          and the compression: `rows.csv`, `rows.tsv.gz`, `rows.ndjson.zst`, `rows.parquet`;
        - bytes, or a file opened in binary mode. The format is CSV unless `format` is given. A file
          that cannot seek, such as a pipe, is sent once and is not retried;
        - a pandas DataFrame, without its index, sent as CSV, or with `format="parquet"` as Parquet
          (which needs pyarrow). Lists in a column of kind `set` are joined by its separator; NaN
          and None are replaced by a word that the column declares as missing.

        The columns must be the declared ones, in any order. `gzip=True` compresses the body while
        it is sent. Files are streamed; a DataFrame is converted to text in memory.

        Text that is not plain CSV is sent as it is, with how it is written: `delimiter` (one
        character or `"tab"`), `decimal` (`"."` or `","`), `thousands` (one character) and
        `encoding`. The service then stores the same rows as for plain CSV. They are not for a
        DataFrame, which the client writes itself.

        With an `idempotency_key`, such as the name of the batch, the same rows sent again within
        24 hours are stored once, even if another process sends them; the same key with other rows
        is a `Conflict`. Without a key the client generates one for this call, so its own retries
        do not store rows twice.

        Rows that an earlier submission of the dataset has, in whatever order and format, are a
        `Conflict` whose code is `duplicate_submission`; `allow_duplicate=True` stores them again.

        Raises `ProblemError` for invalid rows; its `errors` name the first 20 cells, and
        `errors_by_column` counts all. Raises
        `IntegrityError` if the SHA-256 that the service computed differs from that of the bytes
        sent.
        """
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
        body = upload(data, format, gzip, lambda: self._columns(dataset_id))
        headers = body.headers()
        headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        answer: Submission = self._transport.call(
            "POST",
            path("datasets", dataset_id, "submissions"),
            params=text | ({"allow_duplicate": "true"} if allow_duplicate else {}) or None,
            headers=headers,
            body=body.body,
            replayable=body.replayable,
            read_timeout=max(self._transport.timeout, STORE_TIMEOUT),
        )
        sent = body.sha256()
        if sent is not None and answer["sha256"] != sent:
            raise IntegrityError(
                f"submission {answer['id']} arrived with SHA-256 {answer['sha256']}, "
                f"but the bytes sent have SHA-256 {sent}; submit the rows again"
            )
        return answer

    def _columns(self, dataset_id: str) -> list[Column]:
        """Returns the columns of a dataset, each with the words that mean missing in it."""
        dataset = self.dataset(dataset_id)
        words = dataset.get("missing")
        columns = [dict(column) for column in dataset["columns"]]
        for column in columns:
            if words is not None and column.get("missing") is None:
                column["missing"] = words
        return cast(list[Column], columns)
