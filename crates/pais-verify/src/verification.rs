//! The result of a verification, and its errors.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use pais_core::cancellation::Stopped;
use pais_core::model::MissingSensitive;

/// Violating qids are counted up to this number. Beyond it the exact number does not help to
/// choose other parameters.
pub(crate) const VIOLATION_CAP: u64 = 10_000;

/// Maximum number of violating qids that the result lists.
pub(crate) const WORST_GROUPS: usize = 10;

/// Whether a table satisfies LKC-privacy (KDD'09, Definition 3.1), and how closely.
///
/// *T\[qid\]* is the group of records that hold the values `qid`; a missing value `?` is a
/// value like any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verification {
    /// Whether every qid with at most L values is shared by at least K records and no such
    /// group lets a sensitive value be inferred with a confidence above C. An empty table has no qid and
    /// holds. If the dataset has a subject column, K applies to the persons of the records.
    pub holds: bool,
    /// *|T|*, number of records in the table.
    pub rows: u64,
    /// Number of distinct generalized records over all quasi-identifiers.
    pub groups: u64,
    /// The smallest *|T\[qid\]|* over all qids with at most L values, in records, or in persons
    /// where the dataset has a subject column; 0 for an empty table. Exact, whether the table
    /// holds or not; a lower bound where labels of a column overlap.
    pub smallest_group: u64,
    /// Records, or persons, of the smallest equivalence class, the records that agree on all
    /// quasi-identifiers; 0 for an empty table. Equal to `smallest_group` where the model knows all
    /// quasi-identifiers.
    pub smallest_equivalence_class: u64,
    /// The greatest *P(s|qid)* over all qids with at most L values, from 0 to 1, measured for
    /// every declared sensitive column: over the values that the model lists for the column, else
    /// over all its values. It is measured whether the model bounds it or not; 0 if no record has
    /// such a value. Exact but for the rounding of the division; an upper bound where labels of a column
    /// overlap.
    ///
    /// Under an *L* with set-valued columns a qid is a combination of at most L facts: values of
    /// columns that are not set-valued, and items.
    ///
    /// Under k^m-anonymity a group is known by all its values of columns that are not set-valued
    /// and by at most m items.
    pub greatest_confidence: f64,
    /// The greatest *P(s|qid)* of the values that the model bounds, which `holds` compares with C;
    /// null if the model bounds none (C = 1, or no sensitive value).
    pub greatest_bounded_confidence: Option<f64>,
    /// How missing sensitive cells count in *P(s|qid)*.
    #[serde(default)]
    pub missing_sensitive: MissingSensitive,
    /// Number of sets of quasi-identifiers of the greatest size that were decided. Quasi-
    /// identifiers that hold one value throughout add nothing to a set and are left out of it.
    pub subsets: u64,
    /// Number of violating qids of the greatest size over those sets, counted up to 10,000.
    pub violations: u64,
    /// Up to 10 violating qids, the worst first: those with the fewest records (or persons) below
    /// K, then those with the greatest confidence above C. They name values of the table and
    /// belong in no error and no log.
    pub worst: Vec<WorstGroup>,
}

/// A violating qid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorstGroup {
    /// The values an adversary knows, at most L.
    pub quasi_identifiers: Vec<ColumnValue>,
    /// *|T\[qid\]|*, in records, or in persons where the dataset has a subject column.
    pub size: u64,
    /// The sensitive value of the model that is inferred best; null if the group has none.
    pub sensitive: Option<ColumnValue>,
    /// *P(s|qid)* of that value, from 0 to 1, with missing sensitive cells counted as the model
    /// says; 0 if there is none.
    pub confidence: f64,
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnValue {
    /// As declared.
    pub column: String,
    /// As released; null for a cell that holds nothing.
    pub value: Option<String>,
}

/// Why a table could not be verified: it is malformed, or the caller stopped the verification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifyError {
    /// A column that the requirement names is missing.
    #[error("the table has no column `{column}`")]
    NoSuchColumn {
        /// Its name.
        column: Box<str>,
    },
    /// Two columns have the same name.
    #[error("the table has two columns `{column}`; rename one of them")]
    RepeatedColumn {
        /// Its name.
        column: Box<str>,
    },
    /// A column has more or fewer rows than the table.
    #[error("the column `{column}` has {found} rows, but the table has {rows}")]
    UnevenColumn {
        /// Its name.
        column: Box<str>,
        /// Rows of the column.
        found: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// The list of persons has more or fewer entries than the table has rows.
    #[error("{found} rows have a person, but the table has {rows} rows")]
    UnevenSubjects {
        /// Entries of the list.
        found: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// A code is not in the dictionary.
    #[error("the column `{column}` has a code that is not in its dictionary")]
    UnknownCode {
        /// Its name.
        column: Box<str>,
    },
    /// More rows than a 32-bit count can hold.
    #[error("the table has more than 4,294,967,294 rows")]
    TooManyRows,
    /// More distinct rows and texts than may be kept in memory.
    #[error(
        "the distinct rows of the release need more than `verification_bytes`, {most} bytes; raise it, \
         or release fewer columns unchanged"
    )]
    TooManyDistinctRows {
        /// `verification_bytes`.
        most: u64,
    },
    /// More sensitive cells than a 32-bit count can hold.
    #[error(
        "the table has more than 4,294,967,294 sensitive cells; declare fewer sensitive columns"
    )]
    TooManySensitiveCells,
    /// More sets of items than can be enumerated within the budget.
    #[error(
        "there are too many sets of at most {m} items to enumerate; lower `m`, or pre-generalize \
         the items"
    )]
    TooManyItemsets {
        /// *m*.
        m: u32,
    },
    /// More combinations of facts than can be enumerated within the budget.
    #[error(
        "there are too many combinations of at most {l} values and items to enumerate; lower `l`, \
         or pre-generalize the items"
    )]
    TooManyFacts {
        /// *L*.
        l: u32,
    },
    /// A label that is not one of its column's domain.
    #[error("the column `{column}` has a label that is not of its domain")]
    UnknownLabel {
        /// Its name.
        column: Box<str>,
    },
    /// More overlaps of labels than can be compared within the budget.
    #[error("the labels of the table overlap too often to decide what each qid matches")]
    TooManyOverlaps,
    /// The model needs exactly one sensitive column, but there are none or several.
    #[error("the model needs exactly one sensitive column, but there are {found}")]
    NotOneSensitive {
        /// Number of sensitive columns.
        found: usize,
    },
    /// More releases than can be decided together.
    #[error("more than {most} releases would have to be decided together")]
    TooManyReleases {
        /// The most that can be.
        most: usize,
    },
    /// More combinations of rows of one person in several releases than can be joined.
    #[error("the releases have more than {most} combinations of rows of the same persons")]
    TooManyCombinations {
        /// The most that can be.
        most: usize,
    },
    /// A released row comes from no raw row, or two come from the same.
    #[error("the raw row of a released row is not known")]
    UnknownSource,
    /// The caller asked to stop.
    #[error("the verification was stopped")]
    Stopped,
}

impl From<Stopped> for VerifyError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}
