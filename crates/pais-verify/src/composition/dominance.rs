//! Releases that say nothing beyond another one.

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedColumn;

use super::composed_release::{PlacedRelease, Published, Recoded};
use crate::verification::VerifyError;

/// A code that no code of another release implies yet.
const OPEN: u32 = u32::MAX;

/// The releases without those that say nothing beyond another one that is kept. Of releases that
/// say the same, the first is kept.
///
/// # Errors
/// [`VerifyError`] of a malformed table, and [`VerifyError::Stopped`].
pub(super) fn without_dominated<'a>(
    placed: Vec<PlacedRelease<'a>>,
    cancellation: &Cancellation,
) -> Result<Vec<PlacedRelease<'a>>, VerifyError> {
    let mut is_dropped = vec![false; placed.len()];
    for (number, release) in placed.iter().enumerate() {
        for (other_number, other) in placed.iter().enumerate() {
            cancellation.check()?;
            if number == other_number || is_dropped[other_number] || is_dropped[number] {
                continue;
            }
            is_dropped[number] = has_same_rows(release, other)
                && columns_follow(release, other)
                && labels_follow(release, other)?;
        }
    }
    // A release is dropped only because of a kept one: implication is transitive.
    let placed = placed.into_iter().zip(is_dropped);
    Ok(placed
        .filter_map(|(release, is_dropped)| (!is_dropped).then_some(release))
        .collect())
}

fn has_same_rows(one: &PlacedRelease, other: &PlacedRelease) -> bool {
    one.release.table.rows == other.release.table.rows
        && (0..one.row_of.len()).all(|raw| one.has(raw) == other.has(raw))
}

/// Whether `other` says at least as much as `release` about every column, apart from labels.
fn columns_follow(release: &PlacedRelease, other: &PlacedRelease) -> bool {
    let columns = release.release.table.columns.iter();
    let columns = columns.map(|column| &*column.name);
    let sensitive = release.release.sensitive.iter().map(|name| &**name);
    let names = columns.chain(sensitive);
    let is_anatomized = release.release.recoded == Recoded::Anatomized;
    names
        .filter(|name| !(is_anatomized && *name == pais_core::table::GROUP_COLUMN))
        .all(|name| match release.published(name) {
            Some(Published::Raw) => matches!(other.published(name), Some(Published::Raw)),
            Some(Published::Labels) => matches!(other.published(name), Some(Published::Labels)),
            Some(Published::ByGroup) => other.published(name).is_some(),
            None => false,
        })
}

/// Whether the labels of `other` say what those of `release` say, for every number of known values.
///
/// Column by column: labels of all columns together may tell rows apart that an adversary who knows one value
/// cannot. If labels overlap, a label that follows from another one may still exclude values that the other
/// covers, so a release is dropped only if its labels are equal.
///
/// # Errors
/// [`VerifyError::NoSuchColumn`] if a table lacks one.
fn labels_follow(release: &PlacedRelease, other: &PlacedRelease) -> Result<bool, VerifyError> {
    let labelled = release.labelled()?;
    let is_by_cut = match (release.release.recoded, other.release.recoded) {
        (Recoded::OneCut, Recoded::OneCut) | (Recoded::Anatomized, Recoded::Anatomized) => true,
        (Recoded::OneCut | Recoded::Overlapping | Recoded::Anatomized, _) => false,
    };
    Ok(labelled.into_iter().all(|coarser| {
        let finer = other.column(&coarser.name);
        finer.is_some_and(|finer| {
            let mut rows = (0..release.row_of.len()).filter(|&raw| release.has(raw));
            let at = |raw: usize| (release.row_of[raw] as usize, other.row_of[raw] as usize);
            if is_by_cut {
                follows(coarser, finer, rows.map(at))
            } else {
                rows.all(|raw| {
                    let (row, other_row) = at(raw);
                    label(coarser, row) == label(finer, other_row)
                })
            }
        })
    }))
}

/// The text of a cell; `None` for null.
fn label(column: &ReleasedColumn, row: usize) -> Option<&str> {
    let code = column.column.codes[row] as usize;
    column.column.dictionary.get(code).map(AsRef::as_ref)
}

/// Whether cells that are equal in `finer` are equal in `coarser`; `rows` are their rows in both.
fn follows(
    coarser: &ReleasedColumn,
    finer: &ReleasedColumn,
    mut rows: impl Iterator<Item = (usize, usize)>,
) -> bool {
    let code = |column: &ReleasedColumn, row: usize| {
        column.column.codes[row].min(column.column.dictionary.len() as u32)
    };
    let mut implied = vec![OPEN; finer.column.dictionary.len() + 1];
    rows.all(|(row, other_row)| {
        let coarse = code(coarser, row);
        let known = &mut implied[code(finer, other_row) as usize];
        if *known == OPEN {
            *known = coarse;
        }
        *known == coarse
    })
}
