"""From a DataFrame to an anonymized one in a single call (role `holder`)."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import _datasets, _jobs, _releases, _submissions
from ._frames import is_frame
from ._operations import Operation
from ._schemas import draft_schema
from ._wait import wait
from .anonymized import Anonymized
from .errors import Conflict, NotFound, PaisError
from .schema import Schema
from .types import (
    ColumnRole,
    Hierarchy,
    MissingSensitive,
    Output,
    Privacy,
    Recoding,
    SuppressionFor,
    UtilityDefinition,
)

if TYPE_CHECKING:
    import pandas as pd


def anonymize(
    frame: pd.DataFrame,
    *,
    privacy: Privacy,
    roles: Mapping[str, ColumnRole] | None = None,
    hierarchies: Mapping[str, str | Hierarchy] | None = None,
    schema: Schema | None = None,
    dataset_id: str | None = None,
    name: str | None = None,
    utility: UtilityDefinition | None = None,
    recoding: Recoding | None = None,
    output: Output | None = None,
    suppression_limit: float | None = None,
    suppression_for: SuppressionFor | None = None,
    missing_sensitive: MissingSensitive | None = None,
    acknowledge_unchanged: Mapping[str, str] | None = None,
    keep_dataset: bool = False,
    progress: bool = True,
    timeout: float | None = None,
) -> Operation[Anonymized]:
    """Anonymizes a DataFrame: declares it, sends its rows, runs a job and fetches the release.

    `privacy` is as for `create_job`. What the columns are is given by one of

    - `roles`: a role for every column. The service drafts kinds and hierarchies from the rows;
      `hierarchies` replaces those of some columns;
    - `schema`: see `Schema.from_frame`; `roles` and `hierarchies` change it;
    - `dataset_id`: an existing dataset, of which the job takes only these rows. `roles` are then
      other roles for this job alone.

    Without `keep_dataset` the dataset that this call makes is deleted in the end: its raw rows are
    destroyed, the release remains. With it, its id is `dataset_id` of the result. Rows that were
    sent to an existing dataset stay there. `name` is that of the dataset.

    If anything fails, also by an interrupt or after `timeout` seconds of waiting for the job, the
    dataset that the call made, or the submission to an existing one, is deleted before the error
    is raised. A release that was made before the failure remains, as releases are immutable.
    """
    if not is_frame(frame):
        raise TypeError(f"a pandas DataFrame is needed, not {type(frame).__name__}")
    check_sources(frame, roles, hierarchies, schema, dataset_id)
    rows = Rows(dataset_id)
    try:
        if dataset_id is None:
            if schema is None:
                schema = yield from draft_schema(frame)
            schema = schema.roles(roles or {})
            for column, hierarchy in (hierarchies or {}).items():
                schema = schema.hierarchy(column, hierarchy)
            yield from rows.create(schema, name)
        yield from rows.send(frame)
        job = yield from _jobs.create_job(
            rows.dataset_id or "",
            privacy,
            roles=None if dataset_id is None else roles,
            utility=utility,
            recoding=recoding,
            output=output,
            suppression_limit=suppression_limit,
            suppression_for=suppression_for,
            missing_sensitive=missing_sensitive,
            acknowledge_unchanged=acknowledge_unchanged,
            submissions=None if dataset_id is None else [rows.submission_id or ""],
            release=True,
        )
        rows.job_id = job["id"]
        job = yield from wait(job["id"], progress=progress, timeout=timeout)
        result = yield from fetched(job["release_id"] or "", rows, keep_dataset)
    except GeneratorExit:
        raise
    except BaseException:
        yield from rows.discard()
        raise
    if dataset_id is None and not keep_dataset:
        yield from rows.discard()
    return result


def check_sources(
    frame: Any,
    roles: Mapping[str, ColumnRole] | None,
    hierarchies: Mapping[str, Any] | None,
    schema: Schema | None,
    dataset_id: str | None,
) -> None:
    """Raises `ValueError` unless it is given what every column is."""
    if schema is not None and dataset_id is not None:
        raise ValueError(
            "an existing dataset has a schema; give `schema` or `dataset_id`, not both"
        )
    if dataset_id is not None and hierarchies:
        raise ValueError("the hierarchies of an existing dataset are changed by `datasets.patch`")
    if schema is None and dataset_id is None:
        names = [str(column) for column in frame.columns]
        without = [column for column in names if column not in (roles or {})]
        if without:
            raise ValueError(
                f"no role is given for {', '.join(map(repr, without))}; add them to `roles`, or "
                "drop the columns from the frame"
            )
        unknown = [column for column in roles or {} if column not in names]
        if unknown:
            raise ValueError(f"the frame has no column {', '.join(map(repr, unknown))}")


class Rows:
    """The rows of one call in the service, which are discarded when it fails."""

    def __init__(self, dataset_id: str | None) -> None:
        self.dataset_id = dataset_id
        self.submission_id: str | None = None
        self.job_id: str | None = None
        self.existing = dataset_id is not None
        self._expected_name: str | None = None
        self._key = str(uuid.uuid4())

    def create(self, schema: Schema, name: str | None) -> Operation[None]:
        """Declares a dataset for the rows, under a name of its own unless one is given."""
        if name is None:
            name = self._expected_name = f"{schema.name}-{uuid.uuid4().hex[:12]}"
        definition = schema.named(name).to_definition()
        dataset = yield from _datasets.create(**definition)
        self.dataset_id = dataset["id"]

    def send(self, frame: Any) -> Operation[None]:
        """Sends the rows of a DataFrame."""
        submission = yield from _submissions.submit(
            self.dataset_id or "", frame, idempotency_key=self._key
        )
        self.submission_id = submission["id"]

    def discard(self) -> Operation[None]:
        """Deletes the dataset that was made, or what was sent to an existing one.

        Warns if that is not possible.
        """
        try:
            if self.existing:
                yield from self._discard_submission()
            else:
                yield from self._discard_dataset()
        except PaisError as error:
            where = f"dataset {self.dataset_id or self._expected_name}"
            warnings.warn(
                f"the rows of this call in {where} could not be deleted; delete them: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _discard_dataset(self) -> Operation[None]:
        if self.dataset_id is None and self._expected_name is not None:
            # The answer to its creation may have been lost.
            for each in (yield from _datasets.listed().all()):
                if each["name"] == self._expected_name:
                    self.dataset_id = each["id"]
        if self.dataset_id is not None:
            with suppress(NotFound):
                yield from _datasets.destroy(self.dataset_id)

    def _discard_submission(self) -> Operation[None]:
        if self.job_id is not None:
            # It may have ended.
            with suppress(Conflict):
                yield from _jobs.cancel_job(self.job_id)
        if self.submission_id is None or self.dataset_id is None:
            return
        try:
            yield from _submissions.delete_submission(self.dataset_id, self.submission_id)
        except NotFound as error:
            # A service that cannot delete a submission answers as if it did not exist.
            left = yield from _submissions.submissions(self.dataset_id).all()
            if any(each["id"] == self.submission_id for each in left):
                raise PaisError(f"the service does not delete submissions: {error}") from error


def fetched(release_id: str, rows: Rows, keep_dataset: bool) -> Operation[Anonymized]:
    """Returns a release with its report and its tables."""
    release = yield from _releases.release(release_id)
    report = yield from _releases.report(release_id)
    tables = {}
    for table in release["tables"]:
        name = table["name"]
        tables[name] = yield from _releases.release_frame(release_id, table=name)
    kept = rows.dataset_id if keep_dataset or rows.existing else None
    return Anonymized(release_id, release, report, tables, kept)
