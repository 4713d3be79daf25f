"""Jobs (role `holder`)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ._documents import JobDocument, ReportDocument
from ._frames import pandas_or_none
from ._operations import Operation, Pages, delete, get, path, post, without_none
from .types import (
    ColumnRole,
    Job,
    MissingSensitive,
    Output,
    PreGeneralization,
    Privacy,
    Recoding,
    ReleaseLocation,
    Report,
    Step,
    SuppressionFor,
    SweepItem,
    UtilityDefinition,
)


def create_job(
    dataset_id: str,
    privacy: Privacy,
    *,
    utility: UtilityDefinition | None = None,
    recoding: Recoding | Sequence[Recoding] | None = None,
    output: Output | None = None,
    pre_generalization: Mapping[str, PreGeneralization] | None = None,
    suppression_limit: float | None = None,
    suppression_for: SuppressionFor | None = None,
    missing_sensitive: MissingSensitive | None = None,
    roles: Mapping[str, ColumnRole] | None = None,
    submissions: Sequence[str] | None = None,
    release: bool | ReleaseLocation | None = None,
    acknowledge_unchanged: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
    **more: Any,
) -> Operation[Job]:
    """Starts an anonymization and returns at once; see `wait`. Role: holder.

    `privacy` names the model and its parameters, such as
    `{"model": "lkc", "l": 4, "k": 20, "c": 0.2, "sensitive_values": {"diagnosis": ["HIV"]}}`:
    anyone who knows up to 4 values of a person finds at least 20 matching records and infers
    HIV with at most 20 % confidence. `pais_client.types.Model` lists the models. Lists of `l`, `k`
    or `c`, of recodings or of objectives make the job a sweep, see `sweep`.
    `utility` sets the objective of the search: `{"objective": "classification"}`,
    `discernibility` or `ncp`. `suppression_limit` is the largest share of rows that may be
    left out. `roles` are other roles of columns than declared, for this job alone. `submissions`
    are the ids of the batches to include, by default all of them.
    `release=True` creates the release of the last step when the run succeeds; its id is
    `release_id` of the finished job. With `release={"location": {"url": ...}}` the release is
    written to that folder as Parquet files, too; see `release_files`. `acknowledge_unchanged` says
    by column why one that is nearly a key of the rows is released unchanged; the service refuses it
    otherwise. `more` are further fields of the request.

    Without an `idempotency_key` the client generates one for this call, so its own retries
    start only one job.
    """
    fields = without_none(
        {
            "dataset_id": dataset_id,
            "privacy": privacy,
            "utility": utility,
            "recoding": recoding,
            "output": output,
            "pre_generalization": pre_generalization,
            "suppression_limit": suppression_limit,
            "suppression_for": suppression_for,
            "missing_sensitive": missing_sensitive,
            "roles": None if roles is None else dict(roles),
            "submissions": None if submissions is None else list(submissions),
            "release": release,
            "acknowledge_unchanged": (
                None if acknowledge_unchanged is None else dict(acknowledge_unchanged)
            ),
            **more,
        }
    )
    answer = yield post(path("jobs"), fields, key=idempotency_key or str(uuid.uuid4()))
    return shown(answer)


def jobs(*, page_size: int | None = None) -> Pages[Job]:
    """Yields the organization's jobs. Role: holder."""
    return Pages(path("jobs"), page_size, shown)


def job(job_id: str) -> Operation[Job]:
    """Returns the current state of a job. Role: holder."""
    answer = yield get(path("jobs", job_id))
    return shown(answer)


def cancel_job(job_id: str) -> Operation[Job | None]:
    """Requests that a job stops; raises `Conflict` if it has ended. Role: holder."""
    answer = yield delete(path("jobs", job_id))
    return None if answer is None else shown(answer)


def steps(job_id: str, **combination: float | str) -> Operation[Any]:
    """Returns the steps of a run, as a DataFrame if pandas is installed, else as a list.

    Step 0 is the topmost table. `attribute` and `value` name what was specialized into
    `children`, and `score` is the score of that specialization. `groups`, `smallest_group`,
    `dr` (discernibility ratio) and `ncp` (normalized certainty penalty) describe the table
    after the step. Any step can be released: `create_release(job_id, step=…)`. The result is
    empty for a job without steps. For a sweep, `l=`, `k=`, `c=`, `recoding=`
    and `objective=` select the combination. Role: holder.
    """
    items = yield from step_pages(job_id, None, combination).all()
    pandas = pandas_or_none()
    return items if pandas is None else pandas.DataFrame(items)


def iter_steps(job_id: str, *, page_size: int | None = None, **combination: float | str) -> Pages[Step]:
    """Yields the steps as dictionaries, with or without pandas. Role: holder."""
    return step_pages(job_id, page_size, combination)


def step_pages(job_id: str, page_size: int | None, combination: Mapping[str, float | str]) -> Pages[Step]:
    at = path("jobs", job_id, "steps")
    return Pages(at, page_size, lambda each: cast(Step, each), combination)


def sweep(job_id: str) -> Operation[Any]:
    """Returns the results of a sweep, as a DataFrame if pandas is installed, else as a list.

    There is one row for each combination of `l`, `k`, `c`, `recoding` and `objective`, with the
    figures of its last step or of its groups. Each combination that succeeded can be released:
    `create_release(job_id, l=…, k=…, c=…)`. Role: holder.
    """
    at = path("jobs", job_id, "sweep")
    items = yield from Pages(at, None, lambda each: cast(SweepItem, each)).all()
    pandas = pandas_or_none()
    return items if pandas is None else pandas.DataFrame(items)


def job_report(job_id: str, *, step: int | None = None, **combination: float | str) -> Operation[Report]:
    """Returns the report that a release of a job would have, before anything is released.

    The table after `step`, by default the last one, is verified and measured, which takes as long
    as its release; nothing of it is stored. For a sweep, `l=`, `k=`, `c=`, `recoding=` and
    `objective=` select the combination. Role: holder.
    """
    answer = yield get(path("jobs", job_id, "report"), step=step, **combination)
    return cast(Report, ReportDocument(answer))


def shown(answer: Mapping[str, Any]) -> Job:
    """Returns a job that a notebook shows as a table."""
    return cast(Job, JobDocument(answer))
