"""Requests: authorization, errors, retries, pages, streams."""

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

RETRYABLE_STATUSES = frozenset({429, 503})
MAX_RETRY_WAIT = 60.0
"""Seconds. If the service asks for a longer pause, the error is raised instead of retrying."""

Body = Callable[[], "bytes | Iterator[bytes]"]


def path(*segments: str) -> str:
    """Returns a path below `/v1`; segments are percent-encoded, so an id cannot add segments."""
    return "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that are not `None`."""
    return {name: value for name, value in fields.items() if value is not None}


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
        # A token that was read from a file may end with a newline.
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
        return self.call("GET", at, params=without_none(params))

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
        """Yields the items of a list; fetches a page when the previous one is exhausted."""
        cursor: str | None = None
        while True:
            page = self.get(at, limit=page_size, cursor=cursor, **(more or {}))
            yield from page["items"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def call(self, method: str, at: str, **options: Any) -> Any:
        """Returns the JSON document of the answer, or `None` if the answer is empty."""
        with self.stream(method, at, **options) as response, translate_errors():
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
        """Yields a successful response whose body has not been read.

        Raises `ProblemError` for any other status, after retrying where that is safe.
        """
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
            with translate_errors():
                response = self._http.send(request, stream=True)
            try:
                if response.is_success:
                    yield response
                    return
                error = error_from_response(response)
            finally:
                response.close()
            wait = error.retry_after if error.retry_after is not None else 0.5 * 2**attempt
            again = error.status in RETRYABLE_STATUSES and idempotent and replayable
            if not again or attempt >= self.retries or wait > MAX_RETRY_WAIT:
                raise error
            time.sleep(wait)
            attempt += 1


@contextmanager
def translate_errors() -> Iterator[None]:
    """Converts errors of the HTTP library to `ServiceUnreachable`."""
    try:
        yield
    except (httpx.TransportError, httpx.DecodingError) as error:
        kind = type(error).__name__
        raise ServiceUnreachable(f"no answer from the service: {error or kind}") from error


def error_from_response(response: httpx.Response) -> ProblemError:
    """Returns the error for a response with a status other than 2xx."""
    with translate_errors():
        content = response.read()
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    text = content[:2000].decode("utf-8", "replace")
    wait = retry_after_seconds(response.headers.get("Retry-After"))
    return problem_error(response.status_code, document, text, wait)


def retry_after_seconds(value: str | None) -> float | None:
    """Returns the pause of a `Retry-After` header (a number of seconds or a date) in seconds."""
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
