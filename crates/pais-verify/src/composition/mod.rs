//! What several releases of one dataset say together.
//!
//! The adversary has all of the releases and can tell which of their rows come from the same raw
//! row, knows in which of them the victim is, and knows the values of the victim that the model
//! allows. This adversary sees of a raw row the labels of every release that has it: its **meet**.
//! Rows that one release has and another lacks, such as those that a later step suppressed, are a
//! part of their own. A real adversary can match rows only as far as labels, sensitive values and
//! their numbers allow, and so finds no fewer rows.
//!
//! A release that says nothing beyond another one is left out first: one with the same rows, each
//! label of which follows from the labels of the other, such as an earlier step of the same run. If
//! a single release is left, what it was verified for holds.
//!
//! What is decided: every model that one of the releases was made under, but those that another of
//! them implies, on the meet. Where all labels of each column are one cut, LKC-privacy is decided
//! exactly, with the qids of at most *L* labels of the meet. Where labels overlap, or cells are
//! sets, or a release is anatomized, every group of equal meets has to satisfy the model: that is
//! sufficient for every *L*, and refuses tables that an enumeration might accept.
//!
//! Where rows are not persons, rows of one person in different releases are combined in pairs as
//! well: one of each release, with K asked of persons. Larger combinations are not decided.
//!
//! Sources: Ganta, Kasiviswanathan, Smith, *Composition attacks and auxiliary information in data
//! privacy* (KDD 2008); Fung, Wang, Fu, Pei, *Anonymity for continuous data publishing* (EDBT
//! 2008); Byun, Li, Bertino, Li, Sohn, *Privacy-preserving incremental data dissemination* (2009).

mod composed_release;
mod decision;
mod dominance;
#[cfg(test)]
mod tests;

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedColumn;

use self::composed_release::{PlacedRelease, place, presence};
use self::dominance::without_dominated;
use super::verification::VerifyError;

pub use self::composed_release::{ComposedRelease, Recoded};

/// Most releases that are decided together.
pub const MOST_RELEASES: usize = 64;

/// What of the raw table is needed to decide.
#[derive(Clone, Copy, Debug)]
pub struct RawRows<'a> {
    /// Number of raw rows.
    pub rows: usize,
    /// The sensitive columns, with a cell for each raw row.
    pub sensitive: &'a [ReleasedColumn],
    /// The person of each raw row; `None` if each row is a person of its own.
    pub subjects: Option<&'a [u32]>,
}

/// What releases say together.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    /// Whether every model holds on the meet.
    pub holds: bool,
    /// The positions of the releases that were decided together: each has rows, or persons, in
    /// common with another of them. Empty where no two of the releases have, or where one release
    /// says all that the others do.
    pub joined: Vec<usize>,
    /// The position of a release whose model does not hold on the meet.
    pub broken: Option<usize>,
    /// Records, or persons, of the smallest group of the meet that an adversary finds; of the
    /// broken model where there is one. `None` where nothing was joined.
    pub smallest_group: Option<u64>,
    /// The greatest confidence in a sensitive value in the meet, from 0 to 1; of the broken model
    /// where there is one. `None` where nothing was joined.
    pub greatest_confidence: Option<f64>,
    /// Whether the decision is exact for the adversary described; otherwise it is on the safe side.
    pub exact: bool,
}

impl Composition {
    /// The finding where no releases have to be joined.
    fn unjoined() -> Self {
        Self {
            holds: true,
            joined: Vec::new(),
            broken: None,
            smallest_group: None,
            greatest_confidence: None,
            exact: true,
        }
    }
}

/// Decides what several releases of one dataset say together.
///
/// One pass over the rows of each release, a meet of the columns, and one verification for each
/// model and each set of releases that have rows in common. Memory is 4 bytes for each raw row and
/// release, and 4 for each raw row and column of the meet.
///
/// # Errors
/// [`VerifyError::TooManyReleases`] and [`VerifyError::TooManyPairs`] where it cannot be decided;
/// [`VerifyError::UnknownSource`] for a row without a raw row; [`VerifyError`] of a malformed table;
/// and [`VerifyError::Stopped`].
pub fn compose(
    releases: &[ComposedRelease],
    raw: RawRows,
    cancellation: &Cancellation,
) -> Result<Composition, VerifyError> {
    let placed: Vec<PlacedRelease> = releases
        .iter()
        .enumerate()
        .map(|(position, release)| place(position, release, raw.rows))
        .collect::<Result<_, _>>()?;
    let placed = without_dominated(placed, cancellation)?;
    let mut found = Composition::unjoined();
    let placed: Vec<&PlacedRelease> = placed.iter().collect();
    if placed.len() < 2 {
        return Ok(found);
    }
    if placed.len() > MOST_RELEASES {
        return Err(VerifyError::TooManyReleases {
            most: MOST_RELEASES,
        });
    }
    for component in components(&placed, raw.rows) {
        let members = placed.iter().enumerate();
        let members = members.filter(|(number, _)| component & (1 << number) != 0);
        let members: Vec<&PlacedRelease> = members.map(|(_, release)| *release).collect();
        found.decide_rows(&members, raw, cancellation)?;
    }
    if let Some(subjects) = raw.subjects {
        for (number, one) in placed.iter().enumerate() {
            for other in &placed[number + 1..] {
                found.decide_pairs([one, other], raw, subjects, cancellation)?;
            }
        }
    }
    found.joined.sort_unstable();
    found.joined.dedup();
    Ok(found)
}

/// The sets of releases, as bits, that are connected by rows in common; those of a single release
/// are left out.
fn components(placed: &[&PlacedRelease], rows: usize) -> Vec<u64> {
    let mut components: Vec<u64> = Vec::new();
    let mut last = 0;
    for row in 0..rows {
        let pattern = presence(placed, row);
        // Neighbouring rows are mostly in the same releases.
        if pattern == last || pattern.count_ones() < 2 {
            continue;
        }
        last = pattern;
        let (mut merged, mut others) = (pattern, Vec::with_capacity(components.len()));
        for component in components {
            if component & merged == 0 {
                others.push(component);
            } else {
                merged |= component;
            }
        }
        others.push(merged);
        components = others;
    }
    components
}
