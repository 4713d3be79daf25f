//! The rows that measures are computed from where a table has many.
//!
//! Counts over groups and labels are exact, whatever the size of the table. Measures that look at
//! rows one by one (classifiers, queries, distortion) read a sample, whose size does not grow with the
//! table.

/// Most released rows that a measure reads one by one.
pub(crate) const SAMPLED_ROWS: usize = 100_000;

/// The first rows of a release. Its order is random, so that they are a sample of it, and what is
/// measured on them follows from the release alone.
pub(crate) fn first_rows<T>(rows: &[T]) -> &[T] {
    &rows[..rows.len().min(SAMPLED_ROWS)]
}
