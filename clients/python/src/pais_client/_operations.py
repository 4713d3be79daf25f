"""What a call does, without a network: requests and pauses that a transport carries out.

A call is an `Operation`: a generator that yields effects, receives their results and returns the
result of the call. The transports of `Client` and `AsyncClient` carry out the same operations, so
each call is written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")

Body = Callable[[], "bytes | Iterator[bytes]"]
"""Returns the bytes to send; each call starts from the beginning."""


@dataclass(frozen=True)
class Chunks:
    """Passes the bytes of an answer on as they arrive."""

    accept: Callable[[bytes], object]


@dataclass(frozen=True)
class Lines:
    """Passes the lines of an answer on until `accept` returns true or the answer ends."""

    accept: Callable[[str], bool]


@dataclass(frozen=True)
class Request:
    """A request. Its result is the JSON of the answer, or `None` with `receive`."""

    method: str
    at: str
    params: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    replayable: bool = True
    """Whether the body can be sent again."""
    read_timeout: float | None = None
    """Seconds to wait for data, if longer than the client's timeout."""
    receive: Chunks | Lines | None = None

    @property
    def idempotent(self) -> bool:
        """Whether the request may be repeated when it was refused for now."""
        return self.method in ("GET", "DELETE") or "Idempotency-Key" in self.headers


@dataclass(frozen=True)
class Pause:
    """Waits, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Work:
    """Computes something that takes long, such as the text of a DataFrame.

    The asynchronous client does it in a thread.
    """

    compute: Callable[[], Any]


Effect = Request | Pause | Work
Operation = Generator[Effect, Any, T]


def path(*segments: str) -> str:
    """Returns a path below `/v1`; segments are percent-encoded, so an id cannot add segments."""
    return "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that are not `None`."""
    return {name: value for name, value in fields.items() if value is not None}


def get(at: str, **params: Any) -> Request:
    return Request("GET", at, params=without_none(params))


def delete(at: str) -> Request:
    return Request("DELETE", at)


def post(at: str, document: Any, *, key: str | None = None) -> Request:
    headers = {} if key is None else {"Idempotency-Key": key}
    return with_json("POST", at, document, headers)


def patch(at: str, document: Any) -> Request:
    return with_json("PATCH", at, document, {})


def put(at: str, document: Any) -> Request:
    return with_json("PUT", at, document, {})


def with_json(method: str, at: str, document: Any, headers: Mapping[str, str]) -> Request:
    content = json.dumps(document, allow_nan=False).encode()
    headers = {"Content-Type": "application/json", **headers}
    return Request(method, at, headers=headers, body=lambda: content)


@dataclass(frozen=True)
class Pages(Generic[T]):
    """A list that the service returns in pages."""

    at: str
    page_size: int | None
    item: Callable[[Any], T]
    """Converts an item of the service's answer."""
    params: Mapping[str, Any] = field(default_factory=dict)

    def page(self, cursor: str | None) -> Operation[tuple[list[T], str | None]]:
        """Returns the items of a page and the cursor of the next page."""
        answer = yield get(self.at, limit=self.page_size, cursor=cursor, **self.params)
        return [self.item(each) for each in answer["items"]], answer.get("next_cursor")

    def all(self) -> Operation[list[T]]:
        """Returns the items of all pages."""
        items, cursor = yield from self.page(None)
        while cursor is not None:
            more, cursor = yield from self.page(cursor)
            items += more
        return items
