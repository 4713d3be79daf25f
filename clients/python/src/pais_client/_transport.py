"""Carries operations out, one request after another."""

from __future__ import annotations

import time
from collections.abc import Iterator
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


class Transport:
    """An HTTP client for one service with one token."""

    def __init__(
        self,
        base_url: str,
        token: str,
        timeout: float,
        retries: int,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self.timeout = timeout
        self.retries = retries
        self._http = httpx.Client(
            **connection_options(base_url, token, timeout), transport=transport
        )

    @property
    def base_url(self) -> str:
        return str(self._http.base_url)

    def close(self) -> None:
        self._http.close()

    def run(self, operation: Operation[T]) -> T:
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
                result = self._perform(effect)
            # An interrupt too reaches the operation, which may have to clean up.
            except BaseException as raised:
                error = raised

    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Yields the items of a list; fetches a page when the previous one is exhausted."""
        items, cursor = self.run(pages.page(None))
        yield from items
        while cursor is not None:
            items, cursor = self.run(pages.page(cursor))
            yield from items

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            return time.sleep(effect.seconds)
        if isinstance(effect, Work):
            return effect.compute()
        attempt = 0
        while True:
            try:
                return self._attempt(effect)
            except ProblemError as refused:
                pause = retry_pause(refused, effect, attempt, self.retries)
                if pause is None:
                    raise
            time.sleep(pause)
            attempt += 1

    def _attempt(self, request: Request) -> Any:
        built = self._http.build_request(
            **request_options(request, self.timeout),
            content=request.body() if request.body else None,
        )
        with translate_errors():
            response = self._http.send(built, stream=True)
            try:
                if not response.is_success:
                    raise error_from_response(response, response.read())
                return self._receive(request, response)
            finally:
                response.close()

    def _receive(self, request: Request, response: httpx.Response) -> Any:
        match request.receive:
            case Chunks(accept):
                for chunk in response.iter_bytes():
                    accept(chunk)
                return None
            case Lines(accept_line):
                for line in response.iter_lines():
                    if accept_line(line):
                        break
                return None
        return document(request, response.read())
