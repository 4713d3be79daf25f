"""The words of the service."""

from __future__ import annotations

from typing import Literal

Role = Literal["admin", "holder", "recipient", "auditor", "officer"]
"""The role of a token."""

ColumnRole = Literal[
    "identifier", "subject", "quasi_identifier", "sensitive", "class", "insensitive"
]
"""What a column is for the adversary and the analyst.

`identifier` is dropped while the upload is parsed and never stored. `subject` (at most one) names
the person a row is about; it is stored only as a keyed hash and never released. `class` is at most
one.
"""

Kind = Literal["categorical", "numeric", "date", "datetime", "set"]
"""How the cells of a column are read."""

Model = Literal[
    "lkc",
    "k_anonymity",
    "confidence_bounding",
    "alpha_k",
    "k_m_anonymity",
    "l_diversity",
    "distinct_l_diversity",
    "entropy_l_diversity",
    "recursive_cl_diversity",
    "t_closeness",
]
"""A privacy model."""

Recoding = Literal["global", "local"]
Output = Literal["generalized", "anatomized"]
Objective = Literal["classification", "discernibility", "discernibility_eq4", "ncp"]
Split = Literal["fixed", "best_valid"]
Search = Literal["greedy", "thorough"]
SuppressionFor = Literal["size", "size_and_confidence"]
MissingSensitive = Literal["excluded", "counted"]
Decision = Literal["approved", "rejected"]
ApprovalStatus = Literal["pending", "approved", "rejected"]
EditionLabels = Literal["as_released", "common"]
EditionStatus = Literal[
    "queued", "running", "awaiting_approval", "published", "refused", "failed"
]
Trigger = Literal["submission", "manual"]
JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled"]

Verdict = Literal["holds", "holds_but_singles_out", "does_not_hold"]
"""What can be said of a release at a glance."""

RiskAnswer = Literal["possible", "partly_limited", "limited", "unknown"]
"""An answer to a question of opinion 05/2014; none says that a risk is excluded."""

SafeHarborCategory = Literal[
    "names",
    "geographic_subdivisions",
    "dates",
    "telephone_numbers",
    "fax_numbers",
    "email_addresses",
    "social_security_numbers",
    "medical_record_numbers",
    "health_plan_beneficiary_numbers",
    "account_numbers",
    "certificate_numbers",
    "vehicle_identifiers",
    "device_identifiers",
    "urls",
    "ip_addresses",
    "biometric_identifiers",
    "photographs",
    "other_identifiers",
]
"""A category of identifiers of HIPAA Safe Harbor."""

SafeHarborFinding = Literal["no_column_recognized", "removed", "permitted", "to_check", "missing"]
SafeHarborRequirement = Literal[
    "remove_column",
    "state_or_larger",
    "three_digits",
    "year_only",
    "ages_over_89",
    "population",
    "years_of_ages_over_89",
    "meaning_of_labels",
]
ColumnOutcome = Literal["dropped", "one_label", "generalized", "unchanged"]

Format = Literal["csv", "ndjson", "parquet"]
"""A format of released tables."""

Intervals = Literal["bounds"]
"""What a released table has beside its labels: columns with their bounds."""

RowsFormat = Literal["csv", "tsv", "ndjson", "parquet"]
"""A format of submitted rows."""

FrameFormat = Literal["csv", "parquet"]
"""A format in which a DataFrame is sent or read."""

Encoding = Literal["utf-8", "iso-8859-1", "windows-1252", "utf-16"]
Decimal = Literal[".", ","]
CalendarLevel = Literal["day", "week", "month", "quarter", "year", "decade"]
