"""Carries operations out without blocking an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

import httpx

from ._answers import (
    connection_options,
    document,
    error_from_response,
    request_options,
    retry_pause,
    translate_errors,
)
from ._operations import Chunks, Effect, Lines, Operation, Pages, Pause, Request, Work
from .errors import ProblemError

T = TypeVar("T")


class AsyncTransport:
    """An HTTP client for one service with one token."""

    def __init__(
        self,
        base_url: str,
        token: str,
        timeout: float,
        retries: int,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.timeout = timeout
        self.retries = retries
        self._http = httpx.AsyncClient(
            **connection_options(base_url, token, timeout), transport=transport
        )

    @property
    def base_url(self) -> str:
        return str(self._http.base_url)

    async def close(self) -> None:
        await self._http.aclose()

    async def run(self, operation: Operation[T]) -> T:
        """Carries an operation out; an error of an effect is raised inside the operation."""
        result: Any = None
        error: BaseException | None = None
        while True:
            try:
                effect = operation.send(result) if error is None else operation.throw(error)
            except StopIteration as stop:
                answer: T = stop.value
                return answer
            result, error = None, None
            try:
                result = await self._perform(effect)
            # A cancellation too reaches the operation, which may have to clean up.
            except BaseException as raised:
                error = raised

    async def iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Yields the items of a list; fetches a page when the previous one is exhausted."""
        items, cursor = await self.run(pages.page(None))
        for item in items:
            yield item
        while cursor is not None:
            items, cursor = await self.run(pages.page(cursor))
            for item in items:
                yield item

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, Work):
            return await asyncio.to_thread(effect.compute)
        attempt = 0
        while True:
            try:
                return await self._attempt(effect)
            except ProblemError as refused:
                pause = retry_pause(refused, effect, attempt, self.retries)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def _attempt(self, request: Request) -> Any:
        body = request.body() if request.body else None
        built = self._http.build_request(
            **request_options(request, self.timeout),
            content=body if body is None or isinstance(body, bytes) else in_threads(body),
        )
        with translate_errors():
            response = await self._http.send(built, stream=True)
            try:
                if not response.is_success:
                    raise error_from_response(response, await response.aread())
                return await self._receive(request, response)
            finally:
                await response.aclose()

    async def _receive(self, request: Request, response: httpx.Response) -> Any:
        match request.receive:
            case Chunks(accept):
                async for chunk in response.aiter_bytes():
                    await asyncio.to_thread(accept, chunk)
                return None
            case Lines(accept_line):
                async for line in response.aiter_lines():
                    if accept_line(line):
                        break
                return None
        return document(request, await response.aread())


async def in_threads(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yields the chunks; each is read in a thread, as reading a file blocks."""
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
