"""Maps new raw rows through the cut of a release with global recoding."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ._frames import require_pandas
from .intervals import parse_interval

if TYPE_CHECKING:
    import pandas as pd

ROOT = "*"
MISSING = "?"
WEEK = re.compile(r"^(\d{4})-W(\d{2})$")


def transform(
    release: Mapping[str, Any],
    frame: pd.DataFrame,
    *,
    taxonomies: Mapping[str, Mapping[str, Any]] | None = None,
) -> pd.DataFrame:
    """Returns the rows with the labels of the release's cut in place of raw values.

    A model that was trained on a release is applied to the result, not to raw rows. `release` is
    the document of `Client.release`. Numbers and dates need its codebook alone. Where a taxonomy
    has values below the cut, `taxonomies` has the tree of the column; a value that is a label of
    the cut needs none. Identifiers and the subject are left out, and other columns stay as they
    are. Cells are compared as text; those of dates are `datetime`s or ISO 8601, and those of sets
    are lists, or text with the column's separator.

    Raises `ValueError` for a release without a cut or codebook, for a missing quasi-identifier,
    and with the position and the column of the first cell that has no label. It does not contain
    the cell.
    """
    require_pandas()
    cut, codebook = release.get("cut"), release.get("codebook")
    if not cut:
        raise ValueError("the release has no cut; only global recoding maps new rows")
    if not codebook:
        raise ValueError("the release has no codebook; fetch it by `release`, or make it again")
    mapped = frame.copy()
    for column in codebook["columns"]:
        name = column["name"]
        if column["role"] in ("identifier", "subject"):
            mapped = mapped.drop(columns=name, errors="ignore")
        elif name in cut:
            if name not in frame.columns:
                raise ValueError(f"the frame has no column {name!r}")
            tree = (taxonomies or {}).get(name)
            cells = ColumnCut(column, cut[name], tree)
            mapped[name] = [cells.at(position, cell) for position, cell in enumerate(frame[name])]
    return mapped


class ColumnCut:
    """The labels of one column, by which cells are mapped."""

    def __init__(
        self, column: Mapping[str, Any], labels: list[str], tree: Mapping[str, Any] | None
    ) -> None:
        self.name, self.kind = column["name"], column.get("kind", "categorical")
        self.labels = set(labels)
        self.separator: str = column.get("separator", "|")
        self.missing = {str(word) for word in column.get("missing", [""])}
        above = tree or column.get("taxonomy") or {"label": ROOT}
        self.topmost: str | None = above["label"] if above["label"] in self.labels else None
        self.above: dict[str, str] = {}
        if tree:
            self.climb(tree, None)
        ordered = self.kind in ("numeric", "date", "datetime")
        self.covers = [(label, self.cover(label)) for label in labels] if ordered else []
        self.known: dict[Any, str] = {}

    def climb(self, node: Mapping[str, Any], label: str | None) -> None:
        """Notes the label of the cut that is at or above each node."""
        own = str(node["label"])
        label = own if own in self.labels else label
        if label is not None:
            self.above[own] = label
        for child in node.get("children", []):
            self.climb(child, label)

    def cover(self, label: str) -> pd.Interval | None:
        """Returns the interval of a label; `None` if it has none."""
        week = WEEK.match(label)
        if week and self.kind != "numeric":
            pandas = require_pandas()
            monday = pandas.Timestamp(date.fromisocalendar(int(week[1]), int(week[2]), 1))
            return pandas.Interval(monday, monday + pandas.Timedelta(days=7), closed="left")
        try:
            return parse_interval(label, self.kind)
        except ValueError:
            return None

    def at(self, position: int, cell: Any) -> str:
        label = self.label(cell)
        if label is None:
            raise ValueError(
                f"the cell at position {position} of the column {self.name!r} has no label in the "
                "cut; a value below the cut needs the taxonomy of its column"
            )
        return label

    def label(self, cell: Any) -> str | None:
        """Returns the label of a cell; `None` if the cut has none for it."""
        if self.kind == "set":
            return self.labels_of_set(cell)
        if cell is None or cell != cell or str(cell).strip() in self.missing | {MISSING}:
            return self.topmost or MISSING
        key = cell if isinstance(cell, str) else (type(cell), cell)
        if key not in self.known:
            found = self.label_of(cell)
            if found is None:
                return None
            self.known[key] = found
        return self.known[key]

    def label_of(self, cell: Any) -> str | None:
        text: str = str(cell).strip()
        if text in self.labels:
            return text
        value = self.value(cell)
        for label, interval in self.covers:
            if interval is not None and value is not None and value in interval:
                return label
        if self.covers and value is None:
            return None
        return self.above.get(text) or self.topmost

    def value(self, cell: Any) -> Any:
        """Returns a cell as a number or a moment; `None` if it is neither."""
        if self.kind == "numeric":
            try:
                number = float(cell)
            except (TypeError, ValueError):
                return None
            return number if math.isfinite(number) else None
        if self.kind in ("date", "datetime"):
            try:
                iso = cell if isinstance(cell, date) else datetime.fromisoformat(str(cell).strip())
                return require_pandas().Timestamp(iso)
            except ValueError:
                return None
        return None

    def labels_of_set(self, cell: Any) -> str | None:
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return ""
        items = (
            cell.split(self.separator) if isinstance(cell, str) else [str(item) for item in cell]
        )
        if isinstance(cell, str) and cell in self.missing | {""}:
            return ""
        labels = [self.label_of(item) for item in items]
        if None in labels:
            return None
        return self.separator.join(sorted({label for label in labels if label is not None}))
