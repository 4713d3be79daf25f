"""Jobs: what they ask for, their state and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from .problems import Problem, Warning
from .words import (
    ColumnRole,
    JobStatus,
    MissingSensitive,
    Model,
    Objective,
    Output,
    Recoding,
    Search,
    Split,
    SuppressionFor,
)


class _Folder(TypedDict):
    url: str


class ReleaseLocation(TypedDict):
    """`release` of a job whose release is written as files, too: a folder of the organization."""

    location: _Folder


class _Privacy(TypedDict):
    model: Model


class Privacy(_Privacy, total=False):
    """A privacy model with its parameters; lists of `l`, `k` and `c` make a sweep."""

    l: float | Sequence[float]  # noqa: E741
    k: int | Sequence[int]
    c: float | Sequence[float]
    alpha: float
    m: int
    t: float
    sensitive_values: dict[str, list[str]]
    column_limits: dict[str, int]
    min_range: dict[str, float]


class UtilityDefinition(TypedDict, total=False):
    """What the search maximizes; `weights` are of columns."""

    objective: Objective | Sequence[Objective]
    split: Split
    search: Search
    search_seconds: int
    weights: dict[str, float]
    raw_figures: bool


class PreGeneralization(TypedDict, total=False):
    """What is generalized before anything else: to a level, and values to a level."""

    level: int
    values: dict[str, list[str]]


class _JobDefinition(TypedDict):
    dataset_id: str
    privacy: Privacy


class JobDefinition(_JobDefinition, total=False):
    """The body of `POST /v1/jobs`."""

    utility: UtilityDefinition
    recoding: Recoding | Sequence[Recoding]
    output: Output
    pre_generalization: dict[str, PreGeneralization]
    suppression_limit: float
    suppression_for: SuppressionFor
    missing_sensitive: MissingSensitive
    roles: dict[str, ColumnRole]
    submissions: list[str]
    release: bool | ReleaseLocation
    seed: int
    executor: str
    acknowledge_unchanged: dict[str, str]


class Job(TypedDict, total=False):
    """An anonymization run; `progress` goes from 0 to 1, `rows_read` up to `rows`.

    `definition` is missing in lists.
    """

    id: str
    dataset_id: str
    status: JobStatus
    progress: float
    phase: str | None
    rows: int
    rows_read: int
    steps_done: int
    remaining_seconds: float | None
    warnings: list[Warning]
    error: Problem | None
    release_id: str | None
    definition: JobDefinition
    attempt: int
    created_at: str
    started_at: str | None
    ended_at: str | None


class Step(TypedDict, total=False):
    """One specialization of a top-down run; step 0 is the topmost table."""

    step: int
    attribute: str | None
    value: str | None
    children: list[str]
    score: float | None
    groups: int
    smallest_group: int
    smallest_known_group: int | None
    suppressed_rows: int
    greatest_confidence: float | None
    dr: float
    ncp: float
    ncp_by_column: dict[str, float]


class SweepItem(TypedDict, total=False):
    """The result of one combination of a sweep; `seconds` is its time."""

    l: int | None  # noqa: E741
    k: int | None
    c: float | None
    recoding: Recoding | None
    objective: Objective | None
    status: JobStatus
    steps: int | None
    groups: int | None
    smallest_group: int | None
    smallest_known_group: int | None
    suppressed_rows: int | None
    dr: float | None
    ncp: float | None
    seconds: float
    error: Problem | None
