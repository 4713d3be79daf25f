//! The rows of persons that several releases have, combined.

use std::collections::BTreeMap;

use super::presence::{Place, PlaceRows, ReleaseBits};
use crate::verification::VerifyError;

/// Maximum number of rows in all combinations that are decided together.
const MOST_ROWS: usize = 1 << 26;

/// Combinations of rows of one person: one of each release that has rows of the person.
pub(super) struct PersonRows {
    /// The releases that have rows of the persons.
    pub(super) persons: ReleaseBits,
    /// For each of the releases, its raw row in each combination.
    pub(super) of_release: BTreeMap<usize, Vec<u32>>,
    /// The raw row of the release whose sensitive values are inferred.
    pub(super) read: Vec<u32>,
}

/// The rows of a person, each with the releases that have it.
type RowsOfPerson<'r> = &'r [(u32, ReleaseBits)];

impl PersonRows {
    /// The combinations of all persons who are in exactly the releases `person`, and whose rows are in
    /// `places`: each row of the release `read`, combined with rows of the others. `None` if each combination
    /// is a single row.
    ///
    /// A row that several of the releases have stands for all of them: the adversary knows it as one
    /// row.
    ///
    /// # Errors
    /// [`VerifyError::TooManyCombinations`].
    pub(super) fn new(
        person: ReleaseBits,
        read: usize,
        places: &[PlaceRows],
        subjects: &[u32],
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
            rows.map(|&row| (row, it.place.row))
        });
        let mut rows: Vec<(u32, ReleaseBits)> = rows.collect();
        let subject_of = |row: &(u32, ReleaseBits)| subjects[row.0 as usize];
        rows.sort_unstable_by_key(|row| (subject_of(row), row.0));
        let mut order = bits(person);
        order.sort_by_key(|release| *release != read);
        let mut combined = Self {
            persons: person,
            of_release: BTreeMap::new(),
            read: Vec::new(),
        };
        for rows in rows.chunk_by(|a, b| subject_of(a) == subject_of(b)) {
            combined.add(&order, rows)?;
        }
        Ok(Some(combined))
    }

    /// Adds the combinations of the rows of one person, whose rows are chosen in an order of
    /// releases.
    fn add(&mut self, order: &[usize], rows: RowsOfPerson<'_>) -> Result<(), VerifyError> {
        let known = self.read.len();
        // A row can belong to each release.
        let is_shared = rows.iter().any(|row| row.1.count_ones() > 1);
        let width = if is_shared {
            order.len().pow(2)
        } else {
            order.len()
        };
        let most = MOST_ROWS / width.max(1);
        let mut combinations: Vec<Vec<(u32, ReleaseBits)>> = vec![Vec::new()];
        for &release in order {
            let has = |row: &(u32, ReleaseBits)| row.1 >> release & 1 == 1;
            let mut longer = Vec::with_capacity(combinations.len());
            for combination in combinations {
                if let Some(&chosen) = combination.iter().find(|row| has(row)) {
                    longer.push([combination, vec![chosen]].concat());
                    continue;
                }
                for &row in rows.iter().filter(|row| has(row)) {
                    longer.push([combination.as_slice(), &[row]].concat());
                    if known + longer.len() > most {
                        return Err(VerifyError::TooManyCombinations { most });
                    }
                }
            }
            combinations = longer;
        }
        self.read
            .extend(combinations.iter().map(|combination| combination[0].0));
        for (number, release) in order.iter().enumerate() {
            let chosen = self.of_release.entry(*release).or_default();
            chosen.extend(combinations.iter().map(|combination| combination[number].0));
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
