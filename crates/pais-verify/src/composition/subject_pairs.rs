//! Rows of one person in different releases.

use super::super::verification::VerifyError;
use super::composed_release::PlacedRelease;

/// Most pairs of rows that are joined.
const MOST_PAIRS: usize = 1 << 25;

/// Two raw rows of one person: the first only in one release, the second only in the other.
pub(super) type RowPair = (u32, u32);

/// The pairs of raw rows of one person of which `one` has only the first and `other` only the
/// second. A row that both have is joined with itself instead.
///
/// # Errors
/// [`VerifyError::TooManyPairs`].
pub(super) fn pairs_of_subjects(
    one: &PlacedRelease,
    other: &PlacedRelease,
    subjects: &[u32],
) -> Result<Vec<RowPair>, VerifyError> {
    let only = |has: &PlacedRelease, lacks: &PlacedRelease| {
        let rows = (0..subjects.len()).filter(|&raw| has.has(raw) && !lacks.has(raw));
        let mut rows: Vec<u32> = rows.map(|raw| raw as u32).collect();
        rows.sort_unstable_by_key(|&raw| subjects[raw as usize]);
        rows
    };
    let (firsts, seconds) = (only(one, other), only(other, one));
    let subject_of = |raw: &u32| subjects[*raw as usize];
    let mut pairs = Vec::new();
    let mut rest = seconds.as_slice();
    for rows in firsts.chunk_by(|a, b| subject_of(a) == subject_of(b)) {
        let subject = subject_of(&rows[0]);
        rest = &rest[rest.partition_point(|raw| subject_of(raw) < subject)..];
        let theirs = &rest[..rest.partition_point(|raw| subject_of(raw) <= subject)];
        if pairs.len() + rows.len() * theirs.len() > MOST_PAIRS {
            return Err(VerifyError::TooManyPairs { most: MOST_PAIRS });
        }
        for &first in rows {
            pairs.extend(theirs.iter().map(|&second| (first, second)));
        }
    }
    Ok(pairs)
}
