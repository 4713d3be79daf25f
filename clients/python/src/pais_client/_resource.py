"""The base class of the groups of calls."""

from __future__ import annotations

from datetime import datetime

from ._transport import Transport


class Resource:
    """A group of calls; `Client` inherits from several."""

    _transport: Transport


def timestamp(value: datetime | str | None) -> str | None:
    """Returns a point in time as RFC 3339; raises `ValueError` if it has no time zone."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError("the time has no time zone; add one, as in datetime.now(timezone.utc)")
    return value.isoformat()
