"""Taxonomies, datasets and submissions (role `holder`)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from ._resource import Resource
from ._transport import only_given, path
from ._upload import upload
from .errors import IntegrityError
from .types import (
    Column,
    Dataset,
    Document,
    Format,
    Submission,
    Taxonomy,
    TaxonomyNode,
    TaxonomySummary,
)

if TYPE_CHECKING:
    import pandas as pd

LONGEST_STORING = 600.0
"""Seconds the service may take to store a submission after its last byte was sent."""


class Datasets(Resource):
    """What a hospital does before it anonymizes."""

    def create_taxonomy(self, name: str, tree: TaxonomyNode | Mapping[str, Any] | str) -> Taxonomy:
        """Makes a taxonomy: how the values of a column may be generalized. Role: holder.

        `tree` is a dictionary `{"label": …, "children": [...]}`, where a node without children is
        a leaf, or CSV text with a row for each leaf: `Janitor;Blue-collar;Any`, the hierarchies
        that ARX and Amnesia write. Labels are unique in a tree, names in the organization.
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
        """The organization's taxonomies, without their trees. Role: holder."""
        return self._transport.pages(path("taxonomies"), page_size)

    def taxonomy(self, taxonomy_id: str) -> Taxonomy:
        """A taxonomy with its tree. Role: holder."""
        return cast(Taxonomy, self._transport.get(path("taxonomies", taxonomy_id)))

    def create_dataset(
        self,
        name: str,
        columns: Sequence[Column | Mapping[str, Any]],
        *,
        description: str | None = None,
        retention_days: int | None = None,
    ) -> Dataset:
        """Declares a table. Role: holder.

        Each column has a `name` and a `role`: `identifier` (dropped at the door, never stored),
        `quasi_identifier`, `sensitive`, `class` (at most one) or `insensitive`. `kind` is
        `categorical` (the default), `numeric` or `set`; `taxonomy` the id of a taxonomy or a tree;
        `domain`, `separator` and `missing` as the service's reference has them.
        """
        fields = only_given(
            {
                "name": name,
                "description": description,
                "columns": [dict(column) for column in columns],
                "retention_days": retention_days,
            }
        )
        return cast(Dataset, self._transport.post(path("datasets"), fields))

    def datasets(self, *, page_size: int | None = None) -> Iterator[Dataset]:
        """The organization's datasets. Role: holder."""
        return self._transport.pages(path("datasets"), page_size)

    def dataset(self, dataset_id: str) -> Dataset:
        """A dataset: its columns, its number of rows, its submissions. Role: holder."""
        return cast(Dataset, self._transport.get(path("datasets", dataset_id)))

    def profile(self, dataset_id: str) -> Document:
        """What the stored rows are like, column by column, without any value. Role: holder.

        The numbers of distinct and of missing values, sizes of sets, ranges of numbers: enough to
        see that what arrived is what was meant.
        """
        return cast(Document, self._transport.get(path("datasets", dataset_id, "profile")))

    def delete_dataset(self, dataset_id: str) -> None:
        """Destroys the raw rows for good and cancels the jobs; releases stay. Role: holder."""
        self._transport.delete(path("datasets", dataset_id))

    def submit(
        self,
        dataset_id: str,
        data: str | os.PathLike[str] | bytes | IO[bytes] | pd.DataFrame,
        *,
        format: Format | None = None,
        gzip: bool = False,
        idempotency_key: str | None = None,
    ) -> Submission:
        """Sends rows; all of them are stored or none. Role: holder.

        `data` is

        - a path (text is a path too, not CSV): its name tells the format and whether it is
          compressed already, `rows.csv`, `rows.csv.gz`, `rows.ndjson.zst`, `rows.parquet`;
        - bytes, or a file opened in binary mode, CSV unless `format` says otherwise. A file that
          cannot seek, such as a pipe, is sent once and not again;
        - a pandas DataFrame without its index, sent as CSV, or with `format="parquet"` as Parquet
          (which needs pyarrow). Lists in a column of the kind `set` are joined by its separator,
          NaN and None become what the column takes as missing.

        The columns must be the declared ones, in any order. `gzip=True` compresses on the way.
        Files are streamed; a DataFrame is made into text in memory.

        With an `idempotency_key`, such as the name of the batch, the same rows sent again within
        24 hours are stored once, whichever process sends them; the same key with other rows is a
        `Conflict`. Without one the client makes one for this call, so that its own repetitions
        store nothing twice.

        Raises `ProblemError` for rows that do not fit: its `errors` name the first 20 cells. The
        service's SHA-256 is compared with that of what was sent: `IntegrityError` if it differs.
        """
        body = upload(data, format, gzip, lambda: self.dataset(dataset_id)["columns"])
        headers = body.headers()
        headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        answer: Submission = self._transport.call(
            "POST",
            path("datasets", dataset_id, "submissions"),
            headers=headers,
            body=body.body,
            replayable=body.replayable,
            read_timeout=max(self._transport.timeout, LONGEST_STORING),
        )
        sent = body.sha256()
        if sent is not None and answer["sha256"] != sent:
            raise IntegrityError(
                f"submission {answer['id']} arrived with the SHA-256 {answer['sha256']}, "
                f"but {sent} was sent"
            )
        return answer
