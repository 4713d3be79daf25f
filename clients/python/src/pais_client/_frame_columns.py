"""What the types of a DataFrame's columns tell about the columns of a dataset."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from . import hierarchies
from ._frame_text import SEPARATOR, cells, has_intervals, is_period, period_text
from ._frames import require_pandas
from .types import Column, ColumnOptions

MOST_PERIODS = 2000
"""Periods between the first and the last one up to which all of them are labels of the tree."""


@dataclass(frozen=True)
class FrameColumn:
    """The options of a column and the reason; `decides` if text alone does not tell them."""

    options: ColumnOptions
    reason: str
    decides: bool


def frame_columns(frame: Any) -> dict[str, FrameColumn]:
    """Returns what is known of each column, by name; nothing for plain text."""
    found = {}
    for name in frame.columns:
        known = frame_column(frame[name])
        if known is not None:
            found[str(name)] = known
    return found


def frame_column(values: Any) -> FrameColumn | None:
    pandas = require_pandas()
    dtype = values.dtype
    if has_intervals(values):
        return in_order(values, "its cells are intervals, in their order")
    if isinstance(dtype, pandas.CategoricalDtype) and dtype.ordered:
        return in_order(values, "its categories are ordered")
    if is_period(values):
        return periods(values)
    if pandas.api.types.is_bool_dtype(dtype):
        return FrameColumn({"kind": "categorical"}, "its cells are true or false", False)
    if pandas.api.types.is_numeric_dtype(dtype):
        return FrameColumn({"kind": "numeric"}, "its cells are numbers", False)
    present = values.dropna()
    if pandas.api.types.is_datetime64_any_dtype(dtype):
        if bool((present.dt.normalize() == present).all()):
            return FrameColumn({"kind": "date"}, "its cells are dates", False)
        return FrameColumn({"kind": "datetime"}, "its cells are dates with a time", False)
    if pandas.api.types.is_object_dtype(dtype) and len(present):
        return objects(present)
    return None


def in_order(values: Any, reason: str) -> FrameColumn:
    """Returns a column whose labels have an order: that of the categories, or of the intervals."""
    pandas = require_pandas()
    if isinstance(values.dtype, pandas.CategoricalDtype):
        ascending = values.cat.categories
    else:
        ascending = sorted(set(values.dropna()))
    column: Column = {"name": "", "role": "quasi_identifier", "kind": "categorical"}
    order = list(cells(pandas.Series(ascending), column))
    return FrameColumn(
        {"kind": "categorical", "taxonomy": hierarchies.ordered(order)}, reason, True
    )


def periods(values: Any) -> FrameColumn:
    """Returns a column of months, quarters or years as a tree; of other periods as dates."""
    pandas = require_pandas()
    present = values.dropna()
    labels = [] if present.empty else [period_text(present.iloc[0])]
    if not labels or labels[0].count("-") == 2:
        return FrameColumn({"kind": "date"}, "its cells are periods, each its first day", True)
    distinct = sorted(set(present))
    if distinct[-1].ordinal - distinct[0].ordinal < MOST_PERIODS:
        distinct = list(pandas.period_range(distinct[0], distinct[-1], freq=values.dtype.freq))
    rows = []
    for period in distinct:
        path = (period_text(period), f"{period.year:04}", f"{period.year // 10 * 10:04}s", "*")
        rows.append(tuple(reversed(path)))
    return FrameColumn(
        {"kind": "categorical", "taxonomy": hierarchies.tree_of(rows, "*")},
        "its cells are periods, in years and decades",
        True,
    )


def objects(present: Any) -> FrameColumn | None:
    """Returns what the objects in the cells tell, if all are of one type."""
    types = {type(cell) for cell in present}
    if types <= {list, tuple, set, frozenset}:
        return FrameColumn(
            {"kind": "set", "separator": SEPARATOR}, "its cells are lists of items", True
        )
    if types == {datetime.date}:
        return FrameColumn({"kind": "date"}, "its cells are dates", False)
    if types == {datetime.datetime}:
        return FrameColumn({"kind": "datetime"}, "its cells are dates with a time", False)
    return None
