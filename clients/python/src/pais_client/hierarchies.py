"""Hierarchies: how the values of a column may be generalized.

The first functions build a tree from nested dictionaries, from a DataFrame of levels or from the
CSV text of ARX and Amnesia. The others describe a hierarchy that the service makes from the rows.
All results are for `taxonomy` of a column; trees are for `create_taxonomy` too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Union

from .types import (
    Age,
    Calendar,
    CalendarLevel,
    Mask,
    Ordered,
    Prefix,
    Ranges,
    Rare,
    TaxonomyNode,
)

if TYPE_CHECKING:
    import pandas as pd

Nested = Union[Mapping[str, "Nested"], Sequence[str], None]  # noqa: UP007
"""Labels with what is below them; the leaves are in lists, or have `None` below them."""


def from_nested(labels: Nested, root: str = "*") -> TaxonomyNode:
    """Returns a tree below `root`.

    `{"Blue-collar": ["Janitor", "Carpenter"], "White-collar": {"Lawyer": None}}` has three leaves.
    """
    rows: list[tuple[str, ...]] = []
    open_nodes: list[tuple[tuple[str, ...], Nested]] = [((root,), labels)]
    while open_nodes:
        path, below = open_nodes.pop()
        if isinstance(below, str):
            raise TypeError(f"below {path[-1]!r} there is text; write a list of labels")
        if not below:
            rows.append(path)
        elif isinstance(below, Mapping):
            children = [((*path, label), below[label]) for label in below]
            open_nodes += reversed(children)
        else:
            # Leaves stay in the order of the list.
            open_nodes += [((*path, label), None) for label in reversed(below)]
    return tree_of(rows, root)


def from_levels(levels: pd.DataFrame, *, root: str = "*") -> TaxonomyNode:
    """Returns the tree of a DataFrame with a column for each level, the leaves first.

    A missing cell leaves a level out, and a label repeated from one level to the next is one node.
    `root` is put on top if the rows have several tops. Rows may repeat.
    """
    columns = [levels.iloc[:, at] for at in range(levels.shape[1])]
    present = [column.notna() for column in columns]
    rows = []
    for at in range(len(levels)):
        labels = [
            label_text(column.iloc[at])
            for column, there in zip(columns, present, strict=True)
            if there.iloc[at]
        ]
        rows.append(tuple(reversed(labels)))
    return tree_of(rows, root)


def from_csv(text: str, *, delimiter: str | None = None, root: str = "*") -> TaxonomyNode:
    """Returns the tree of a hierarchy file of ARX or Amnesia: a row for each leaf, leaf first.

    Rows may have different lengths, and a label repeated from one level to the next is one node.
    The delimiter is `;`, or `,` if the first row has no `;`. `root` is put on top if the rows have
    several tops.
    """
    text = text.removeprefix("\ufeff")
    if delimiter is None:
        first = next((line for line in text.splitlines() if line.strip()), "")
        delimiter = ";" if ";" in first else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = []
    try:
        for record in reader:
            labels = [field.strip() for field in record if field.strip()]
            if labels:
                rows.append(tuple(reversed(labels)))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of the hierarchy: {error}") from error
    return tree_of(rows, root)


def prefix(lengths: Sequence[int] | None = None) -> Prefix:
    """Prefixes of codes such as ZIP, ICD and ATC; `lengths` from the longest to the shortest."""
    return {"generate": "prefix"} if lengths is None else {
        "generate": "prefix",
        "lengths": list(lengths),
    }  # fmt: skip


def mask_right() -> Mask:
    """One more character is hidden from the right at each level."""
    return {"generate": "mask_right"}


def mask_left() -> Mask:
    """One more character is hidden from the left at each level."""
    return {"generate": "mask_left"}


def ordered(
    order: Sequence[str] | None = None, *, fanout: int | None = None, balance: bool = False
) -> Ordered:
    """Neighbouring labels are merged.

    `order` has all labels, ascending; without it the column's `order` is used. `fanout` is the
    number of children of a node, by default 2. With `balance` the children have like numbers of
    rows, not of labels.
    """
    made: Ordered = {"generate": "ordered"}
    if order is not None:
        made["order"] = list(order)
    if fanout is not None:
        made["fanout"] = fanout
    if balance:
        made["balance"] = True
    return made


def ranges(
    widths: Sequence[float] | None = None, *, start: float | None = None, balance: bool = False
) -> Ranges:
    """Intervals of numbers with round ends.

    `widths` are those of each level, ascending, each a multiple of the one before; `start` is an
    end of an interval, by default 0. With `balance` an interval is divided into parts with like
    numbers of rows; `widths` is then one number, and every end is a multiple of it.
    """
    made: Ranges = {"generate": "ranges"}
    if start is not None:
        made["start"] = start
    if widths is not None:
        made["widths"] = list(widths)
    if balance:
        made["balance"] = True
    return made


def age(at: date | str, widths: Sequence[int] | None = None) -> Age:
    """Ranges of the age that somebody has on the day `at`, of dates of birth.

    `widths` are the completed years of each level, ascending, each a multiple of the one before;
    by default 5, 10 and 20.
    """
    made: Age = {"generate": "age", "at": at if isinstance(at, str) else f"{at:%Y-%m-%d}"}
    if widths is not None:
        made["widths"] = list(widths)
    return made


def calendar(levels: Sequence[CalendarLevel] | None = None) -> Calendar:
    """Periods of the calendar for dates; `levels` from the shortest to the longest."""
    return {"generate": "calendar"} if levels is None else {
        "generate": "calendar",
        "levels": list(levels),
    }  # fmt: skip


def rare(below: int | None = None) -> Rare:
    """Values with fewer than `below` rows, by default 20, are under one node."""
    return {"generate": "rare"} if below is None else {"generate": "rare", "below": below}


def label_text(value: Any) -> str:
    """Returns a label; a whole number that a missing cell made a float has no `.0`."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def tree_of(rows: Iterable[tuple[str, ...]], root: str) -> TaxonomyNode:
    """Returns the tree of paths from the top to a leaf. Raises `ValueError` if they make none."""
    parents: dict[str, str | None] = {}
    leaves: dict[str, bool] = {}
    for number, row in enumerate(rows, 1):
        path = [label for at, label in enumerate(row) if at == 0 or label != row[at - 1]]
        if "" in path:
            raise ValueError(f"row {number} of the hierarchy has an empty label")
        parent: str | None = None
        for at, label in enumerate(path):
            leaf = at + 1 == len(path)
            if parents.setdefault(label, parent) != parent:
                raise ValueError(
                    f"row {number} of the hierarchy: {label!r} is {below(parent)}, but "
                    f"{below(parents[label])} in an earlier row; labels are unique in a tree"
                )
            if leaves.setdefault(label, leaf) != leaf:
                raise ValueError(
                    f"row {number} of the hierarchy: {label!r} is a leaf in one row and has labels "
                    "below it in another"
                )
            parent = label
    return nodes_of(parents, root)


def nodes_of(parents: Mapping[str, str | None], root: str) -> TaxonomyNode:
    """Returns the tree of labels with their parents; parents come before their children."""
    nodes: dict[str, TaxonomyNode] = {label: {"label": label} for label in parents}
    tops = []
    for label, parent in parents.items():
        if parent is None:
            tops.append(nodes[label])
        else:
            nodes[parent].setdefault("children", []).append(nodes[label])
    if not tops:
        raise ValueError("the hierarchy has no labels")
    if len(tops) == 1 and "children" in tops[0]:
        return tops[0]
    if root in nodes:
        raise ValueError(
            f"the hierarchy has {len(tops)} tops and the label {root!r} already; name another root"
        )
    return {"label": root, "children": tops}


def below(parent: str | None) -> str:
    return "at the top" if parent is None else f"below {parent!r}"
