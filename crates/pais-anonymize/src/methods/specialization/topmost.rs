//! The topmost table: the most general one, which must meet the requirement before any
//! specialization.

use crate::observer::Observer;
use pais_core::table::EncodedTable;

use super::error::SpecializationError;
use super::requirement::Requirement;
use super::sensitive::SensitiveSlots;

/// Returns the rows to suppress so that the topmost table meets the requirement: ascending, at most
/// `budget`.
///
/// Suppression can only fix a sensitive value that is more frequent than *C*: the minimum number of
/// its rows is suppressed, the first ones in the table. With fewer rows other values become more
/// frequent, so this is repeated until all values are within *C*. Each round suppresses at least
/// one row or is the last.
///
/// # Errors
/// The condition that cannot be met by suppression within the budget, or cancellation.
pub(super) fn suppress(
    table: &EncodedTable,
    requirement: &Requirement<'_>,
    sensitive: &SensitiveSlots,
    budget: u64,
    observer: &dyn Observer,
) -> Result<Vec<u32>, SpecializationError> {
    let rows = table.rows as u64;
    if rows < requirement.k.get() {
        return Err(SpecializationError::FewerRowsThanK {
            rows,
            k: requirement.k.get(),
        });
    }
    let mut rows_by_value = sensitive.rows_by_value.clone();
    let whole = rows_by_value.clone();
    let mut is_suppressed = Vec::new();
    let mut suppressed = 0u64;
    // By value: all its rows before this one are suppressed already, so no row is checked twice.
    let mut next = vec![0usize; requirement.sensitive_values];
    loop {
        if observer.must_stop() {
            return Err(SpecializationError::Cancelled);
        }
        let left = rows - suppressed;
        let greatest = rows_by_value
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
        let error = SpecializationError::MoreFrequentThanC {
            value,
            holding: whole[value],
            rows,
        };
        let needed = fewest_to_suppress(count, left, requirement);
        if suppressed + needed > budget || left - needed < requirement.k.get() {
            return Err(error);
        }
        suppressed += needed;
        is_suppressed.resize(table.rows, false);
        let mut to_suppress = needed;
        while to_suppress > 0 && next[value] < table.rows {
            let row = next[value];
            next[value] += 1;
            let mut has_value = false;
            requirement.for_each_sensitive_value(row, |found| has_value |= found == value);
            if has_value && !is_suppressed[row] {
                is_suppressed[row] = true;
                to_suppress -= 1;
                requirement.for_each_sensitive_value(row, |found| rows_by_value[found] -= 1);
            }
        }
    }
    let suppressed = is_suppressed
        .iter()
        .enumerate()
        .filter(|(_, is_suppressed)| **is_suppressed);
    Ok(suppressed.map(|(row, _)| row as u32).collect())
}

/// The minimum number of `count` rows with a value that must be suppressed among `left` rows so
/// that the value is within *C*.
fn fewest_to_suppress(count: u64, left: u64, requirement: &Requirement<'_>) -> u64 {
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
