"""Answers: which are errors, and after which pause a request is repeated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from ._operations import Request
from .errors import ProblemError, ServiceUnreachable, problem_error

RETRYABLE_STATUSES = frozenset({429, 503})
MAX_RETRY_WAIT = 60.0
"""Seconds. If the service asks for a longer pause, the error is raised instead of retrying."""


def connection_options(base_url: str, token: str, timeout: float) -> dict[str, Any]:
    """Returns the arguments of an HTTP client for one service with one token."""
    return {
        "base_url": base_url.rstrip("/"),
        # A token that was read from a file may end with a newline.
        "headers": {"Authorization": f"Bearer {token.strip()}", "User-Agent": "pais-client"},
        "timeout": request_timeout(timeout, None),
    }


def request_timeout(timeout: float, read: float | None) -> httpx.Timeout:
    return httpx.Timeout(
        timeout, connect=min(timeout, 10.0), read=timeout if read is None else read
    )


def request_options(request: Request, timeout: float) -> dict[str, Any]:
    """Returns the arguments of an HTTP request, other than its content."""
    return {
        "method": request.method,
        "url": request.at,
        "params": request.params or None,
        "headers": dict(request.headers),
        "timeout": request_timeout(timeout, request.read_timeout),
    }


def retry_pause(error: ProblemError, request: Request, attempt: int, retries: int) -> float | None:
    """Returns the seconds after which to repeat a refused request; `None` if it must not be."""
    pause = error.retry_after if error.retry_after is not None else 0.5 * 2**attempt
    again = error.status in RETRYABLE_STATUSES and request.idempotent and request.replayable
    return pause if again and attempt < retries and pause <= MAX_RETRY_WAIT else None


def document(request: Request, content: bytes) -> Any:
    """Returns the JSON of an answer, or `None` if that of a deletion is empty.

    Raises `ServiceUnreachable` for anything else, such as the page of a proxy. It is not quoted.
    """
    if not content and request.method == "DELETE":
        return None
    try:
        return json.loads(content)
    except ValueError:
        raise ServiceUnreachable(
            f"the answer to {request.method} {request.at} is not JSON, so it is not from the "
            "service; check the address, and whether a proxy answers in its place"
        ) from None


@contextmanager
def translate_errors() -> Iterator[None]:
    """Converts errors of the HTTP library to `ServiceUnreachable`."""
    try:
        yield
    except (httpx.TransportError, httpx.DecodingError) as error:
        kind = type(error).__name__
        raise ServiceUnreachable(f"no answer from the service: {error or kind}") from error


def error_from_response(response: httpx.Response, content: bytes) -> ProblemError:
    """Returns the error for a response with a status other than 2xx."""
    try:
        problem = json.loads(content)
    except ValueError:
        problem = None
    text = content[:2000].decode("utf-8", "replace")
    wait = retry_after_seconds(response.headers.get("Retry-After"))
    return problem_error(response.status_code, problem, text, wait)


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
