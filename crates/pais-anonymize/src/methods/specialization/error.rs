//! Why a search ends without an anonymous table.

use thiserror::Error;

/// Why a search ended without an anonymous table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum SpecializationError {
    /// The whole table has fewer than *K* rows.
    #[error("the table has {rows} rows, fewer than the {k} that `k` asks for")]
    FewerRowsThanK {
        /// Number of rows of the table.
        rows: u64,
        /// *K*.
        k: u64,
    },
    /// Fewer than *K* persons have rows, or would have rows that are not suppressed.
    #[error("the table has {subjects} persons, too few for the {k} that `k` asks for")]
    FewerSubjectsThanK {
        /// Number of persons of the table.
        subjects: u64,
        /// *K*.
        k: u64,
    },
    /// A sensitive value is more frequent in the whole table than *C*.
    #[error("a sensitive value is more frequent in the whole table than `c` allows")]
    MoreFrequentThanC {
        /// Index of the sensitive value among those of all sensitive columns.
        value: usize,
        /// Number of rows that have it.
        holding: u64,
        /// Number of rows that its share is measured on.
        of: u64,
        /// Number of rows of the table.
        rows: u64,
    },
    /// The observer requested a stop.
    #[error("the run was cancelled")]
    Cancelled,
}
