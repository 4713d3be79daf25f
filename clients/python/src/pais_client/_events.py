"""Server-sent events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Event(NamedTuple):
    """An event: its name and its data, which may have several lines."""

    name: str
    data: str


def events(lines: Iterable[str]) -> Iterator[Event | None]:
    """Yields the events of a stream of lines, and `None` for each line that completes no event.

    The service sends comments to keep an idle connection open. The `None` for them lets the caller
    check its deadline.
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
