"""Jobs (role `holder`)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ._events import events
from ._frames import pandas_or_none
from ._progress import Bar, create_bar
from ._resource import Resource
from ._transport import path, translate_errors, without_none
from .errors import JobCancelled, JobFailed, ServiceUnreachable
from .types import Job, Step

EVENT_TIMEOUT = 60.0
"""Seconds without a line after which an event stream is closed; the service sends one every 15."""

RECONNECT_SECONDS = 60.0
"""Seconds for which `wait` reconnects to a service that does not answer; it may be restarting."""


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
        anyone who knows up to 4 values of a person finds at least 20 matching records and infers
        HIV with at most 20 % confidence. Other models: `k_anonymity`, `confidence_bounding`,
        `alpha_k`, `k_m_anonymity`, `l_diversity`. Lists of `l`, `k` or `c` make the job a sweep,
        see `sweep`.
        `utility` sets the objective of the search: `{"objective": "classification"}`,
        `discernibility` or `ncp`. `suppression_limit` is the largest share of rows that may be
        left out. `submissions` are the ids of the batches to include, by default all of them.
        `release=True` creates the release of the last step when the run succeeds; its id is
        `release_id` of the finished job. `more` are further fields of the request.

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
                "submissions": None if submissions is None else list(submissions),
                "release": release,
                **more,
            }
        )
        key = idempotency_key or str(uuid.uuid4())
        return cast(Job, self._transport.post(path("jobs"), fields, key=key))

    def jobs(self, *, page_size: int | None = None) -> Iterator[Job]:
        """Yields the organization's jobs. Role: holder."""
        return self._transport.pages(path("jobs"), page_size)

    def job(self, job_id: str) -> Job:
        """Returns the current state of a job. Role: holder."""
        return cast(Job, self._transport.get(path("jobs", job_id)))

    def cancel_job(self, job_id: str) -> Job | None:
        """Requests that a job stops; raises `Conflict` if it has ended. Role: holder."""
        return cast("Job | None", self._transport.delete(path("jobs", job_id)))

    def wait(self, job_id: str, *, progress: bool = True, timeout: float | None = None) -> Job:
        """Waits until the job has succeeded, and returns it. Role: holder.

        Shows a bar on standard error if that is a terminal, unless `progress=False`. Raises
        `JobFailed` with the reason if the job failed, `JobCancelled` (a `JobFailed` too) if it was
        cancelled, and `TimeoutError` after `timeout` seconds. After a timeout the job continues,
        and `wait` may be called again. If the service restarts, `wait` reconnects for up to a
        minute.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        progress_bar = create_bar(progress)
        try:
            job = self._follow(job_id, progress_bar, deadline)
        finally:
            progress_bar.close()
        if job["status"] == "cancelled":
            raise JobCancelled(job)
        if job["status"] != "succeeded":
            raise JobFailed(job)
        return job

    def _follow(self, job_id: str, progress_bar: Bar, deadline: float | None) -> Job:
        """Returns the job of the `end` event; reopens a stream that breaks before that event."""
        unreachable_since: float | None = None
        while True:
            try:
                for name, data in self._events(job_id, deadline):
                    unreachable_since = None
                    if name == "end":
                        progress_bar.show(data["progress"], data["status"])
                        return cast(Job, data)
                    if name == "progress":
                        progress_bar.show(data["progress"], progress_text(data))
            except ServiceUnreachable:
                unreachable_since = unreachable_since or time.monotonic()
                if time.monotonic() - unreachable_since > RECONNECT_SECONDS:
                    raise
            raise_if_past(deadline, job_id)
            time.sleep(0.5)

    def _events(self, job_id: str, deadline: float | None) -> Iterator[tuple[str, Any]]:
        read_timeout = EVENT_TIMEOUT
        if deadline is not None:
            read_timeout = max(0.1, min(read_timeout, deadline - time.monotonic()))
        stream = self._transport.stream(
            "GET",
            path("jobs", job_id, "events"),
            headers={"Accept": "text/event-stream"},
            read_timeout=read_timeout,
        )
        with stream as response, translate_errors():
            for event in events(response.iter_lines()):
                raise_if_past(deadline, job_id)
                if event is not None:
                    yield event.name, json.loads(event.data)

    def steps(self, job_id: str, **combination: float) -> Any:
        """Returns the steps of a run, as a DataFrame if pandas is installed, else as a list.

        Step 0 is the topmost table. `attribute` and `value` name what was specialized into
        `children`, and `score` is the score of that specialization. `groups`, `smallest_group`,
        `dr` (discernibility ratio) and `ncp` (normalized certainty penalty) describe the table
        after the step. Any step can be released: `create_release(job_id, step=…)`. The result is
        empty for a job without steps. For a sweep, `l=`, `k=` and `c=` select the combination.
        Role: holder.
        """
        items = list(self.iter_steps(job_id, **combination))
        pandas = pandas_or_none()
        return items if pandas is None else pandas.DataFrame(items)

    def iter_steps(
        self, job_id: str, *, page_size: int | None = None, **combination: float
    ) -> Iterator[Step]:
        """Yields the steps as dictionaries, with or without pandas. Role: holder."""
        return self._transport.pages(path("jobs", job_id, "steps"), page_size, combination)

    def sweep(self, job_id: str) -> Any:
        """Returns the results of a sweep, as a DataFrame if pandas is installed, else as a list.

        There is one row for each combination of `l`, `k` and `c`, with the figures of its last
        step. Each combination that succeeded can be released:
        `create_release(job_id, l=…, k=…, c=…)`. Role: holder.
        """
        items: list[Any] = list(self._transport.pages(path("jobs", job_id, "sweep"), None))
        pandas = pandas_or_none()
        return items if pandas is None else pandas.DataFrame(items)


def progress_text(progress: Mapping[str, Any]) -> str:
    """Formats the known fields: `running: searching, 1,000,000 rows, 7 steps, about 3 s left`."""
    phase, left = progress.get("phase"), progress.get("remaining_seconds")
    text = f"{progress['status']}: {phase}" if phase else str(progress["status"])
    if rows := progress.get("rows_read"):
        text += f", {rows:,} rows"
    if steps := progress.get("steps_done"):
        text += f", {steps:,} steps"
    return text if left is None else f"{text}, about {left:.0f} s left"


def raise_if_past(deadline: float | None, job_id: str) -> None:
    """Raises `TimeoutError` after the deadline."""
    if deadline is not None and time.monotonic() >= deadline:
        raise TimeoutError(f"job {job_id} has not ended yet; it continues, call wait() again")
