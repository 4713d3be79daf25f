"""Datasets, their profiles, drafts and risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from .problems import Warning
from .taxonomies import Hierarchy
from .words import (
    ColumnRole,
    Decimal,
    Encoding,
    Kind,
    Model,
    Recoding,
    SafeHarborCategory,
    SafeHarborRequirement,
)


class ColumnOptions(TypedDict, total=False):
    """What a column may have beside its name and role.

    `domain` is the outermost interval `[min, max]` of numbers, or of dates in ISO 8601. `format`
    is how dates are written, in the words of strftime. `from` of a set has the columns of the file
    that contain its items. `round`: interval ends in a release are multiples of it. `order` has
    the labels of an ordered column, ascending.
    """

    kind: Kind
    taxonomy: str | Hierarchy | None
    domain: Sequence[float] | Sequence[str] | None
    format: str | None
    separator: str | None
    missing: list[str] | None
    order: list[str] | None
    round: float | None
    round_range: bool


_From = TypedDict("_From", {"from": list[str] | None}, total=False)


class ColumnChange(ColumnOptions, _From, total=False):
    """A column of a change of a dataset: its name and what changes; `None` resets a field."""

    name: str
    role: ColumnRole


class _Column(TypedDict):
    name: str
    role: ColumnRole


class Column(_Column, ColumnOptions, _From, total=False):
    """A column of a dataset. Only its name and its role are required."""


class Submission(TypedDict, total=False):
    """A batch of rows; `sha256` is that of the body before compression."""

    id: str
    dataset_id: str
    rows: int
    bytes: int
    sha256: str
    created_at: str
    replaces: str
    replaced_by: str


class DatasetSummary(TypedDict):
    """A dataset in a list: `columns` and `submissions` are numbers."""

    id: str
    name: str
    description: str | None
    columns: int
    retention_days: int | None
    rows: int
    submissions: int
    created_at: str


class DatasetLocation(TypedDict):
    """Where the rows of a dataset are: a Parquet file, or a folder of them."""

    url: str
    format: Literal["parquet"]


class LegalHold(TypedDict):
    """Why and since when nothing of a dataset is deleted."""

    reason: str
    since: str


class Dataset(TypedDict):
    """A declared table and the latest 100 submissions to it, newest first."""

    id: str
    name: str
    description: str | None
    columns: list[Column]
    missing: list[str] | None
    retention_days: int | None
    submission_retention_days: int | None
    format: TextFormat | None
    location: DatasetLocation | None
    legal_hold: LegalHold | None
    rows: int
    submissions: list[Submission]
    submissions_total: int
    warnings: list[Warning]
    created_at: str


class _DatasetDefinition(TypedDict):
    name: str
    columns: list[Column]


class DatasetDefinition(_DatasetDefinition, total=False):
    """The body of `POST /v1/datasets`."""

    description: str | None
    missing: list[str] | None
    retention_days: int | None
    submission_retention_days: int | None
    format: TextFormat | None
    location: DatasetLocation | None


class TextFormat(TypedDict, total=False):
    """How the text of a file is written; what is left out has the default of the file's format."""

    delimiter: str
    decimal: Decimal
    thousands: str | None
    encoding: Encoding


class _Doubt(TypedDict):
    column: str
    question: str
    choices: list[str]


class Doubt(_Doubt, total=False):
    """A question about a column that nothing in its file decides; the first choice is proposed.

    `also` has the other columns of which the same is asked.
    """

    also: list[str]


class Draft(TypedDict):
    """A proposed dataset; `reasons` has sentences for each column.

    `safe_harbor` has the category of identifiers that a column probably is.
    """

    dataset: DatasetDefinition
    format: TextFormat
    reasons: dict[str, list[str]]
    doubts: list[Doubt]
    safe_harbor: dict[str, SafeHarborCategory]


class SetSizes(TypedDict):
    """Numbers of items in the cells of a set."""

    min: int
    mean: float
    max: int


class _ColumnProfile(TypedDict):
    name: str
    role: ColumnRole
    kind: Kind
    distinct: int
    missing: int


class ColumnProfile(_ColumnProfile, total=False):
    """One stored column in numbers."""

    min: float | None
    max: float | None
    earliest: str | None
    latest: str | None
    set_sizes: SetSizes | None
    case_variants: int
    look_alikes: int
    single_rows: int


class _Profile(TypedDict):
    dataset_id: str
    rows: int
    columns: list[ColumnProfile]
    warnings: list[Warning]


class Profile(_Profile, total=False):
    """Statistics of the stored rows, without values of cells."""

    subjects: int | None
    rows_per_subject_max: int | None
    shared_subjects: int | None
    identifier_repeats: dict[str, int] | None


class _SafeHarborAdvice(TypedDict):
    category: SafeHarborCategory
    missing: list[SafeHarborRequirement]


class SafeHarborAdvice(_SafeHarborAdvice, total=False):
    """What HIPAA Safe Harbor requires of a column; `level` is one of `pre_generalization`."""

    level: int


class _OptionalRisk(TypedDict, total=False):
    shares_by_rank: list[float]
    top_k_max: int
    unique_item_share: float
    absent_leaves: int
    safe_harbor: SafeHarborAdvice


class ColumnRisk(_OptionalRisk):
    """How well one column distinguishes rows; shares from 0 to 1.

    Of a quasi-identifier, `top_k_max` is the greatest K with which its topmost value can be
    specialized; of a sensitive column, `absent_leaves` is the number of leaves that no row has.
    """

    name: str
    role: ColumnRole
    distinctness: float
    separation: float
    unique_share: float


class CombinationRisk(TypedDict):
    """How far several columns together tell rows apart; shares from 0 to 1."""

    columns: list[str]
    distinctness: float
    unique_share: float


class Feasible(TypedDict):
    """The greatest `k` and `l` and the least `c` with which a release of all rows is possible.

    `l_max` and `c_min` are `None` where no row has a sensitive value.
    """

    k_max: int
    l_max: int | None
    c_min: float | None


class SuggestedPrivacy(TypedDict):
    """The `privacy` of a job."""

    model: Model
    l: int
    k: int
    c: float


class Suggestion(TypedDict):
    """Parameters of a job, and what they lost on a sample of the rows."""

    privacy: SuggestedPrivacy
    recoding: Recoding
    ncp: float
    groups: int


class Suggestions(TypedDict):
    """What a job can ask for; the least loss first."""

    rows: int
    items: list[Suggestion]


class TellingColumns(TypedDict):
    """Up to three columns that single out most rows together."""

    columns: list[str]
    singled_out_share: float


class UnchangedRisk(TypedDict):
    """What the columns that are released unchanged say of the rows; shares from 0 to 1."""

    columns: list[str]
    singled_out_share: float
    by_column: dict[str, float]
    most_telling: TellingColumns


class _DatasetRisk(TypedDict):
    rows: int
    subjects: int
    columns: list[ColumnRisk]
    combinations: list[CombinationRisk]
    combinations_total: int
    unique_share: float
    singling_out: list[str]
    singling_out_pairs: list[list[str]]
    feasible: Feasible
    suggestions: Suggestions


class DatasetRisk(_DatasetRisk, total=False):
    """The risk of the stored rows before a run; shares from 0 to 1.

    `subjects` is the number of persons, or of rows where no column names them. `unique_share` is
    the share of them with values of all quasi-identifiers that nobody else has. `singling_out`
    names insensitive columns, and `singling_out_pairs` pairs of them.
    """

    unchanged: UnchangedRisk
