//! The bounds on the combinations that are examined.

use crate::definition::ColumnRole;
use crate::schema::Schema;

use super::RiskError;

/// Size of the largest combinations where none is asked for.
pub const DEFAULT_COMBINED: usize = 2;

/// Size of the largest combinations that can be asked for.
pub const MOST_COMBINED: usize = 6;

/// Most combinations that are examined.
pub(super) const MOST_COMBINATIONS: u64 = 500_000;

/// Most rows times combinations: some seconds of work.
pub(super) const MOST_WORK: u64 = 2_000_000_000;

/// Bytes of a combination that was examined.
const COMBINATION_BYTES: u64 = 64;

/// Checks that the combinations of up to `l` quasi-identifiers are not too many for this many rows.
///
/// # Errors
/// [`RiskError::TooMuchWork`], with the greatest `l` that is not.
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

/// Bytes that a computation needs beside the table as read, its codes, and the text.
pub fn bytes_needed(schema: &Schema, rows: u64, l: usize) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    // Each thread has the rows in classes at each depth; one more copy is shared, and the persons
    // of rows and of parts take another three.
    let copies = threads.saturating_mul(l as u64).saturating_add(4);
    let listed = combinations(quasi_identifiers(schema), l).min(MOST_COMBINATIONS);
    let codes = rows.saturating_mul(4).saturating_mul(copies);
    codes.saturating_add(listed * COMBINATION_BYTES)
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
    let columns = columns as u64;
    let mut of_size = columns;
    let mut sum = 0u64;
    for size in 2..=(l as u64).min(columns) {
        // Exact: the product is divisible, unless it has reached the greatest number.
        let Some(product) = of_size.checked_mul(columns - size + 1) else {
            return u64::MAX;
        };
        of_size = product / size;
        sum = sum.saturating_add(of_size);
    }
    sum
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
