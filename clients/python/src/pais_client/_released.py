"""Released tables as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ._cells import missing_words
from ._frames import require_pandas, require_pyarrow

LARGEST_EXACT = 2**53
"""Up to it, floating-point numbers keep every whole number."""


def frame_from_csv(file: Any, codebook: Mapping[str, Any] | None, table: str = "data") -> Any:
    """Reads a released table: its values are those of the Parquet file, but a set is text.

    The codebook says which columns have numbers, and which words mean missing. Without one,
    columns are text.
    """
    frame = require_pandas().read_csv(file, dtype=str, na_filter=False)
    if codebook:
        known = {column["name"]: column for column in codebook["columns"]}
        for name in frame.columns:
            frame[name] = typed(frame[name], known.get(name), table)
    return frame


def frame_from_parquet(file: Any) -> Any:
    """Reads a released table. Whole numbers stay such in a column with missing cells."""
    pyarrow, pandas = require_pyarrow(), require_pandas()
    frame = pandas.read_parquet(file, engine="pyarrow")
    parquet = pyarrow.parquet.ParquetFile(file)
    fields = parquet.schema_arrow
    whole_numbers = [field.name for field in fields if pyarrow.types.is_int64(field.type)]
    table = parquet.read(columns=whole_numbers)
    for name in whole_numbers:
        if table[name].null_count:
            frame[name] = pandas.array(table[name].to_pylist(), dtype="Int64")
    return frame


def typed(values: Any, column: Mapping[str, Any] | None, table: str) -> Any:
    """Returns the cells of a column in its type; `column` is `None` for one that was computed."""
    if column is None:
        return computed(values.mask(values == ""))
    if column["role"] == "quasi_identifier" and table == "data":
        # Labels, of which none means missing, or sets of labels.
        return values
    values = values.mask(values.isin(missing_words(column)))
    return numbers(values) if column["kind"] == "numeric" else values


def computed(values: Any) -> Any:
    """Returns numbers, or the bounds of dates."""
    found = numbers(values)
    if found is not values:
        return found
    pandas = require_pandas()
    is_day = all(len(text) == len("1987-09-03") for text in values.dropna())
    read: Callable[[str], date] = date.fromisoformat if is_day else datetime.fromisoformat
    dates = [None if absent else read(text) for text, absent in zip(values, values.isna())]
    return pandas.Series(dates, index=values.index, dtype=object if is_day else "datetime64[ms]")


def numbers(values: Any) -> Any:
    """Returns text as numbers of the first type that keeps them all: whole, of 64-bit floating
    point, decimal. It stays text where it has other text."""
    texts = values.dropna().unique()
    for read in (whole, floating, Decimal):
        try:
            known = {text: read(text) for text in texts}
        except (ArithmeticError, ValueError):
            continue
        if read is whole and values.hasnans:
            found = require_pandas().array([known.get(text) for text in values], dtype="Int64")
            return require_pandas().Series(found, index=values.index)
        return values.map(known)
    return values


def whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("the number has more than 64 bits")
    return number


def floating(text: str) -> float:
    number = float(text)
    if abs(number) >= LARGEST_EXACT and Decimal(repr(number)) != Decimal(text):
        raise ValueError("the number has too many digits")
    return number
