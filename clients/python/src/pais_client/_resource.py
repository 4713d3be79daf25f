"""What the groups of calls share."""

from __future__ import annotations

from datetime import datetime

from ._transport import Transport


class Resource:
    """A group of calls; `Client` is made of several."""

    _transport: Transport


def timestamp(value: datetime | str | None) -> str | None:
    """A point in time as RFC 3339. One without a time zone is refused: it would be a guess."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError("give the time with its zone, such as datetime.now(timezone.utc)")
    return value.isoformat()
