"""DataFrames as the body of a submission."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable, Collection
from typing import Any

from ._frames import require_pandas, require_pyarrow
from .intervals import interval_text
from .types import Column

DAY = "%Y-%m-%d"
SECOND = "%Y-%m-%dT%H:%M:%S"
SEPARATOR = "|"


def frame_to_csv(frame: Any, columns: Collection[Column] | None) -> bytes:
    """Returns the frame as CSV in the form that the dataset declares, without the index.

    If the column declares words for missing and an empty cell is not one of them, a missing value
    is replaced by the first word. Without declared columns, those of a draft are written.
    """
    out = written(frame, columns)
    for column in columns or []:
        name, words = column["name"], column.get("missing")
        if name in out and words and "" not in words and out[name].isna().any():
            values = texts(out[name]).astype(object)
            out[name] = values.where(values.notna(), words[0])
    return bytes(out.to_csv(index=False, lineterminator="\n").encode())


def frame_to_parquet(frame: Any, columns: Collection[Column] | None) -> bytes:
    """Returns the frame as Parquet, without the index.

    Numbers have their types; all other cells are the text that they are in CSV, so that the rows
    are the same in both formats.
    """
    require_pyarrow()
    buffer = io.BytesIO()
    written(frame, columns).to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


def written(frame: Any, columns: Collection[Column] | None) -> Any:
    """Returns a copy with the cells of each column as they are written in every format."""
    out = writable(frame)
    declared = {column["name"]: column for column in columns or []}
    for name in out.columns:
        out[name] = cells(out[name], declared.get(name) or {"name": name, "role": "insensitive"})
    return out


def writable(frame: Any) -> Any:
    """Returns a copy whose columns have text as names, as in the header of a file."""
    out = frame.copy(deep=False)
    out.columns = [str(name) for name in frame.columns]
    if not out.columns.is_unique:
        raise ValueError("two columns of the DataFrame have the same name; rename one")
    return out


def cells(values: Any, column: Column) -> Any:
    """Returns the cells of a column as text; numbers of a numeric or undeclared column as numbers.

    A missing cell stays missing.
    """
    pandas = require_pandas()
    kind = column.get("kind")
    if kind == "set":
        separator = column.get("separator") or SEPARATOR
        values = values.map(lambda cell: join_items(cell, separator), na_action="ignore")
    elif has_intervals(values):
        if kind in ("numeric", "date", "datetime"):
            raise ValueError(
                f"column {column['name']!r} has intervals, but its kind is {kind}; declare it as "
                "'categorical' with its labels as 'order', as Schema.from_frame does"
            )
        return values.astype(object).map(interval_text, na_action="ignore")
    elif isinstance(values.dtype, pandas.CategoricalDtype):
        labels = cells(pandas.Series(values.cat.categories), column).astype(object)
        return labels.reindex(values.cat.codes).set_axis(values.index)
    elif is_period(values):
        if kind in ("date", "datetime"):
            return timestamps(values.dt.start_time, column)
        return values.astype(object).map(period_text, na_action="ignore")
    elif pandas.api.types.is_datetime64_any_dtype(values.dtype):
        return timestamps(values, column)
    elif pandas.api.types.is_float_dtype(values.dtype) and kind != "numeric":
        present = values.dropna()
        # Missing cells make a column of whole numbers one of floats: a code 2500 would be 2500.0.
        if bool(((present % 1 == 0) & (present.abs() < 2**63)).all()):
            values = values.astype("Int64")
    elif pandas.api.types.is_object_dtype(values.dtype):
        values = values.map(object_writer(column), na_action="ignore")
    is_number = pandas.api.types.is_any_real_numeric_dtype(values.dtype)
    return values if is_number and kind in (None, "numeric") else texts(values)


def texts(values: Any) -> Any:
    """Returns the cells as text. A number of 32 bits has as many digits as it needs."""
    of_type = values.dtype.type
    is_float = require_pandas().api.types.is_float_dtype(values.dtype)
    cells = values.astype(object)
    return cells.map(lambda cell: str(of_type(cell) if is_float else cell), na_action="ignore")


def has_intervals(values: Any) -> bool:
    """Whether a column has intervals, such as the result of `pandas.cut`."""
    pandas = require_pandas()
    dtype = values.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        dtype = dtype.categories.dtype
    if isinstance(dtype, pandas.IntervalDtype):
        return True
    if not pandas.api.types.is_object_dtype(dtype):
        return False
    present = values.dropna()
    return len(present) > 0 and isinstance(present.iloc[0], pandas.Interval)


def is_period(values: Any) -> bool:
    return isinstance(values.dtype, require_pandas().PeriodDtype)


def timestamps(values: Any, column: Column) -> Any:
    """Returns points in time in the column's format, else in ISO 8601; a zone is made UTC."""
    if column.get("kind") in ("date", "datetime") and column.get("format"):
        return values.dt.strftime(column["format"])
    zone = "Z" if values.dt.tz is not None else ""
    days = bool((values.dropna().dt.normalize() == values.dropna()).all())
    if column.get("kind") == "date" and not days:
        raise ValueError(
            f"column {column['name']!r} is declared as 'date' but has times of day; send "
            "frame[column].dt.normalize(), or declare it as 'datetime'"
        )
    if days and column.get("kind") != "datetime":
        return values.dt.strftime(DAY)
    if zone:
        values = values.dt.tz_convert("UTC")
    fraction = ".%f" if (values.dt.microsecond.fillna(0) != 0).any() else ""
    return values.dt.strftime(SECOND + fraction + zone)


def period_text(period: Any) -> str:
    """Returns a period as the service labels it: `1987`, `1987-Q3`, `1987-09`, else its first day.

    A week or a business quarter has no label of its own.
    """
    unit = period.freqstr.split("-")[0]
    if unit in ("Y", "A", "YE"):
        return f"{period.year:04}"
    if unit in ("Q", "QE") and period.freqstr in ("Q", "Q-DEC", "QE-DEC"):
        return f"{period.year:04}-Q{period.quarter}"
    if unit in ("M", "ME"):
        return f"{period.year:04}-{period.month:02}"
    return str(period.start_time.strftime(DAY))


def object_writer(column: Column) -> Callable[[Any], Any]:
    """Returns what writes a cell that may be a list, a date or a time; others are unchanged."""
    dated = column.get("kind") in ("date", "datetime")

    def write(cell: Any) -> Any:
        if isinstance(cell, datetime.date):
            if dated and column.get("format"):
                return cell.strftime(str(column["format"]))
            return cell.isoformat()
        if isinstance(cell, (list, tuple, set, frozenset)):
            return join_items(cell, SEPARATOR)
        return cell

    return write


def join_items(cell: Any, separator: str) -> Any:
    """Returns a cell of a set-valued column as text; text and missing values are unchanged."""
    if isinstance(cell, str) or not hasattr(cell, "__iter__"):
        return cell
    items = [str(item) for item in cell]
    for item in items:
        if separator in item:
            raise ValueError(
                f"an item of a set contains the column's separator {separator!r}; declare another"
            )
    return separator.join(items)
