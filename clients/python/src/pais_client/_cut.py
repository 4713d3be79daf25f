"""Maps new raw rows through the cut of a release with global recoding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ._cells import ORDERED, canonical, missing_words, read_date
from ._frames import require_pandas
from .intervals import end_text, parse_interval

if TYPE_CHECKING:
    import pandas as pd

ROOT = "*"
MISSING = "?"


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
    are, but for `round`. Cells are compared as text; those of dates are `datetime`s, ISO 8601 or in
    the column's format, and those of sets are lists, or text with the column's separator.

    Raises `ValueError` for a release without a cut or codebook, for a missing quasi-identifier,
    and with the position and the column of the first cell that has no label, and why. It does not
    contain the cell.
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
        elif column.get("round") and name in frame.columns:
            mapped[name] = frame[name].map(rounding(column), na_action="ignore")
    return mapped


def rounding(column: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Returns what rounds a number of a column as the service does: to the nearest multiple of
    `round`, of two to the one further from 0; where that is a word for missing, to the next greater
    one that is none."""
    width, missing = Fraction(str(column["round"])), missing_words(column)

    def rounded(cell: Any) -> Any:
        try:
            value = Fraction(repr(float(cell)))
        except (TypeError, ValueError):
            return cell
        if canonical(str(cell), column) in missing:
            return cell
        index = math.floor(abs(value) / width + Fraction(1, 2)) * (1 if value > 0 else -1)
        while end_text(float(index * width)) in missing:
            index += 1
        multiple = float(index * width)
        if isinstance(cell, str):
            return end_text(multiple)
        return int(multiple) if isinstance(cell, Integral) and multiple.is_integer() else multiple

    return rounded


class ColumnCut:
    """The labels of one column, by which cells are mapped."""

    def __init__(
        self, column: Mapping[str, Any], labels: list[str], tree: Mapping[str, Any] | None
    ) -> None:
        self.column, self.name, self.kind = column, column["name"], column["kind"]
        self.labels = set(labels)
        self.separator: str = column.get("separator", "|")
        self.missing = missing_words(column) | {MISSING}
        above = tree or column.get("taxonomy") or {"label": ROOT}
        self.topmost: str | None = above["label"] if above["label"] in self.labels else None
        self.above: dict[str, str] = {}
        if tree:
            self.climb(tree, None)
        ordered = self.kind in ORDERED
        self.covers = [(label, self.cover(label)) for label in labels] if ordered else []
        # The outermost interval covers missing values, too: it is the whole cut.
        single = labels[0] if ordered and len(labels) == 1 else None
        outermost = single if single is not None and self.value(single) is None else None
        own = MISSING if MISSING in self.labels else None
        self.of_missing = self.topmost or outermost or own
        self.known: dict[str, str] = {}

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
        try:
            return parse_interval(label, self.kind)
        except ValueError:
            return None

    def at(self, position: int, cell: Any) -> str:
        label = self.label(cell)
        if label is None:
            raise ValueError(
                f"the cell at position {position} of the column {self.name!r} {self.why(cell)}"
            )
        return label

    def why(self, cell: Any) -> str:
        """Says why a cell has no label."""
        if self.covers and self.value(cell_text(cell)) is None:
            if self.kind == "numeric":
                return "is no number"
            form = self.column.get("format")
            return "is no date of ISO 8601" + (f" or of the format {form!r}" if form else "")
        if self.covers and not self.above:
            return "has no label: no interval of the cut has its value"
        return "has no label in the cut; a value below the cut needs the taxonomy of its column"

    def label(self, cell: Any) -> str | None:
        """Returns the label of a cell; `None` if the cut has none for it."""
        if self.kind == "set":
            return self.labels_of_set(cell)
        if require_pandas().isna(cell):
            return self.of_missing
        text = cell_text(cell)
        if text not in self.known:
            is_missing = canonical(text, self.column) in self.missing
            found = self.of_missing if is_missing else self.label_of(text)
            if found is None:
                return None
            self.known[text] = found
        return self.known[text]

    def label_of(self, cell: str) -> str | None:
        text = canonical(cell, self.column)
        if text in self.labels:
            return text
        value = self.value(cell)
        for label, interval in self.covers:
            if interval is not None and value is not None and value in interval:
                return label
        if self.covers and value is None:
            return None
        return self.above.get(text) or self.topmost

    def value(self, text: str) -> Any:
        """Returns a cell as a number or a moment; `None` if it is neither."""
        try:
            if self.kind == "numeric":
                number = float(text)
                return number if math.isfinite(number) else None
            if self.kind in ORDERED:
                return require_pandas().Timestamp(read_date(text, self.column))
        except ValueError:
            pass
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


def cell_text(cell: Any) -> str:
    return cell.isoformat() if isinstance(cell, date) else str(cell)
