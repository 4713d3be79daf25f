"""Releases, their reports and their grants."""

from __future__ import annotations

from typing import Any, TypedDict

from .admin import Approval
from .jobs import PreGeneralization
from .problems import Warning
from .taxonomies import TaxonomyNode
from .words import ColumnRole, Kind, MissingSensitive, SuppressionFor


class Table(TypedDict, total=False):
    """A table of a release; `sha256` is that of its CSV, uncompressed. Both it and `bytes` are `None`
    where the rows are in the files of the release alone."""

    name: str
    rows: int
    bytes: int | None
    sha256: str | None


class Verification(TypedDict, total=False):
    """What the check of the finished table found."""

    holds: bool
    rows: int
    groups: int
    smallest_group: int
    smallest_equivalence_class: int
    greatest_confidence: float | None
    greatest_bounded_confidence: float | None
    subsets: int
    violations: int


class Withdrawal(TypedDict):
    """Since when and why a release is withdrawn."""

    at: str
    reason: str
class _CodebookColumn(TypedDict):
    name: str
    role: ColumnRole
    kind: Kind


_Sources = TypedDict("_Sources", {"from": list[str]}, total=False)


class CodebookColumn(_CodebookColumn, _Sources, total=False):
    """A column of a release; `taxonomy` has its labels and those above them, `from` what a set is made of."""

    taxonomy: TaxonomyNode
    domain: list[float] | list[str]
    separator: str
    format: str
    round: float
    missing: list[str]


class Codebook(TypedDict):
    """What resolves the labels of a release."""

    dataset: dict[str, str]
    organization: dict[str, str]
    columns: list[CodebookColumn]


class Release(TypedDict, total=False):
    """An immutable anonymized table, or the tables of an anatomized one."""

    id: str
    name: str | None
    job_id: str
    dataset_id: str
    step: int | None
    rows: int
    suppressed_rows: int
    tables: list[Table]
    privacy: dict[str, Any]
    cut: dict[str, list[str]] | None
    verification: Verification
    suppression_for: SuppressionFor | None
    missing_sensitive: MissingSensitive | None
    warnings: list[Warning]
    sha256: str | None
    codebook: Codebook
    purpose: str
    created_at: str
    approval: Approval
    withdrawn: Withdrawal


class ReleaseFile(TypedDict):
    """A Parquet file of a release at its holder's location."""

    table: str
    name: str
    rows: int
    bytes: int
    sha256: str


class Composition(TypedDict):
    """What a release and all that a recipient knows of its dataset say together."""

    holds: bool
    releases: list[str]
    smallest_group: int | None
    greatest_confidence: float | None
    exact: bool
    reason: str | None


_From = TypedDict("_From", {"from": int})


class SizeBucket(_From):
    """The groups that have `from` to `to` rows."""

    groups: int
    rows: int
    to: int


class QueryError(TypedDict, total=False):
    """Mean relative error of counting queries."""

    all: float
    below_one_percent: float
    from_one_percent: float
    queries: int
    queries_from_one_percent: int
    standard_error: float


class _ClassificationError(TypedDict):
    ce: float
    ce_spread: float
    repeats: int
    trained_rows: int
    tested_rows: int


class ClassificationError(_ClassificationError, total=False):
    """Errors of a classifier on the release and, for the holder, on raw rows."""

    be: float | None
    ue: float | None
    ce_minus_be: float | None
    ue_minus_ce: float | None


class _Utility(TypedDict):
    dr: float
    discernibility: int
    groups: int
    smallest_group: int
    average_group: float
    average_group_per_record: float


class UtilityReport(_Utility, total=False):
    """What a table is still worth; each measure is defined in the service's documentation."""

    ncp: float
    ncp_by_column: dict[str, float]
    information_remain: float
    information_remain_by_column: dict[str, float]
    item_loss_by_column: dict[str, float] | None
    greatest_confidence: float
    smallest_known_group: int
    group_sizes: list[SizeBucket]
    classification_error: ClassificationError | None
    query_error: QueryError | None
    sampled_rows: int | None


class _Risk(TypedDict):
    highest: float
    average: float
    records_at_highest: int


class RiskReport(_Risk, total=False):
    """The probability of finding a person's record, from 0 to 1."""

    greatest_confidence_per_subject: float | None
    unchanged: UnchangedRisk
    attribute: AttributeRisk | None


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


class AttributeRisk(TypedDict):
    """The greatest share of one sensitive value that an adversary of the model finds."""

    highest: float
    column: str


class _Report(TypedDict):
    utility: UtilityReport
    risk: RiskReport
    rows: int
    suppressed_rows: int


class Report(_Report, total=False):
    """Utility and risk of a release."""

    subjects: int | None
    pre_generalization: dict[str, PreGeneralization] | None
    verdict: str
    acknowledged_unchanged: dict[str, str] | None
    warnings: list[Warning]


class Recipient(TypedDict):
    """The organization that a grant is for."""

    id: str
    name: str


class Grant(TypedDict):
    """One organization's right to fetch one release."""

    id: str
    release_id: str
    recipient: Recipient
    purpose: str
    created_at: str
    expires_at: str | None
