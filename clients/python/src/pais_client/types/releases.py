"""Releases, their reports and their grants."""

from __future__ import annotations

from typing import Any, TypedDict

from .admin import Approval
from .datasets import UnchangedRisk
from .jobs import PreGeneralization
from .problems import Warning
from .taxonomies import TaxonomyNode
from .words import (
    ColumnOutcome,
    ColumnRole,
    Kind,
    MissingSensitive,
    RiskAnswer,
    SafeHarborCategory,
    SafeHarborFinding,
    SafeHarborRequirement,
    SuppressionFor,
    Verdict,
)


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


class _Named(TypedDict):
    name: str


class CodebookDataset(_Named, total=False):
    """The dataset of a release."""

    description: str


class CodebookOrganization(_Named, total=False):
    """The organization that made a release."""

    display_name: str


class Codebook(TypedDict):
    """What resolves the labels of a release."""

    dataset: CodebookDataset
    organization: CodebookOrganization
    columns: list[CodebookColumn]


class EditionPlace(TypedDict):
    """The edition of a publication that a release is of."""

    publication_id: str
    number: int


class Release(TypedDict, total=False):
    """An immutable anonymized table, or the tables of an anatomized one.

    `subjects` is the number of persons whose rows are released, where a column names them.
    """

    id: str
    name: str | None
    job_id: str
    dataset_id: str
    step: int | None
    rows: int
    suppressed_rows: int
    subjects: int
    tables: list[Table]
    privacy: dict[str, Any]
    cut: dict[str, list[str]] | None
    verification: Verification
    verdict: Verdict
    edition: EditionPlace
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
    not_compared: list[str]


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


class ItemCounts(TypedDict):
    """The items of a set-valued quasi-identifier, raw and released."""

    raw: int
    released: int
    raw_cells_without_items: int
    released_cells_without_items: int


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
    items_by_column: dict[str, ItemCounts]
    entropy_loss_by_column: dict[str, float]
    frequency_survival_by_column: dict[str, float]
    association_survival: float
    greatest_confidence: float
    smallest_known_group: int
    group_sizes: list[SizeBucket]
    classification_error: ClassificationError | None
    query_error: QueryError | None
    item_query_error: QueryError | None
    sampled_rows: int | None


class LengthRisk(TypedDict):
    """The risk from an adversary who knows at most `length` quasi-identifiers of a person."""

    length: int
    smallest: int
    share_below_k: float
    greatest_confidence: float


class QidSizes(_From):
    """The combinations of known values that `from` to `to` records have."""

    qids: int
    to: int


_FromShare = TypedDict("_FromShare", {"from": float})


class QidConfidences(_FromShare):
    """The combinations of known values with a greatest confidence from `from` to below `to`."""

    qids: int
    to: float


class ShareAbove(TypedDict):
    """The share of the records with a greater risk than `threshold`."""

    threshold: float
    share: float


class AttributeRisk(TypedDict):
    """The greatest share of one sensitive value that an adversary of the model finds."""

    highest: float
    column: str


class _Risk(TypedDict):
    highest: float
    average: float
    records_at_highest: int


class RiskReport(_Risk, total=False):
    """The probability of finding a person's record, from 0 to 1."""

    prosecutor: float
    journalist: float
    marketer: float
    share_above: list[ShareAbove]
    by_length: list[LengthRisk]
    by_length_exact: bool
    lengths_left_out: list[int]
    qid_sizes: list[QidSizes]
    qid_confidences: list[QidConfidences]
    insensitive_singled_out: list[str]
    greatest_confidence_per_subject: float | None
    unchanged: UnchangedRisk
    attribute: AttributeRisk | None


class SinglingOut(TypedDict):
    """Whether records can be isolated that are of one person."""

    answer: RiskAnswer
    smallest_known_group: int
    unique_by_quasi_identifiers: float
    unique_share: float
    unique_by_all_columns: float


class Linkability(TypedDict):
    """Whether records of one person, or of a group of persons, can be linked."""

    answer: RiskAnswer
    smallest_group: int
    exact_links: list[str]


class Inference(TypedDict):
    """Whether the value of an attribute can be deduced with significant probability."""

    answer: RiskAnswer
    greatest_confidence: float
    unprotected: list[str]
    listed_only: list[str]


class Opinion(TypedDict):
    """The three questions of opinion 05/2014 of the Article 29 Working Party."""

    singling_out: SinglingOut
    linkability: Linkability
    inference: Inference


class RiskThreshold(TypedDict):
    """The risk beside the threshold of EMA Policy 0070 and of Health Canada."""

    threshold: float
    highest: float
    highest_is_within: bool
    average: float
    average_is_within: bool


class SafeHarborColumn(TypedDict):
    """A column of a category, what happened to it, and what the rule requires beyond that."""

    name: str
    outcome: ColumnOutcome
    missing: list[SafeHarborRequirement]


class SafeHarborCategoryFinding(TypedDict):
    """What became of one category of identifiers."""

    letter: str
    category: SafeHarborCategory
    title: str
    finding: SafeHarborFinding
    columns: list[SafeHarborColumn]


class SafeHarbor(TypedDict):
    """The 18 categories of HIPAA Safe Harbor, and released columns that are of none."""

    categories: list[SafeHarborCategoryFinding]
    unrecognized: list[str]


class _SmallCells(TypedDict):
    least: int
    smallest: int
    all_are_within: bool


class SmallCells(_SmallCells, total=False):
    """The groups beside the smallest cell that CMS permits to be shown."""

    share_in_smaller: float


class Guidelines(TypedDict):
    """The answers of a release to the questions of guidelines."""

    note: str
    opinion_05_2014: Opinion
    risk_threshold: RiskThreshold
    safe_harbor: SafeHarbor
    small_cells: SmallCells


class LabelShare(TypedDict):
    """The share of a label, a raw value or a bin."""

    label: str
    share: float


class ColumnDistribution(TypedDict):
    """The values of a generalized column, raw and released."""

    column: str
    raw: list[LabelShare]
    released: list[LabelShare]


class _Report(TypedDict):
    utility: UtilityReport
    risk: RiskReport
    rows: int
    suppressed_rows: int


class Report(_Report, total=False):
    """Utility and risk of a release. `distributions` are for its holder."""

    subjects: int | None
    pre_generalization: dict[str, PreGeneralization] | None
    verdict: Verdict
    acknowledged_unchanged: dict[str, str] | None
    guidelines: Guidelines
    distributions: list[ColumnDistribution]
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
