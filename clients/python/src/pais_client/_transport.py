"""Requests: authorization, errors, repetition, pages, streams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx

from .errors import ProblemError, ServiceUnreachable, problem_error

REPEATABLE = frozenset({429, 503})
LONGEST_WAIT = 60.0
"""A service that asks for a longer pause than this is not waited for: the caller is told."""

Body = Callable[[], "bytes | Iterator[bytes]"]


def path(*segments: str) -> str:
    """A path below `/v1`; each segment is percent-encoded, so that an id is only ever an id."""
    return "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)


def only_given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not `None`."""
    return {name: value for name, value in fields.items() if value is not None}


class Transport:
    """An HTTP client of one service under one token."""

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
        # A token read from a file brings its newline along.
        self._http = httpx.Client(
            base_url=base_url.rstrip("/"),
            headers={"Authorization": f"Bearer {token.strip()}", "User-Agent": "pais-client"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            transport=transport,
        )

    @property
    def base_url(self) -> str:
        return str(self._http.base_url)

    def close(self) -> None:
        self._http.close()

    def get(self, at: str, **params: Any) -> Any:
        return self.call("GET", at, params=only_given(params))

    def post(self, at: str, document: Any, *, key: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        content = json.dumps(document, allow_nan=False).encode()
        return self.call("POST", at, body=lambda: content, headers=headers)

    def delete(self, at: str) -> Any:
        return self.call("DELETE", at)

    def pages(
        self, at: str, page_size: int | None, more: Mapping[str, Any] | None = None
    ) -> Iterator[Any]:
        """The items of a list; the next page is fetched when the last one is used up."""
        cursor: str | None = None
        while True:
            page = self.get(at, limit=page_size, cursor=cursor, **(more or {}))
            yield from page["items"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def call(self, method: str, at: str, **options: Any) -> Any:
        """The JSON document a request is answered with; `None` where the answer is empty."""
        with self.stream(method, at, **options) as response, translated():
            content = response.read()
            return json.loads(content) if content else None

    @contextmanager
    def stream(
        self,
        method: str,
        at: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        replayable: bool = True,
        read_timeout: float | None = None,
    ) -> Iterator[httpx.Response]:
        """A successful answer whose body is still to be read; everything else is raised."""
        headers = headers or {}
        idempotent = method in ("GET", "DELETE") or "Idempotency-Key" in headers
        timeout = httpx.Timeout(
            self.timeout,
            connect=min(self.timeout, 10.0),
            read=self.timeout if read_timeout is None else read_timeout,
        )
        attempt = 0
        while True:
            request = self._http.build_request(
                method,
                at,
                params=params or None,
                headers=headers,
                content=body() if body else None,
                timeout=timeout,
            )
            with translated():
                response = self._http.send(request, stream=True)
            try:
                if response.is_success:
                    yield response
                    return
                error = refusal(response)
            finally:
                response.close()
            wait = error.retry_after if error.retry_after is not None else 0.5 * 2**attempt
            again = error.status in REPEATABLE and idempotent and replayable
            if not again or attempt >= self.retries or wait > LONGEST_WAIT:
                raise error
            time.sleep(wait)
            attempt += 1


@contextmanager
def translated() -> Iterator[None]:
    """Makes the HTTP library's errors this package's."""
    try:
        yield
    except (httpx.TransportError, httpx.DecodingError) as error:
        kind = type(error).__name__
        raise ServiceUnreachable(f"no answer from the service: {error or kind}") from error


def refusal(response: httpx.Response) -> ProblemError:
    """The error that an answer other than 2xx stands for."""
    with translated():
        content = response.read()
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    text = content[:2000].decode("utf-8", "replace")
    wait = seconds(response.headers.get("Retry-After"))
    return problem_error(response.status_code, document, text, wait)


def seconds(value: str | None) -> float | None:
    """The pause that a `Retry-After` asks for: a number of seconds, or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())
