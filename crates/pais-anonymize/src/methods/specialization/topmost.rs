//! The topmost table: the most general one, which must meet the requirement before any
//! specialization.

use pais_core::table::{EncodedTable, SubjectCounter, Subjects};

use super::requirement::{Requirement, ValueSource};
use super::sensitive::SensitiveSlots;
use crate::error::RunError;
use crate::methods::bounded_values::{ExceedingShare, check_shares, greatest_of_columns};
use crate::observer::Observer;

/// What helps other than a greater bound, where no row may be suppressed for its sensitive value.
const ALLOW_SUPPRESSION: &str = ", or allow to suppress rows with the value by `\"suppression_for\": \
     \"size_and_confidence\"` and a `suppression_limit`";

/// Draws a number below the given one, each with the same probability.
pub(super) type Draw<'a> = dyn FnMut(u64) -> u64 + 'a;

/// Checks that the topmost table of `rows` rows meets the requirement.
///
/// # Errors
/// The condition that it does not meet.
pub(super) fn check(
    rows: u64,
    requirement: &Requirement<'_>,
    sensitive: &SensitiveSlots,
) -> Result<(), RunError> {
    check_k(rows, requirement)?;
    let exceeding = exceeding_values(requirement, &sensitive.rows_by_value, rows);
    let shares = greatest_of_columns(exceeding.map(|value| value.share(requirement)));
    check_shares(&shares, rows, ALLOW_SUPPRESSION)
}

/// Returns the rows to suppress so that the topmost table meets the requirement: ascending, at most
/// `budget`.
///
/// Suppression can only fix a sensitive value that is more frequent than *C*: the minimum number of
/// its rows is suppressed, drawn at random. With fewer rows other values become more frequent, so
/// this is repeated until all values are within *C*. Each round suppresses at least one row or is
/// the last.
///
/// # Errors
/// The condition that cannot be met by suppression within the budget, or cancellation.
pub(super) fn suppress(
    table: &EncodedTable,
    requirement: &Requirement<'_>,
    sensitive: &SensitiveSlots,
    budget: u64,
    draw: &mut Draw<'_>,
    observer: &dyn Observer,
) -> Result<Vec<u32>, RunError> {
    let rows = table.rows as u64;
    check_k(rows, requirement)?;
    let whole = &sensitive.rows_by_value;
    let mut rows_by_value = whole.clone();
    let mut is_suppressed = Vec::new();
    let mut suppressed = 0u64;
    // By value, the rows that were not drawn yet; listed at the first draw.
    let mut drawable: Vec<Option<Vec<u32>>> = vec![None; whole.len()];
    loop {
        observer.check()?;
        let left = rows - suppressed;
        let Some(exceeding) = most_frequent(requirement, &rows_by_value, left) else {
            break;
        };
        let mut needed = exceeding.fewest_to_suppress(requirement);
        if suppressed + needed > budget || left - needed < requirement.k.get() {
            let first = ExceedingValue::new(requirement, whole, exceeding.value, rows);
            let all = exceeding_values(requirement, whole, rows);
            let mut shares = greatest_of_columns(all.map(|value| value.share(requirement)));
            // A value can exceed C only among the rows that suppression leaves.
            if !requirement.bounds(first.holding, first.of) {
                let first = first.share(requirement);
                shares.retain(|share| share.column != first.column);
                shares.insert(0, first);
            }
            let needs_more = left - needed >= requirement.k.get() && budget < rows;
            let remedy = if needs_more {
                ", or raise `suppression_limit`"
            } else {
                ""
            };
            check_shares(&shares, rows, remedy)?;
        }
        suppressed += needed;
        is_suppressed.resize(table.rows, false);
        let with_value = drawable[exceeding.value]
            .get_or_insert_with(|| rows_with(requirement, exceeding.value, table.rows));
        while needed > 0 && !with_value.is_empty() {
            let row = with_value.swap_remove(draw(with_value.len() as u64) as usize) as usize;
            if !is_suppressed[row] {
                is_suppressed[row] = true;
                needed -= 1;
                requirement.for_each_counted_value(row, |found| rows_by_value[found] -= 1);
            }
        }
    }
    if !has_enough_left(requirement, rows - suppressed, &is_suppressed) {
        let subjects = requirement.subjects.map_or(rows, Subjects::len);
        return Err(too_few_subjects(subjects, requirement));
    }
    let suppressed = is_suppressed
        .iter()
        .enumerate()
        .filter(|(_, is_suppressed)| **is_suppressed);
    Ok(suppressed.map(|(row, _)| row as u32).collect())
}

