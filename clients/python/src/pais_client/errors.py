"""The exceptions of the client. All errors of the service and the network are `PaisError`s."""

from __future__ import annotations

from typing import Any, cast

from .types import Fault, Job, Problem


class PaisError(Exception):
    """The base of all errors of this package."""


class ServiceUnreachable(PaisError):
    """There was no answer, or none of the service: a wrong address, a network fault, a restart.

    It is unknown whether a request that creates something was carried out.
    """


class IntegrityError(PaisError):
    """Bytes changed in transit: a checksum differs from the one that the service reports."""


class ProblemError(PaisError):
    """The service refused the request.

    `status` is the HTTP status and `code` a stable word to branch on. `detail` is a sentence that
    describes the problem. `errors` names the places; for a refused submission these are the first
    20 invalid cells by `line` and `column`, and `errors_by_column` has the number of all of them in
    each column. `retry_after` is the pause in seconds that the service
    asks for, or `None`. The error never contains raw cells, so it may be logged.
    """

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        self.problem = problem
        self.status: int = problem.get("status", 0)
        self.code: str = problem.get("code", "")
        self.title: str = problem.get("title", "")
        self.detail: str = problem.get("detail", "")
        self.errors: list[Fault] = problem.get("errors") or []
        self.errors_by_column: dict[str, int] = problem.get("errors_by_column") or {}
        self.retry_after = retry_after
        super().__init__(f"{self.status} {self.code}: {describe(problem)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.retry_after)


class NotFound(ProblemError):
    """404: it does not exist or belongs to another organization; the answer is the same."""


class Conflict(ProblemError):
    """409: the name is taken, the job has ended, the idempotency key was used for other data."""


class RateLimited(ProblemError):
    """429: too many requests with this token; wait `retry_after` seconds."""


class JobFailed(PaisError):
    """The job did not succeed, and nothing was released.

    `detail` names the condition that does not hold and what would satisfy it. `code` is a stable
    word, `problem` the complete problem document and `job` the job.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        status = job.get("status", "failed")
        self.problem: Problem = job.get("error") or {
            "code": status,
            "detail": f"the job was {status}" if status == "cancelled" else f"the job {status}",
        }
        self.code: str = self.problem.get("code", "")
        self.detail: str = self.problem.get("detail", "")
        self.errors: list[Fault] = self.problem.get("errors") or []
        super().__init__(f"job {job.get('id')}: {self.code}: {describe(self.problem)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.job,)


class JobCancelled(JobFailed):
    """The job was cancelled, by a call or because its dataset was deleted."""


def describe(problem: Problem) -> str:
    """Returns the detail of a problem, followed by one line for each place that it names."""
    lines = [problem.get("detail") or problem.get("title") or "no detail was given"]
    for fault in problem.get("errors") or []:
        places = {
            "line": fault.get("line"),
            "column": fault.get("column"),
            "at": fault.get("pointer"),
        }
        place = ", ".join(f"{word} {at}" for word, at in places.items() if at is not None)
        text = "  " + (f"{place}: " if place else "") + fault.get("detail", "")
        if fault.get("suggested_fix"):
            text += f" ({fault['suggested_fix']})"
        lines.append(text)
    return "\n".join(lines)


def problem_error(
    status: int, document: object, text: str, retry_after: float | None
) -> ProblemError:
    """Returns the error for an answer: a problem document, or the text of a proxy in between."""
    if isinstance(document, dict) and "code" in document:
        problem = cast(Problem, {**document, "status": status})
    else:
        detail = " ".join(text.split())[:300] or "the answer has no body"
        problem = {"status": status, "code": f"http_{status}", "detail": detail}
    kinds: dict[int, type[ProblemError]] = {404: NotFound, 409: Conflict, 429: RateLimited}
    return kinds.get(status, ProblemError)(problem, retry_after)
