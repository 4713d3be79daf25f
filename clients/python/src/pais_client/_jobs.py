"""Jobs (role `holder`)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ._events import events
from ._frames import pandas_or_none
from ._progress import Bar, bar
from ._resource import Resource
from ._transport import only_given, path, translated
from .errors import JobCancelled, JobFailed, ServiceUnreachable
from .types import Job, Step

QUIET = 60.0
"""Seconds after which a stream of events is given up; a healthy one says something every 15."""

UNREACHABLE = 60.0
"""Seconds for which a service that does not answer is asked again: it may be restarting."""


class Jobs(Resource):
    """Anonymization runs."""

    def create_job(
        self,
        dataset_id: str,
        privacy: Mapping[str, Any],
        *,
        utility: Mapping[str, Any] | None = None,
        recoding: str | None = None,
        output: str | None = None,
        pre_generalization: Mapping[str, Any] | None = None,
        suppression_limit: float | None = None,
        submissions: Sequence[str] | None = None,
        release: bool | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> Job:
        """Starts an anonymization and returns at once; see `wait`. Role: holder.

        `privacy` names the model and its parameters, such as
        `{"model": "lkc", "l": 4, "k": 20, "c": 0.2, "sensitive_values": {"diagnosis": ["HIV"]}}`:
        who knows up to 4 values of a person finds 20 records or more and infers HIV with at most
        20 % confidence. Other models: `k_anonymity`, `confidence_bounding`, `alpha_k`,
        `k_m_anonymity`, `l_diversity`. Lists of `l`, `k` or `c` make the job a sweep, see `sweep`.
        `utility` says what the data are to be good for:
        `{"objective": "classification"}`, `discernibility` or `ncp`. `suppression_limit` is the
        largest share of rows that may be left out; `submissions` the ids of the batches to
        include, all of them by default; `release=True` makes the release of the last step when
        the run ends well, so that `release_id` of the finished job names it. `more` are further
        fields of the request.

        Without an `idempotency_key` the client makes one for this call, so that its own
        repetitions start one job only.
        """
        fields = only_given(
            {
                "dataset_id": dataset_id,
                "privacy": privacy,
                "utility": utility,
                "recoding": recoding,
                "output": output,
                "pre_generalization": pre_generalization,
                "suppression_limit": suppression_limit,
                "submissions": None if submissions is None else list(submissions),
                "release": release,
                **more,
            }
        )
        key = idempotency_key or str(uuid.uuid4())
        return cast(Job, self._transport.post(path("jobs"), fields, key=key))

    def jobs(self, *, page_size: int | None = None) -> Iterator[Job]:
        """The organization's jobs. Role: holder."""
        return self._transport.pages(path("jobs"), page_size)

    def job(self, job_id: str) -> Job:
        """A job as it stands. Role: holder."""
        return cast(Job, self._transport.get(path("jobs", job_id)))

    def cancel_job(self, job_id: str) -> Job | None:
        """Asks a job to stop; `Conflict` if it has ended. Role: holder."""
        return cast("Job | None", self._transport.delete(path("jobs", job_id)))

    def wait(self, job_id: str, *, progress: bool = True, timeout: float | None = None) -> Job:
        """Waits until the job has ended well, and returns it. Role: holder.

        Shows a bar on standard error if that is a terminal, unless `progress=False`. Raises
        `JobFailed` with the reason if the job failed, `JobCancelled` (a `JobFailed` too) if it was
        cancelled, `TimeoutError` after `timeout` seconds; the job goes on then, and `wait` may be
        called again. A restart of the service is waited out for a minute.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        shown = bar(progress)
        try:
            job = self._follow(job_id, shown, deadline)
        finally:
            shown.close()
        if job["status"] == "cancelled":
            raise JobCancelled(job)
        if job["status"] != "succeeded":
            raise JobFailed(job)
        return job

    def _follow(self, job_id: str, shown: Bar, deadline: float | None) -> Job:
        """The job of the `end` event; a stream that is cut off before it is opened again."""
        lost: float | None = None
        while True:
            try:
                for name, data in self._events(job_id, deadline):
                    lost = None
                    if name == "end":
                        shown.show(data["progress"], data["status"])
                        return cast(Job, data)
                    if name == "progress":
                        shown.show(data["progress"], standing(data))
            except ServiceUnreachable:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > UNREACHABLE:
                    raise
            check(deadline, job_id)
            time.sleep(0.5)

    def _events(self, job_id: str, deadline: float | None) -> Iterator[tuple[str, Any]]:
        quiet = QUIET
        if deadline is not None:
            quiet = max(0.1, min(quiet, deadline - time.monotonic()))
        stream = self._transport.stream(
            "GET",
            path("jobs", job_id, "events"),
            headers={"Accept": "text/event-stream"},
            read_timeout=quiet,
        )
        with stream as response, translated():
            for event in events(response.iter_lines()):
                check(deadline, job_id)
                if event is not None:
                    yield event.name, json.loads(event.data)

    def steps(self, job_id: str, **combination: float) -> Any:
        """What a run did, step by step: a DataFrame where pandas is installed, else a list.

        Step 0 is the topmost table. `attribute` and `value` say what was specialized into
        `children`, `score` how good that looked; `groups`, `smallest_group`, `dr` (discernibility
        ratio) and `ncp` (normalized certainty penalty) describe the table after it. Any step can
        be made a release: `create_release(job_id, step=…)`. Empty for a job without steps. Of a
        sweep `l=`, `k=` and `c=` say which combination. Role: holder.
        """
        items = list(self.iter_steps(job_id, **combination))
        pandas = pandas_or_none()
        return items if pandas is None else pandas.DataFrame(items)

    def iter_steps(
        self, job_id: str, *, page_size: int | None = None, **combination: float
    ) -> Iterator[Step]:
        """The steps as dictionaries, whatever is installed. Role: holder."""
        return self._transport.pages(path("jobs", job_id, "steps"), page_size, combination)

    def sweep(self, job_id: str) -> Any:
        """What the combinations of a sweep came to: a DataFrame where pandas is installed, else a
        list; a row for each `l`, `k` and `c` with the figures of its last step. Any of them that
        succeeded can be made a release: `create_release(job_id, l=…, k=…, c=…)`. Role: holder.
        """
        items: list[Any] = list(self._transport.pages(path("jobs", job_id, "sweep"), None))
        pandas = pandas_or_none()
        return items if pandas is None else pandas.DataFrame(items)


def standing(told: Mapping[str, Any]) -> str:
    """`running: searching, 1,000,000 rows, 7 steps, about 3 s left`, as far as it is told."""
    phase, left = told.get("phase"), told.get("remaining_seconds")
    text = f"{told['status']}: {phase}" if phase else str(told["status"])
    if rows := told.get("rows_read"):
        text += f", {rows:,} rows"
    if steps := told.get("steps_done"):
        text += f", {steps:,} steps"
    return text if left is None else f"{text}, about {left:.0f} s left"


def check(deadline: float | None, job_id: str) -> None:
    if deadline is not None and time.monotonic() >= deadline:
        raise TimeoutError(f"job {job_id} has not ended yet")
