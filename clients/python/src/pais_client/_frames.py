"""DataFrames. pandas is optional: it is imported only when a frame is requested."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Collection
from typing import Any

from .types import Column


def is_frame(value: object) -> bool:
    """Whether this is a DataFrame. If pandas has not been imported, it cannot be one."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def pandas_or_none() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        return None


def require_pandas() -> Any:
    pandas = pandas_or_none()
    if pandas is None:
        raise ImportError("this needs pandas: pip install 'pais-client[pandas]'")
    return pandas


def require_pyarrow() -> Any:
    require_pandas()
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'pais-client[parquet]'") from error


def frame_to_csv(frame: Any, columns: Collection[Column]) -> bytes:
    """Returns the frame as CSV in the form that the dataset declares, without the index.

    If the column declares words for missing and an empty cell is not one of them, a missing value
    is replaced by the first word. A list in a cell is written as its items, joined by the column's
    separator.
    """
    declared = {column["name"]: column for column in columns}
    out = frame.copy(deep=False)
    for name in frame.columns:
        column = declared.get(name)
        if column is None:
            # The service refuses the column and names the columns it expects.
            continue
        if column.get("kind") == "set":
            separator = column.get("separator") or "|"
            out[name] = frame[name].map(lambda cell, by=separator: join_items(cell, by))
        words = column.get("missing")
        if words and "" not in words and out[name].isna().any():
            values = out[name].astype(object)
            out[name] = values.where(values.notna(), words[0])
    return bytes(out.to_csv(index=False, lineterminator="\n").encode())


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


def frame_to_parquet(frame: Any) -> bytes:
    require_pyarrow()
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


def frame_from_csv(file: Any) -> Any:
    """Reads a released table. Only an empty cell is missing: `NA` or `None` may be a label."""
    pandas = require_pandas()
    return pandas.read_csv(file, keep_default_na=False, na_values=[""], low_memory=False)


def frame_from_parquet(file: Any) -> Any:
    require_pyarrow()
    return require_pandas().read_parquet(file, engine="pyarrow")
