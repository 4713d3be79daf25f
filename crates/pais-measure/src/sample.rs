//! The rows that measures are computed from if a table has many.
//!
//! Counts over groups and labels are exact, whatever the size of the table. Measures that look at
//! rows one by one (classifiers, queries, distortion) read a sample, whose size does not grow with the
//! table.

use pais_core::parallel;
use pais_core::schema::Schema;

use crate::release::MeasuredRelease;

/// Maximum number of released rows that a row-wise measure reads.
pub(crate) const SAMPLED_ROWS: usize = 100_000;

/// The raw codes of the first rows of a release. These rows are scattered over the raw columns, so each column
/// is read once for all measures.
pub(crate) struct RawSample {
    /// Of the quasi-identifiers.
    pub(crate) quasi_identifiers: Vec<Vec<u32>>,
    /// Of the untouched columns.
    pub(crate) untouched: Vec<Vec<u32>>,
}

impl RawSample {
    pub(crate) fn new(release: &MeasuredRelease) -> Self {
        let rows = first_rows(release.rows);
        let sampled = |codes: &[u32]| rows.iter().map(|&row| codes[row as usize]).collect();
        Self {
            quasi_identifiers: parallel::map(release.quasi_identifiers, |it| {
                it.codes.of_rows(rows)
            }),
            untouched: parallel::map(&release.raw.untouched, |it| sampled(&it.column.codes)),
        }
    }
}

/// Bytes of the sample in a table of this many rows: a cell as it was, in the order of the groups of queries,
/// and the range and the number of its label.
pub fn sample_bytes(schema: &Schema, rows: u64) -> u64 {
    const CELL: u64 = 4 + 4 + 8 + 4;
    let cells = schema.stored().count() as u64 * rows.min(SAMPLED_ROWS as u64);
    cells.saturating_mul(CELL)
}

/// The first rows of a release. Its order is random, so that they are a sample of it, and what is
/// measured on them follows from the release alone.
pub(crate) fn first_rows<T>(rows: &[T]) -> &[T] {
    &rows[..rows.len().min(SAMPLED_ROWS)]
}
