"""Errors and warnings."""

from __future__ import annotations

from typing import TypedDict


class Fault(TypedDict, total=False):
    """One error in a request: a place in its JSON, or a cell of its table."""

    pointer: str | None
    line: int | None
    column: str | None
    detail: str
    suggested_fix: str | None


class Problem(TypedDict, total=False):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[Fault]
    errors_by_column: dict[str, int]


class _Warning(TypedDict):
    code: str
    detail: str


class Warning(_Warning, total=False):
    """What a holder should know about a dataset, a job or a release that is not refused.

    `pointer` is into the dataset's definition, or into the job. No value of a cell is quoted.
    """

    pointer: str | None
    columns: list[str]
