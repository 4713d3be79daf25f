//! Composition: what several releases of one dataset disclose together.
//!
//! The adversary has all of the releases and can tell which of their rows come from the same raw row and which
//! are of one person, knows in which of them the victim is and in which not, and knows the values of the victim
//! that the model allows. For a raw row, this adversary sees the labels of every release that has it: its
//! **meet**. Rows that one release has and another lacks, such as rows that a later step suppressed, are
//! decided separately, and so are the rows of persons who are in some of the releases only. A real adversary can
//! match rows only as far as labels, sensitive values and their numbers allow, and so finds no fewer rows.
//!
//! First, releases that say nothing beyond another one are left out: a release with the same rows whose labels
//! each follow from the other release's label in the same column, such as an earlier step of the same run; if
//! labels overlap, a release with the same labels. If a single release is left, its own verification holds.
//!
//! The decision covers the models of the releases on the meet, except a model that implies the model of another
//! release. If all labels of each column are one cut, LKC-privacy is decided exactly, with the qids of at most
//! *L* labels of the meet. If labels overlap, or cells are sets, or a release is anatomized, every group of
//! equal meets has to satisfy the model: that is sufficient for every *L*, and refuses tables that an
//! enumeration might accept.
//!
//! If rows are not persons, the rows of one person in different releases are combined as well: one row of each
//! release that has the person, with K required of persons. The adversary then knows values that the person has
//! in all rows.
//!
//! Sources: Ganta, Kasiviswanathan, Smith, *Composition attacks and auxiliary information in data
//! privacy* (KDD 2008); Fung, Wang, Fu, Pei, *Anonymity for continuous data publishing* (EDBT
//! 2008); Byun, Li, Bertino, Li, Sohn, *Privacy-preserving incremental data dissemination* (2009).

mod composed_release;
mod decision;
mod dominance;
mod person_rows;
mod presence;
mod reading;
#[cfg(test)]
mod tests;

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedColumn;

use self::composed_release::{PlacedRelease, place};
use self::dominance::without_dominated;
use self::presence::Presence;
use super::verification::VerifyError;

pub use self::composed_release::{ComposedRelease, Recoded};
pub use self::person_rows::combination_bytes;

/// Maximum number of releases that are decided together.
pub const MOST_RELEASES: usize = 64;

/// The part of the raw table that the decision needs.
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
    /// The positions of the releases that were decided together: each has rows, or persons, in common with
    /// another of them. Empty if no two of the releases have any in common, or if one release says everything
    /// that the others say.
    pub joined: Vec<usize>,
    /// The position of a release whose model does not hold on the meet.
    pub broken: Option<usize>,
    /// The sets of releases of the persons for whom a model does not hold: each set has the positions of all
    /// releases that have rows of these persons. Ascending, each set once.
    pub broken_among: Vec<Vec<usize>>,
    /// Records, or persons, of the smallest group of the meet that an adversary finds; of the broken model if
    /// there is one. `None` if nothing was joined.
    pub smallest_group: Option<u64>,
    /// The greatest confidence in a sensitive value in the meet, from 0 to 1; of the broken model if there is
    /// one. `None` if nothing was joined.
    pub greatest_confidence: Option<f64>,
    /// Whether the decision is exact for the adversary described; otherwise it is conservative.
    pub exact: bool,
}

impl Composition {
    /// The worse of two findings on the same releases: one in which a model does not hold, or else the worse of
    /// each figure.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        if !self.holds {
            return self;
        }
        if !other.holds {
            return other;
        }
        let smallest = self.smallest_group.into_iter().chain(other.smallest_group);
        let confidences = [self.greatest_confidence, other.greatest_confidence];
        Self {
            smallest_group: smallest.min(),
            greatest_confidence: confidences.into_iter().flatten().reduce(f64::max),
            exact: self.exact && other.exact,
            ..self
        }
    }

    /// The finding where no releases have to be joined.
    fn unjoined() -> Self {
        Self {
            holds: true,
            joined: Vec::new(),
            broken: None,
            broken_among: Vec::new(),
            smallest_group: None,
            greatest_confidence: None,
            exact: true,
        }
    }
}

/// Decides what several releases of one dataset say together.
///
/// One pass over the rows of each release, a meet of the columns, and one verification for each model and each
/// set of releases that have persons in common. Memory is 4 bytes for each raw row and release, 4 bytes for each
/// raw row and column of the meet, and [`combination_bytes`] if rows are not persons.
///
/// # Errors
/// [`VerifyError::TooManyReleases`] and [`VerifyError::TooManyCombinations`] where it cannot be decided;
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
    for component in Presence::new(&placed, raw).components(raw.rows) {
        let members = placed.iter().enumerate();
        let members = members.filter(|(number, _)| component & (1 << number) != 0);
        let members: Vec<&PlacedRelease> = members.map(|(_, release)| *release).collect();
        found.decide_members(&members, raw, cancellation)?;
    }
    found.joined.sort_unstable();
    found.joined.dedup();
    found.broken_among.sort_unstable();
    found.broken_among.dedup();
    Ok(found)
}