/// Checks that there are at least *K* persons.
fn check_k(rows: u64, requirement: &Requirement<'_>) -> Result<(), RunError> {
    let subjects = requirement.subjects.map(Subjects::len);
    RunError::check_k(rows, subjects, requirement.k.get())
}

fn too_few_subjects(subjects: u64, requirement: &Requirement<'_>) -> RunError {
    let condition = format!(
        "the table has {subjects} persons, too few for the {} that `k` asks for",
        requirement.k.get()
    );
    RunError::too_few_subjects(subjects, &condition)
}

/// Whether the rows that are left have *K* persons.
fn has_enough_left(requirement: &Requirement<'_>, left: u64, is_suppressed: &[bool]) -> bool {
    let Some(subjects) = requirement.subjects else {
        return requirement.meets_k(left);
    };
    if requirement.surely_meets_k(left) || is_suppressed.is_empty() {
        return true;
    }
    let rows = subjects.of_row().iter().zip(is_suppressed);
    let left = rows.filter(|(_, is_suppressed)| !**is_suppressed);
    let k = requirement.k.get();
    let mut counter = SubjectCounter::new(subjects.codes());
    counter.count_up_to(k, left.map(|(subject, _)| *subject)) >= k
}

/// The rows that have a counted value, ascending.
fn rows_with(requirement: &Requirement<'_>, value: usize, rows: usize) -> Vec<u32> {
    let has_value = |row: &u32| {
        let mut has_value = false;
        requirement.for_each_counted_value(*row as usize, |found| has_value |= found == value);
        has_value
    };
    (0..rows as u32).filter(has_value).collect()
}

/// A sensitive value and the rows that its share is measured on.
#[derive(Clone, Copy)]
struct ExceedingValue {
    value: usize,
    holding: u64,
    of: u64,
}

/// The sensitive values that are more frequent than *C* among `rows` rows.
fn exceeding_values(
    requirement: &Requirement<'_>,
    rows_by_value: &[u64],
    rows: u64,
) -> impl Iterator<Item = ExceedingValue> {
    let is_sensitive = |value: &usize| !requirement.counts_missing(*value as u32);
    (0..rows_by_value.len())
        .filter(is_sensitive)
        .map(move |value| ExceedingValue::new(requirement, rows_by_value, value, rows))
        .filter(|value| !requirement.bounds(value.holding, value.of))
}

/// The most frequent of these values; the first one of equally frequent ones.
fn most_frequent(
    requirement: &Requirement<'_>,
    rows_by_value: &[u64],
    rows: u64,
) -> Option<ExceedingValue> {
    let exceeding = exceeding_values(requirement, rows_by_value, rows);
    exceeding.reduce(|one, other| {
        if other.holding * one.of > one.holding * other.of {
            other
        } else {
            one
        }
    })
}

impl ExceedingValue {
    fn new(requirement: &Requirement<'_>, rows_by_value: &[u64], value: usize, rows: u64) -> Self {
        let missing = requirement.missing_of(value as u32);
        Self {
            value,
            holding: rows_by_value[value],
            of: rows - missing.map_or(0, |missing| rows_by_value[missing as usize]),
        }
    }

    /// The value with its place.
    fn share(self, requirement: &Requirement<'_>) -> ExceedingShare {
        let ValueSource { column, place } = &requirement.sources[self.value];
        ExceedingShare::new(column, *place, self.holding, self.of)
    }

    /// The minimum number of rows with the value that must be suppressed so that it is within *C*.
    fn fewest_to_suppress(self, requirement: &Requirement<'_>) -> u64 {
        let (mut low, mut high) = (0, self.holding);
        while low < high {
            let middle = low + (high - low) / 2;
            if requirement.bounds(self.holding - middle, self.of - middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}
