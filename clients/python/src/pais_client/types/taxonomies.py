"""Hierarchies: trees, and those that the service makes for a column."""

from __future__ import annotations

from typing import Literal, TypedDict

from .words import CalendarLevel


class _TreeNode(TypedDict):
    label: str


class TaxonomyNode(_TreeNode, total=False):
    """A node of a taxonomy; one without children is a leaf."""

    children: list[TaxonomyNode]


class TaxonomySummary(TypedDict):
    """A taxonomy without its tree."""

    id: str
    name: str
    nodes: int
    leaves: int
    depth: int
    created_at: str


class Taxonomy(TaxonomySummary):
    """A taxonomy."""

    root: TaxonomyNode


class UnfitValue(TypedDict):
    """A value that a column does not take, and what is wrong with it."""

    value: str
    detail: str


class _HierarchyPreview(TypedDict):
    unfit: list[UnfitValue]
    unfit_total: int
    unused: list[str]
    unused_total: int


class HierarchyPreview(_HierarchyPreview, total=False):
    """The tree of a column over some values; `unfit` and `unused` have the first 100 of each."""

    root: TaxonomyNode | None


class _Prefix(TypedDict):
    generate: Literal["prefix"]


class Prefix(_Prefix, total=False):
    """Prefixes of codes; `lengths` in characters, from the longest to the shortest."""

    lengths: list[int]


class Mask(TypedDict):
    """One more character is hidden at each level, from the right or from the left."""

    generate: Literal["mask_right", "mask_left"]


class _Ordered(TypedDict):
    generate: Literal["ordered"]


class Ordered(_Ordered, total=False):
    """Neighbours in a declared order; `fanout` is the number of children of a node.

    With `balance` the parts of an interval have like numbers of rows, not of labels.
    """

    order: list[str]
    fanout: int
    balance: bool


class _Ranges(TypedDict):
    generate: Literal["ranges"]


class Ranges(_Ranges, total=False):
    """Intervals of a numeric column, in its unit.

    With `balance` the two parts of an interval have like numbers of rows; `widths` is then one
    number, and every end is a multiple of it.
    """

    start: float
    widths: list[float]
    balance: bool


class _Calendar(TypedDict):
    generate: Literal["calendar"]


class Calendar(_Calendar, total=False):
    """Periods of the calendar, from the shortest to the longest."""

    levels: list[CalendarLevel]


class _Age(TypedDict):
    generate: Literal["age"]
    at: str


class Age(_Age, total=False):
    """Ranges of the age at the day `at`, of dates of birth; `widths` in completed years."""

    widths: list[int]


class _Rare(TypedDict):
    generate: Literal["rare"]


class Rare(_Rare, total=False):
    """Values with fewer rows than `below` are under one node."""

    below: int


GeneratedHierarchy = Prefix | Mask | Ordered | Ranges | Calendar | Age | Rare
Hierarchy = TaxonomyNode | GeneratedHierarchy
"""A tree, or how the service makes one from the rows."""
