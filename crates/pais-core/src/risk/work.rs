//! The bounds on the combinations that are examined.

use crate::definition::ColumnRole;
use crate::schema::Schema;
use crate::subsets::choose;
use crate::table::{UnchangedRisk, VALUE_BYTES};

use super::RiskError;

/// Size of the largest combinations by default.
pub const DEFAULT_COMBINED: usize = 2;

/// Maximum size of the combinations that a caller can request.
pub const MOST_COMBINED: usize = 6;

/// Maximum number of combinations that are examined.
pub(super) const MOST_COMBINATIONS: u64 = 500_000;

/// Maximum product of rows and combinations: some seconds of work.
pub(super) const MOST_WORK: u64 = 2_000_000_000;

/// Bytes of a combination that was examined.
const COMBINATION_BYTES: u64 = 64;

/// Checks that the combinations of up to `l` quasi-identifiers are not too many for this many rows.
///
/// # Errors
/// [`RiskError::TooMuchWork`], with the largest feasible `l`.
pub fn check_work(schema: &Schema, rows: u64, l: usize) -> Result<(), RiskError> {
    let columns = quasi_identifiers(schema);
    if fits(columns, rows, l) {
        return Ok(());
    }
    let feasible = (1..l).rev().find(|&l| fits(columns, rows, l));
    Err(RiskError::TooMuchWork {
        combinations: combinations(columns, l),
        l,
        columns,
        rows,
        feasible: feasible.unwrap_or(1),
    })
}

/// Bytes that a computation needs in addition to the table as read, its codes and the text. `text_bytes` is the
/// size of the distinct values of the chunks, as counted by [`crate::table::Table::text_bytes`].
pub fn bytes_needed(schema: &Schema, rows: u64, text_bytes: u64, l: usize) -> u64 {
    /// The rows of classes and where each ends, with spare capacity.
    const CLASSES_BYTES: u64 = 16;
    /// A value in the structure that divides classes, with spare capacity, and the number of its rows.
    const CELL_BYTES: u64 = 16 + 8 + 8;
    let columns = schema.stored().count() as u64;
    let threads = (rayon::current_num_threads() as u64).min(columns);
    // Each thread has all rows once, those in classes at each depth, and a bit for each person.
    let levels = (l as u64).saturating_sub(2);
    let of_threads = threads.saturating_mul(4 + levels * (CLASSES_BYTES + 1) + 1);
    // All rows, and those in classes of one column; the person of each row, and of each class.
    let shared = 4 + CLASSES_BYTES + 16;
    let combined = rows.saturating_mul(of_threads.saturating_add(shared));
    // Maximum number of values of a column.
    let values = rows.min(text_bytes / VALUE_BYTES);
    let cells = values.saturating_mul(CELL_BYTES).saturating_mul(threads);
    let listed = combinations(quasi_identifiers(schema), l).min(MOST_COMBINATIONS);
    combined
        .max(UnchangedRisk::bytes_needed(schema, rows))
        .saturating_add(cells)
        .saturating_add(listed * COMBINATION_BYTES)
}

fn quasi_identifiers(schema: &Schema) -> usize {
    schema.stored_with(ColumnRole::QuasiIdentifier).len()
}

fn fits(columns: usize, rows: u64, l: usize) -> bool {
    let combinations = combinations(columns, l);
    combinations <= MOST_COMBINATIONS && combinations.saturating_mul(rows) <= MOST_WORK
}

/// Number of combinations of 2 to `l` of the columns.
pub(super) fn combinations(columns: usize, l: usize) -> u64 {
    let of_size = (2..=l.min(columns)).map(|size| choose(columns, size));
    of_size.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::combinations;

    #[test]
    fn combinations_of_two_and_more_columns_are_counted() {
        let of_13 = [1, 2, 3, 6].map(|l| combinations(13, l));
        assert_eq!(of_13, [0, 78, 364, 4_082]);
        let small = [(0, 2), (1, 6), (3, 6)].map(|(columns, l)| combinations(columns, l));
        assert_eq!(small, [0, 0, 4]);
    }
}
