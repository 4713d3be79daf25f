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
    """Neighbours in a declared order; `fanout` is the number of children of a node."""

    order: list[str]
    fanout: int


class _Ranges(TypedDict):
    generate: Literal["ranges"]


class Ranges(_Ranges, total=False):
    """Intervals of a numeric column, in its unit."""

    start: float
    widths: list[float]


class _Calendar(TypedDict):
    generate: Literal["calendar"]


class Calendar(_Calendar, total=False):
    """Periods of the calendar, from the shortest to the longest."""

    levels: list[CalendarLevel]


class _Rare(TypedDict):
    generate: Literal["rare"]


class Rare(_Rare, total=False):
    """Values with fewer rows than `below` are under one node."""

    below: int


GeneratedHierarchy = Prefix | Mask | Ordered | Ranges | Calendar | Rare
Hierarchy = TaxonomyNode | GeneratedHierarchy
"""A tree, or how the service makes one from the rows."""
