"""The asyncio client: it has the calls of `Client`, and carries them out the same way."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from service import Service
from test_anonymize import K5, ROLES, patients

from pais_client import AsyncClient, Client, JobCancelled, ProblemError, ServiceUnreachable
from pais_client.async_client import AsyncDatasetCalls
from pais_client.client import DatasetCalls


def client(handler: Callable[[httpx.Request], httpx.Response], **options: Any) -> AsyncClient:
    async def answer(request: httpx.Request) -> httpx.Response:
        await request.aread()
        return handler(request)

    return AsyncClient(
        "http://service/base/", "secret\n", transport=httpx.MockTransport(answer), **options
    )


@pytest.mark.parametrize(
    ("blocking", "asynchronous"), [(Client, AsyncClient), (DatasetCalls, AsyncDatasetCalls)]
)
def test_both_clients_have_the_same_calls(blocking: type, asynchronous: type) -> None:
    def calls(kind: type) -> dict[str, Any]:
        return {
            name: (inspect.signature(each).parameters, inspect.getdoc(each))
            for name, each in vars(kind).items()
            if inspect.isfunction(each) and name not in ("__init__", "__repr__")
            and not name.endswith(("enter__", "exit__")) and name != "close"
        }  # fmt: skip

    assert calls(blocking) == calls(asynchronous)
    assert len(calls(blocking)) >= 8
    assert all(document for _, document in calls(blocking).values())


def test_a_call_shows_the_parameters_of_its_operation() -> None:
    assert list(inspect.signature(Client.submit).parameters)[:3] == ["self", "dataset_id", "data"]
    assert Client.submit.__name__ == "submit"


def test_refused_calls_are_retried_after_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    answers = [
        httpx.Response(429, headers={"Retry-After": "2"}),
        httpx.Response(503),
        httpx.Response(200, json={"id": "x"}),
    ]
    assert asyncio.run(client(lambda _: answers.pop(0)).job("x")) == {"id": "x"}
    assert slept == [2, 1.0]
    with pytest.raises(ProblemError):
        asyncio.run(client(lambda _: httpx.Response(503)).create_release("x"))


def test_a_file_is_streamed_and_its_sum_compared(tmp_path: Path) -> None:
    content = b"a\n" + b"1\n" * 400_000
    rows = tmp_path / "rows.csv"
    rows.write_bytes(content)

    def handler(request: httpx.Request) -> httpx.Response:
        digest = hashlib.sha256(request.content).hexdigest()
        return httpx.Response(201, json={"id": "s", "sha256": digest})

    submission = asyncio.run(client(handler).submit("d", rows))
    assert submission["sha256"] == hashlib.sha256(content).hexdigest()


def test_pages_are_fetched_when_needed() -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        cursor = request.url.params.get("cursor", "0")
        seen.append(cursor)
        return httpx.Response(200, json={"items": [{"id": cursor}], "next_cursor": str(len(seen))})

    async def first_two() -> list[str]:
        found = []
        async for each in client(handler).releases():
            found.append(each["id"])
            if len(found) == 2:
                break
        return found

    assert asyncio.run(first_two()) == ["0", "1"]
    assert seen == ["0", "1"]


def test_a_broken_event_stream_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"id": "j", "status": "cancelled", "progress": 0.5}
    streams = [b"event: progr", b"event: end\ndata: " + json.dumps(job).encode() + b"\n\n"]
    with pytest.raises(JobCancelled):
        asyncio.run(client(lambda _: httpx.Response(200, content=streams.pop(0))).wait("j"))
    assert streams == []


def test_a_connection_error_is_service_unreachable() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(ServiceUnreachable, match="refused"):
        asyncio.run(client(handler).job("x"))


def test_the_same_schema_is_drafted(service: Service) -> None:
    token = service.token("clinic-of-loops", "holder")

    async def drafted() -> Any:
        async with AsyncClient(service.url, token) as holder:
            return await holder.draft_schema(patients())

    with Client(service.url, token) as holder:
        assert asyncio.run(drafted()) == holder.draft_schema(patients())


def test_a_frame_is_anonymized_and_downloaded(service: Service, tmp_path: Path) -> None:
    token = service.token("clinic-of-loops", "holder")

    async def run() -> tuple[pd.DataFrame, Path, int]:
        async with AsyncClient(service.url, token) as holder:
            result = await holder.anonymize(patients(), roles=ROLES, privacy=K5)
            target = await holder.download(result.release_id, tmp_path / "out.csv")
            left = [each async for each in holder.datasets()]
            return result.frame(), target, len(left)

    frame, target, left = asyncio.run(run())
    assert frame.groupby(["age", "ward"]).size().min() >= 5
    assert pd.read_csv(target).shape == frame.shape
    assert left == 0


def test_a_cancelled_task_leaves_nothing(service: Service) -> None:
    token = service.token("clinic-of-cancelled-loops", "holder")

    async def run() -> list[Any]:
        stored = asyncio.Event()
        network = httpx.AsyncHTTPTransport()

        async def handler(request: httpx.Request) -> httpx.Response:
            response = await network.handle_async_request(request)
            if request.url.path.endswith("/submissions"):
                await response.aread()
                stored.set()
                await asyncio.sleep(60)
            return response

        transport = httpx.MockTransport(handler)
        async with AsyncClient(service.url, token, transport=transport) as holder:
            task = asyncio.ensure_future(holder.anonymize(patients(), roles=ROLES, privacy=K5))
            await stored.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return [each async for each in holder.datasets()]

    assert asyncio.run(run()) == []


def test_a_page_of_a_proxy_is_no_answer_of_the_service() -> None:
    async def check() -> None:
        async with client(lambda _: httpx.Response(200, text="<html>sign in</html>")) as made:
            with pytest.raises(ServiceUnreachable, match="not JSON"):
                await made.job("x")

    asyncio.run(check())
