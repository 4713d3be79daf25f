//! The topmost table: the most general one, which must hold before anything can be specialized.

use crate::Observer;
use pais_core::table::EncodedTable;

use super::requirement::Requirement;
use super::search::SearchError;
use super::sensitive::Sensitive;

/// The rows to suppress before the topmost table holds, ascending; at most `budget`.
///
/// Only a sensitive value more frequent than *C* can be mended there: the fewest of its rows
/// that bring it down are suppressed, the first in the table. Fewer rows make other values more
/// frequent, so this is repeated until all are within *C*; each round suppresses a row or ends.
///
/// # Errors
/// The condition that no suppression within the budget meets.
pub fn suppress(
    table: &EncodedTable,
    requirement: &Requirement<'_>,
    sensitive: &Sensitive,
    budget: u64,
    observer: &dyn Observer,
) -> Result<Vec<u32>, SearchError> {
    let rows = table.rows as u64;
    if rows < requirement.k.get() {
        return Err(SearchError::FewerRowsThanK {
            rows,
            k: requirement.k.get(),
        });
    }
    let mut holding = sensitive.holding.clone();
    let whole = holding.clone();
    let mut gone = Vec::new();
    let mut lost = 0u64;
    // Rows of a value before this one are gone already, so no row is looked at twice for it.
    let mut next = vec![0usize; requirement.sensitive_values];
    loop {
        if observer.must_stop() {
            return Err(SearchError::Cancelled);
        }
        let left = rows - lost;
        let greatest = holding
            .iter()
            .copied()
            .enumerate()
            .max_by_key(|&(value, count)| (count, !value));
        let Some((value, count)) = greatest else {
            break;
        };
        if !requirement.c.is_exceeded_by(count, left) {
            break;
        }
        let refused = SearchError::MoreFrequentThanC {
            value,
            holding: whole[value],
            rows,
        };
        let needed = fewest(count, left, requirement);
        if lost + needed > budget || left - needed < requirement.k.get() {
            return Err(refused);
        }
        lost += needed;
        gone.resize(table.rows, false);
        let mut still = needed;
        while still > 0 && next[value] < table.rows {
            let row = next[value];
            next[value] += 1;
            let mut has = false;
            requirement.sensitive_of(row, |found| has |= found == value);
            if has && !gone[row] {
                gone[row] = true;
                still -= 1;
                requirement.sensitive_of(row, |found| holding[found] -= 1);
            }
        }
    }
    let gone = gone.iter().enumerate().filter(|(_, gone)| **gone);
    Ok(gone.map(|(row, _)| row as u32).collect())
}

/// The fewest of `count` rows that must go from `left` before the rest are within *C*.
fn fewest(count: u64, left: u64, requirement: &Requirement<'_>) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if requirement.c.is_exceeded_by(count - middle, left - middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
