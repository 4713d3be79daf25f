//! The rows of persons that several releases have, combined.

use pais_core::cancellation::Cancellation;

use super::presence::{Place, PlaceRows, ReleaseBits};
use crate::verification::VerifyError;

/// Maximum bytes of the combinations of rows of persons that [`compose`](super::compose) decides together, for
/// a table of `rows` raw rows: 64 MiB, and 128 bytes for each row. More combinations than fit are
/// [`VerifyError::TooManyCombinations`].
pub const fn combination_bytes(rows: u64) -> u64 {
    rows.saturating_mul(128).saturating_add(64 << 20)
}

/// Numbers for a combination in addition to its rows and the columns of the meet: its meet in all columns, and
/// its share of the sets of meets.
const MEET_NUMBERS: usize = 12;

/// Combinations after which it is checked whether to stop.
const COMBINATIONS_PER_CHECK: usize = 1 << 12;

/// Combinations of rows of one person: one of each release that has rows of the person.
pub(super) struct PersonRows {
    /// The releases that have rows of the persons.
    pub(super) persons: ReleaseBits,
    /// The numbers of these releases; first the one whose sensitive values are inferred.
    pub(super) releases: Vec<usize>,
    /// The raw rows of the combinations, one after the other: each has a row of each release.
    pub(super) rows: Vec<u32>,
}

/// A raw row of a person, with the releases that have it.
#[derive(Clone, Copy)]
struct PersonRow {
    row: u32,
    releases: ReleaseBits,
}

impl PersonRows {
    /// The combinations of all persons who are in exactly the releases `person`, and whose rows are in
    /// `places`: each row of the release `read`, combined with rows of the others. `None` if each combination
    /// is a single row. `columns` is the number of columns of their meet.
    ///
    /// A row that several of the releases have stands for all of them: the adversary knows it as one
    /// row.
    ///
    /// # Errors
    /// [`VerifyError::TooManyCombinations`] and [`VerifyError::Stopped`].
    pub(super) fn new(
        person: ReleaseBits,
        read: usize,
        places: &[PlaceRows],
        subjects: &[u32],
        columns: usize,
        cancellation: &Cancellation,
    ) -> Result<Option<Self>, VerifyError> {
        let is_read = |place: &Place| place.row >> read & 1 == 1;
        if places
            .iter()
            .all(|it| it.place.row == person || !is_read(&it.place))
        {
            return Ok(None);
        }
        let rows = places.iter().flat_map(|it| {
            let rows = it.rows.iter();
            let releases = it.place.row;
            rows.map(move |&row| PersonRow { row, releases })
        });
        let mut rows: Vec<PersonRow> = rows.collect();
        let subject_of = |it: &PersonRow| subjects[it.row as usize];
        rows.sort_unstable_by_key(|it| (subject_of(it), it.row));
        let mut releases = bits(person);
        releases.sort_by_key(|release| *release != read);
        // The list of rows grows by doubling.
        let numbers = 2 * releases.len() + columns + MEET_NUMBERS;
        let mut combinations = Combinations {
            releases: &releases,
            rows: Vec::new(),
            most: combination_bytes(subjects.len() as u64) as usize / (4 * numbers),
            cancellation,
        };
        for rows in rows.chunk_by(|a, b| subject_of(a) == subject_of(b)) {
            cancellation.check()?;
            combinations.add(rows, &mut Vec::with_capacity(releases.len()))?;
        }
        let rows = combinations.rows;
        Ok(Some(Self {
            persons: person,
            releases,
            rows,
        }))
    }
}

/// The combinations of the persons so far.
struct Combinations<'r> {
    /// The numbers of the releases.
    releases: &'r [usize],
    /// As [`PersonRows::rows`].
    rows: Vec<u32>,
    /// The most that there may be.
    most: usize,
    cancellation: &'r Cancellation,
}

impl Combinations<'_> {
    /// Adds those of one person that begin with the rows `chosen`, one of each of the first releases.
    fn add(&mut self, rows: &[PersonRow], chosen: &mut Vec<PersonRow>) -> Result<(), VerifyError> {
        let Some(release) = self.releases.get(chosen.len()) else {
            let number = self.rows.len() / self.releases.len();
            if number == self.most {
                return Err(VerifyError::TooManyCombinations { most: self.most });
            }
            if number.is_multiple_of(COMBINATIONS_PER_CHECK) {
                self.cancellation.check()?;
            }
            self.rows.extend(chosen.iter().map(|it| it.row));
            return Ok(());
        };
        let has = |it: &&PersonRow| it.releases >> release & 1 == 1;
        let known = chosen.iter().find(has).copied();
        let choices = known.as_ref().map_or(rows, std::slice::from_ref);
        for &row in choices.iter().filter(has) {
            chosen.push(row);
            self.add(rows, chosen)?;
            chosen.pop();
        }
        Ok(())
    }
}

/// The numbers of the releases of a set.
pub(super) fn bits(releases: ReleaseBits) -> Vec<usize> {
    let numbers = 0..ReleaseBits::BITS as usize;
    numbers
        .filter(|number| releases >> number & 1 == 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use pais_core::cancellation::Cancellation;

    use super::{PersonRows, combination_bytes};
    use crate::composition::presence::{Place, PlaceRows};
    use crate::verification::VerifyError;

    /// The combinations of one person with `rows` rows in each of two releases.
    fn combine(rows: u32, cancellation: &Cancellation) -> Result<PersonRows, VerifyError> {
        let place = |release: u32| PlaceRows {
            place: Place {
                person: 0b11,
                row: 1 << release,
            },
            rows: (release * rows..(release + 1) * rows).collect(),
        };
        let subjects = vec![0; 2 * rows as usize];
        let found = PersonRows::new(0b11, 1, &[place(0), place(1)], &subjects, 8, cancellation);
        found.map(|found| found.expect("rows of two releases are combined"))
    }

    #[test]
    fn each_row_of_the_read_release_is_combined_with_each_of_the_other() {
        let found = combine(2, &Cancellation::new()).unwrap();
        assert_eq!(found.releases, [1, 0]);
        assert_eq!(found.rows, [2, 0, 2, 1, 3, 0, 3, 1]);
    }

    /// 16.8 million pairs, each with 24 numbers of 4 bytes.
    #[test]
    fn combinations_that_need_more_bytes_than_the_limit_are_undecided() {
        let found = combine(4096, &Cancellation::new()).err();
        let most = combination_bytes(8192) as usize / 96;
        assert_eq!(found, Some(VerifyError::TooManyCombinations { most }));
    }

    #[test]
    fn a_combination_of_rows_can_be_stopped() {
        let stopped = Cancellation::new();
        stopped.cancel();
        assert_eq!(combine(2, &stopped).err(), Some(VerifyError::Stopped));
    }
}
