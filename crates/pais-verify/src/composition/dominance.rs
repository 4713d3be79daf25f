//! Releases that say nothing beyond another one.

use pais_core::cancellation::Cancellation;

use super::composed_release::{Meet, PlacedRelease, Published, Recoded};
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
    let groups = placed.iter().map(raw_row_groups);
    let groups: Vec<Meet> = groups.collect::<Result<_, _>>()?;
    let mut is_dropped = vec![false; placed.len()];
    for (number, release) in placed.iter().enumerate() {
        for (other_number, other) in placed.iter().enumerate() {
            if cancellation.is_cancelled() {
                return Err(VerifyError::Stopped);
            }
            if number == other_number || is_dropped[other_number] || is_dropped[number] {
                continue;
            }
            let known = (&groups[number], &groups[other_number]);
            is_dropped[number] = has_same_rows(release, other)
                && columns_follow(release, other)
                && follows(known.0, known.1, release);
        }
    }
    // A release is dropped only for one that is kept: what follows from it follows from that.
    let placed = placed.into_iter().zip(is_dropped);
    Ok(placed
        .filter_map(|(release, is_dropped)| (!is_dropped).then_some(release))
        .collect())
}

/// By which labels a release has each raw row.
fn raw_row_groups(placed: &PlacedRelease) -> Result<Meet, VerifyError> {
    let mut groups = Meet::unknown(placed.row_of.len());
    for column in placed.labelled()? {
        groups.and(column, placed.row_of.iter().copied());
    }
    Ok(groups)
}

fn has_same_rows(one: &PlacedRelease, other: &PlacedRelease) -> bool {
    one.release.table.rows == other.release.table.rows
        && (0..one.row_of.len()).all(|raw| one.has(raw) == other.has(raw))
}

/// Whether `other` says at least as much as `release` of every column, apart from labels.
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

/// Whether rows that are equal by `finer` are equal by `coarser`.
fn follows(coarser: &Meet, finer: &Meet, release: &PlacedRelease) -> bool {
    let mut implied = vec![OPEN; finer.count()];
    let codes = coarser.codes().iter().zip(finer.codes());
    codes.enumerate().all(|(raw, (&coarse, &fine))| {
        let known = &mut implied[fine as usize];
        let agrees = *known == OPEN || *known == coarse || !release.has(raw);
        *known = coarse;
        agrees
    })
}
