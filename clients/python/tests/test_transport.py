"""The transport with a mock network: retries, broken streams, changed bytes."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pais_client import (
    Client,
    IntegrityError,
    JobCancelled,
    NotFound,
    ProblemError,
    RateLimited,
    ServiceUnreachable,
)
from pais_client._events import Event, events
from pais_client._progress import TextBar
from pais_client._wait import progress_text

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of the client, recorded instead of slept."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def client(handler: Handler, **options: Any) -> Client:
    return Client(
        "http://service/base/", " secret\n", transport=httpx.MockTransport(handler), **options
    )


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    document = {"type": "about:blank", "title": code, "detail": "no", "code": code}
    return httpx.Response(status, json=document, headers=headers)


def test_the_token_is_sent_but_not_in_the_repr() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"id": "x"})

    with client(handler) as made:
        made.release("../a b/%")
    assert seen[0].headers["Authorization"] == "Bearer secret"
    assert seen[0].url.raw_path == b"/base/v1/releases/..%2Fa%20b%2F%25"
    assert "secret" not in repr(made)


def test_429_and_503_are_retried(slept: list[float]) -> None:
    answers = [
        problem(429, "too_many_requests", **{"Retry-After": "2"}),
        problem(503, "unavailable", **{"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        httpx.Response(503, text="<html>gateway</html>"),
        httpx.Response(200, json={"id": "x"}),
    ]
    assert client(lambda _: answers.pop(0)).job("x") == {"id": "x"}
    assert slept == [2, 0, 2]


def test_retries_and_pauses_are_limited(slept: list[float]) -> None:
    requests: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.path)
        return problem(429, "too_many_requests", **{"Retry-After": "3"})

    with pytest.raises(RateLimited) as refused:
        client(handler, retries=2).job("x")
    assert (len(requests), slept, refused.value.retry_after) == (3, [3, 3], 3)
    assert pickle.loads(pickle.dumps(refused.value)).code == "too_many_requests"

    slept.clear()
    with pytest.raises(RateLimited):
        client(lambda _: problem(429, "too_many_requests", **{"Retry-After": "3600"})).job("x")
    assert slept == []


def test_calls_that_are_not_idempotent_are_not_retried(slept: list[float]) -> None:
    with pytest.raises(ProblemError) as refused:
        client(lambda _: problem(503, "unavailable")).create_release("x")
    assert (refused.value.status, slept) == (503, [])


def test_a_retried_submission_starts_from_its_beginning(slept: list[float]) -> None:
    bodies: list[tuple[str, bytes]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append((request.headers["Idempotency-Key"], request.read()))
        if len(bodies) == 1:
            return problem(503, "unavailable")
        digest = hashlib.sha256(bodies[-1][1]).hexdigest()
        return httpx.Response(201, json={"id": "s", "rows": 1, "sha256": digest})

    file = io.BytesIO(b"skipped\na\n1\n")
    file.readline()
    client(handler).submit("d", file)
    assert bodies[0] == bodies[1]
    assert bodies[0][1] == b"a\n1\n"


def test_a_pipe_is_not_retried(slept: list[float]) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(ProblemError):
        client(lambda _: problem(503, "unavailable")).submit("d", Pipe(b"a\n1\n"))
    assert slept == []


def test_a_changed_submission_raises_an_integrity_error() -> None:
    answer = {"id": "s", "rows": 1, "sha256": "0" * 64}
    with pytest.raises(IntegrityError):
        client(lambda _: httpx.Response(201, json=answer)).submit("d", b"a\n1\n")


def test_a_changed_table_is_discarded(tmp_path: Path) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/tables/data"):
            return httpx.Response(200, content=b"a\n2\n")
        digest = hashlib.sha256(b"a\n1\n").hexdigest()
        return httpx.Response(200, json={"tables": [{"name": "data", "sha256": digest}]})

    target = tmp_path / "out.csv"
    target.write_text("as before")
    with pytest.raises(IntegrityError):
        client(handler).download("r", target)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"out.csv": "as before"}


def test_a_release_of_several_tables_needs_a_table_name(tmp_path: Path) -> None:
    document = {"tables": [{"name": "qit", "sha256": ""}, {"name": "st_ward", "sha256": ""}]}
    made = client(lambda _: httpx.Response(200, json=document))
    with pytest.raises(ValueError, match="qit, st_ward"):
        made.download("r", tmp_path / "out.csv")
    with pytest.raises(ValueError, match="qit, st_ward"):
        made.download("r", tmp_path / "out.csv", table="data")


def test_a_broken_event_stream_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    job = {"id": "j", "status": "cancelled", "progress": 0.5}
    streams = [
        b': hello\n\nevent: progress\ndata: {"status": "running", "progress": 0.1}\n\nevent: en',
        b"event: end\ndata: " + json.dumps(job).encode() + b"\n\n",
    ]

    def handler(_: httpx.Request) -> httpx.Response:
        if len(streams) == 1:
            monkeypatch.undo()
        return httpx.Response(200, content=streams.pop(0))

    with pytest.raises(JobCancelled) as cancelled:
        client(handler).wait("j")
    assert cancelled.value.detail == "the job was cancelled"
    assert pickle.loads(pickle.dumps(cancelled.value)).job == job


def test_a_bar_shows_the_known_progress_fields() -> None:
    progress: dict[str, object] = {"status": "queued", "progress": 0.0, "phase": None}
    assert progress_text(progress) == "queued"
    progress |= {"status": "running", "phase": "searching", "rows_read": 1_000_000, "steps_done": 7}
    progress["remaining_seconds"] = 2.6
    expected = "running: searching, 1,000,000 rows, 7 steps, about 3 s left"
    assert progress_text(progress) == expected


def test_waiting_ends_at_the_deadline() -> None:
    line = b'event: progress\ndata: {"status": "running", "progress": 0.1}\n\n'
    with pytest.raises(TimeoutError, match="job j"):
        client(lambda _: httpx.Response(200, content=line)).wait("j", timeout=0.2)


def test_events_are_parsed_as_the_standard_specifies() -> None:
    lines = ["event: a", "data: 1", "data:2", "", ": comment", "data", "", "event: lost", "", "x"]
    found = [event for event in events(lines) if event]
    assert found == [Event("a", "1\n2"), Event("message", "")]


def test_a_connection_error_is_service_unreachable() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(ServiceUnreachable, match="refused"):
        client(handler).job("x")


@pytest.mark.parametrize("content", [b"<html>sign in</html>", b"", b"\xff", b'{"id": "x"'])
def test_a_page_of_a_proxy_is_no_answer_of_the_service(content: bytes) -> None:
    made = client(lambda _: httpx.Response(200, content=content))
    calls = (lambda: made.job("x"), lambda: list(made.jobs()), lambda: made.submit("d", b"a\n"))
    for call in calls:
        with pytest.raises(ServiceUnreachable, match="not JSON") as refused:
            call()
        assert "sign in" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_answer_without_a_problem_document_is_quoted() -> None:
    with pytest.raises(NotFound) as refused:
        client(lambda _: httpx.Response(404, text="<h1>Not\n here</h1>")).job("x")
    assert (refused.value.code, refused.value.detail) == ("http_404", "<h1>Not here</h1>")


def test_the_text_bar_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    bar = TextBar(out)
    bar.show(0.5, "running: searching")
    bar.close()
    assert "[##########..........]  50 %  running: searching  0.0 s\n" in out.getvalue()
