"""DataFrames. pandas is optional: it is imported only when a frame is requested."""

from __future__ import annotations

import importlib
import sys
from typing import Any


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
