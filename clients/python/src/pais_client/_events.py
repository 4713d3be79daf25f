"""Server-sent events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Event(NamedTuple):
    """An event: its name and its data, which may have several lines."""

    name: str
    data: str


def events(lines: Iterable[str]) -> Iterator[Event | None]:
    """The events of a stream, given line by line; `None` for a line that completes none.

    Comments keep a quiet connection open, and the `None` they come as lets the reader look at the
    clock.
    """
    name, data = "message", list[str]()
    for line in lines:
        if not line:
            if data:
                yield Event(name, "\n".join(data))
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        yield None
