"""Waiting for the end of a job (role `holder`)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from ._events import EventParser
from ._jobs import shown
from ._operations import Lines, Operation, Pause, Request, path
from ._progress import Bar, create_bar
from .errors import JobCancelled, JobFailed, ServiceUnreachable
from .types import Job

EVENT_TIMEOUT = 60.0
"""Seconds without a line after which an event stream is closed; the service sends one every 15."""

RECONNECT_SECONDS = 60.0
"""Seconds for which `wait` reconnects to a service that does not answer; it may be restarting."""


def wait(job_id: str, *, progress: bool = True, timeout: float | None = None) -> Operation[Job]:
    """Returns the job when it has succeeded. Role: holder.

    Shows a bar in a notebook, or on standard error if that is a terminal, unless `progress=False`.
    Raises `JobFailed` with the reason if the job failed, `JobCancelled` (a `JobFailed` too) if it
    was cancelled, and `TimeoutError` after `timeout` seconds. After a timeout the job continues,
    and `wait` may be called again. If the service restarts, `wait` reconnects for up to a minute.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    bar = create_bar(progress)
    try:
        job = yield from follow(job_id, bar, deadline)
    finally:
        bar.close()
    if job["status"] == "cancelled":
        raise JobCancelled(job)
    if job["status"] != "succeeded":
        raise JobFailed(job)
    return job


def follow(job_id: str, bar: Bar, deadline: float | None) -> Operation[Job]:
    """Returns the job of the `end` event; reopens a stream that breaks before that event."""
    unreachable_since: float | None = None
    while True:
        stream = JobStream(job_id, bar, deadline)
        try:
            yield stream.request()
        except ServiceUnreachable:
            if stream.had_events:
                unreachable_since = None
            unreachable_since = unreachable_since or time.monotonic()
            if time.monotonic() - unreachable_since > RECONNECT_SECONDS:
                raise
        if stream.job is not None:
            return stream.job
        raise_if_past(deadline, job_id)
        yield Pause(0.5)


class JobStream:
    """One connection to the events of a job."""

    def __init__(self, job_id: str, bar: Bar, deadline: float | None) -> None:
        self.job: Job | None = None
        self.had_events = False
        self._job_id, self._bar, self._deadline = job_id, bar, deadline
        self._parser = EventParser()

    def request(self) -> Request:
        read_timeout = EVENT_TIMEOUT
        if self._deadline is not None:
            read_timeout = max(0.1, min(read_timeout, self._deadline - time.monotonic()))
        return Request(
            "GET",
            path("jobs", self._job_id, "events"),
            headers={"Accept": "text/event-stream"},
            read_timeout=read_timeout,
            receive=Lines(self.accept),
        )

    def accept(self, line: str) -> bool:
        """Shows the progress of a line; returns whether the job has ended."""
        event = self._parser.feed(line)
        raise_if_past(self._deadline, self._job_id)
        if event is None:
            return False
        self.had_events = True
        data = json.loads(event.data) if event.name in ("progress", "end") else {}
        if event.name == "end":
            self._bar.show(data["progress"], data["status"])
            self.job = shown(data)
        elif event.name == "progress":
            self._bar.show(data["progress"], progress_text(data))
        return self.job is not None


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
