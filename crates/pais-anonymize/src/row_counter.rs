//! Counting the rows of a table that is not in memory: the requests of a search to an engine.
//!
//! The engine learns only numbers: which column, the number of a value in it, and which values are counted
//! together.

use pais_core::cancellation::Stopped;
use pais_core::definition::JobError;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::job_checks::unfit;
use crate::observer::Observer;

/// Counts the rows of a table whose cells are numbers of distinct values.
pub trait RowCounter: Sync {
    /// Estimates the number of distinct combinations of parts of these columns from a sample of the rows. It
    /// decides what is counted at once, never what is valid.
    ///
    /// # Errors
    /// [`CountError::Cancelled`] and [`CountError::Failed`].
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError>;

    /// The distinct combinations of parts of these columns, each with its number of rows and the sum of
    /// their numbers. Rows are numbered from 0. Without columns there is one combination.
    ///
    /// # Errors
    /// [`CountError::MoreThan`] for more than `most` combinations, [`CountError::Cancelled`], and
    /// [`CountError::Failed`] for a fault of the engine.
    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError>;
}

/// Which values of a column are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnParts {
    /// Position among the stored columns.
    pub column: usize,
    /// By number of the value, its part.
    pub part_of: Vec<u32>,
    /// Number of parts, at least 1.
    pub parts: u32,
}

/// Distinct combinations of parts with their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartCounts {
    /// By requested column, the part of each combination.
    pub parts: Vec<Vec<u32>>,
    /// By combination, its rows, at least 1.
    pub rows: Vec<u64>,
    /// By combination, the sum of the numbers of its rows.
    pub number_sums: Vec<u64>,
}

/// Why nothing was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountError {
    /// The set has more combinations than requested.
    MoreThan,
    /// The run has to stop.
    Cancelled,
    /// The engine failed, or its answer contradicts the table.
    Failed(String),
}

impl From<Stopped> for CountError {
    fn from(_: Stopped) -> Self {
        Self::Cancelled
    }
}

impl From<CountError> for RunError {
    fn from(error: CountError) -> Self {
        match error {
            CountError::MoreThan => Self::internal("a set without a limit was not counted"),
            CountError::Cancelled => Self::Cancelled,
            CountError::Failed(reason) => Self::NotCounted { reason },
        }
    }
}

/// The counts of a search without rows.
#[derive(Clone, Copy)]
pub(crate) struct CountedRows<'a> {
    /// By stored column and value.
    pub(crate) rows_of: &'a [Vec<u64>],
    /// Number of rows.
    pub(crate) rows: u64,
    /// The engine that counts.
    pub(crate) counter: &'a dyn RowCounter,
    /// Maximum number of records of a frequency set.
    pub(crate) budget: usize,
}

/// The error of a job that an executor does not take. `change` says what to change.
pub(crate) fn needs_rows(pointer: &str, what: &str, change: &str) -> JobError {
    let detail = format!(
        "{what} cannot be run by an executor, which only counts rows; {change}, or leave `executor` out"
    );
    unfit(pointer, detail)
}
