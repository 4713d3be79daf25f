"""The documents of the service, for type checkers; at run time they are plain dictionaries.

A service newer than this client may send further fields; the dictionaries contain them although
they are not declared here. Times are RFC 3339 strings in UTC, ids are UUID strings.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Role = Literal["admin", "holder", "recipient", "auditor"]
JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Format = Literal["csv", "ndjson", "parquet"]
RowsFormat = Literal["csv", "tsv", "ndjson", "parquet"]
Encoding = Literal["utf-8", "iso-8859-1", "windows-1252", "utf-16"]

Document = dict[str, Any]
"""A document whose fields are described in the service's API reference (`/docs`)."""


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


class Organization(TypedDict):
    """A hospital, or a recipient of releases."""

    id: str
    name: str
    display_name: str | None
    created_at: str


class Token(TypedDict):
    """A token without its secret."""

    id: str
    organization: str
    organization_id: str
    role: Role
    label: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class NewToken(Token):
    """A token with its secret, which is returned only when the token is created."""

    token: str


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


class _Column(TypedDict):
    name: str
    role: Literal[
        "identifier", "subject", "quasi_identifier", "sensitive", "class", "insensitive"
    ]


class Column(_Column, total=False):
    """A column of a dataset. Only its name and its role are required."""

    kind: Literal["categorical", "numeric", "date", "datetime", "set"]
    taxonomy: str | TaxonomyNode | None
    domain: list[float] | list[str] | None
    format: str | None
    separator: str | None
    missing: list[str] | None


class Submission(TypedDict, total=False):
    """A batch of rows; `sha256` is that of the body before compression."""

    id: str
    dataset_id: str
    rows: int
    bytes: int
    sha256: str
    created_at: str


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


class Dataset(TypedDict):
    """A declared table and the latest 100 submissions to it, newest first."""

    id: str
    name: str
    description: str | None
    columns: list[Column]
    missing: list[str] | None
    retention_days: int | None
    rows: int
    submissions: list[Submission]
    submissions_total: int
    created_at: str


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
    error: Problem | None
    release_id: str | None
    definition: Document
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
    suppressed_rows: int
    greatest_confidence: float | None
    dr: float
    ncp: float
    ncp_by_column: dict[str, float]


class Table(TypedDict, total=False):
    """A table of a release; `sha256` is that of its CSV, uncompressed."""

    name: str
    rows: int
    bytes: int
    sha256: str


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
    privacy: Document
    cut: dict[str, list[str]] | None
    verification: Document
    sha256: str | None
    created_at: str


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


class AuditEvent(TypedDict):
    """An action in the auditor's organization."""

    id: str
    at: str
    action: str
    subject: str | None
    token_id: str | None
    detail: Document
