"""Intervals of pandas as text of the service, and released intervals as those of pandas."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from ._frames import require_pandas

if TYPE_CHECKING:
    import pandas as pd

IntervalKind = Literal["numeric", "date", "datetime"]
Sides = Literal["both", "left", "right", "neither"]

BRACKETS = re.compile(r"^([\[(])([^,\[\]()]*),([^,\[\]()]*)([\])])$")
CALENDAR = re.compile(r"^(\d{4})(?:-Q([1-4])|-W(\d{2})|-(\d{2})(?:-(\d{2}))?|(s))?$")
WITHOUT_BOUNDS = frozenset({"*", "?", ""})


def interval_text(interval: Any) -> str:
    """Returns an interval in the range syntax of PostgreSQL, which releases use: `[20,40)`.

    An infinite end is empty: `[60,)`.
    """
    left = "[" if interval.closed_left else "("
    right = "]" if interval.closed_right else ")"
    return f"{left}{end_text(interval.left)},{end_text(interval.right)}{right}"


def end_text(end: Any) -> str:
    if hasattr(end, "isoformat"):
        day = end.hour == end.minute == end.second == end.microsecond == 0
        return str(end.date().isoformat() if day else end.isoformat())
    if end in (float("inf"), float("-inf")):
        return ""
    number = float(end)
    return str(int(number)) if number.is_integer() else repr(number)


def parse_interval(text: str, kind: IntervalKind = "numeric") -> pd.Interval | None:
    """Returns a released label as an interval; `None` for `*` and `?`, which have no bounds.

    It reads `[30,60)`, one value such as `34` (closed at both ends), and neighbours of an order
    such as `[0,20)..[20,40)`. With the kind `date` or `datetime` the ends are `Timestamp`s, and
    periods such as `1987`, `1987-Q3`, `1987-09`, `1987-W36` and `1980s` are read too. Raises
    `ValueError` for any other text.
    """
    text = text.strip()
    if text in WITHOUT_BOUNDS:
        return None
    first, dots, last = text.partition("..")
    if dots:
        return hull(parse_interval(first, kind), parse_interval(last, kind))
    found = BRACKETS.match(text)
    if found:
        left, right = end(found[2], kind, "-inf"), end(found[3], kind, "inf")
        return interval(left, right, closed(found[1] == "[", found[4] == "]"))
    if kind != "numeric" and (period := CALENDAR.match(text)):
        start, stop = period_ends(period)
        return interval(start, stop, "left")
    value = end(text, kind, "")
    return interval(value, value, "both")


def parse_intervals(column: Any, kind: IntervalKind = "numeric") -> pd.Series:
    """Returns a column of a released table as intervals, missing where a cell has no bounds.

    The dtype is that of intervals if all are closed on the same side, else `object`. Raises
    `ValueError` with the position of the first cell that is not an interval.
    """
    pandas = require_pandas()
    intervals = []
    for position, cell in enumerate(column):
        try:
            missing = bool(pandas.isna(cell))
            intervals.append(None if missing else parse_interval(str(cell), kind))
        except ValueError:
            raise ValueError(
                f"the cell at position {position} is not an interval of the kind {kind!r}"
            ) from None
    sides = {each.closed for each in intervals if each is not None}
    dtype = None if len(sides) == 1 else object
    series: pd.Series = pandas.Series(
        intervals,
        index=getattr(column, "index", None),
        name=getattr(column, "name", None),
        dtype=dtype,
    )
    return series


def end(text: str, kind: IntervalKind, infinite: str) -> Any:
    """Returns an end of an interval. Raises `ValueError` if it is no number or date."""
    if kind == "numeric":
        number = float(text.strip() or infinite)
        return int(number) if number.is_integer() else number
    return require_pandas().Timestamp(text.strip() or "no date")


def closed(left: bool, right: bool) -> Sides:
    if left and right:
        return "both"
    return "left" if left else "right" if right else "neither"


def hull(first: pd.Interval | None, last: pd.Interval | None) -> pd.Interval:
    """Returns the smallest interval with both, the first of which begins it."""
    if first is None or last is None:
        raise ValueError("the label is not an interval")
    sides = closed(first.closed_left, last.closed_right)
    return interval(first.left, last.right, sides)


def interval(left: Any, right: Any, sides: Sides) -> pd.Interval:
    made: pd.Interval = require_pandas().Interval(left, right, closed=sides)
    return made


def period_ends(period: re.Match[str]) -> tuple[Any, Any]:
    """Returns the first day of a period of the calendar and the first day after it.

    Raises `ValueError` for a period that the calendar does not have.
    """
    pandas = require_pandas()
    year, quarter, week, month, day, decade = period.groups()
    first_month = 3 * int(quarter) - 2 if quarter else int(month or 1)
    # The first decade has no year 0.
    first_year = 1 if decade and int(year) == 0 else int(year)
    first = date(first_year, first_month, int(day or 1))
    if week:
        first, length = date.fromisocalendar(int(year), int(week), 1), {"weeks": 1}
    elif decade:
        length = {"years": 10 if int(year) else 9}
    elif quarter:
        length = {"months": 3}
    elif day:
        length = {"days": 1}
    else:
        length = {"months": 1} if month else {"years": 1}
    start = pandas.Timestamp(first)
    try:
        return start, start + pandas.DateOffset(**length)
    except (OverflowError, ValueError):
        # The calendar ends with the year 9999.
        return start, pandas.Timestamp(datetime.max)
