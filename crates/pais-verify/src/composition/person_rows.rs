//! The rows of persons that several releases have, combined.

use std::collections::BTreeMap;

use super::presence::{Place, ReleaseBits};
use crate::verification::VerifyError;

/// Most rows in all combinations that are decided together.
const MOST_ROWS: usize = 1 << 26;

/// Combinations of rows of one person: one of each release that has rows of the person.
pub(super) struct PersonRows {
    /// For each of the releases, its raw row in each combination.
    pub(super) of_release: BTreeMap<usize, Vec<u32>>,
}

/// The rows of a person, each with the releases that have it.
type RowsOfPerson<'r> = &'r [(u32, ReleaseBits)];

impl PersonRows {
    /// The combinations of all persons who are in exactly the releases `person`, of whom `places`
    /// has the rows. `None` where each combination is a single row.
    ///
    /// A row that several of the releases have is combined with itself: the adversary knows it as
    /// one row.
    ///
    /// # Errors
    /// [`VerifyError::TooManyCombinations`].
    pub(super) fn new(
        person: ReleaseBits,
        places: &[(Place, &Vec<u32>)],
        subjects: &[u32],
    ) -> Result<Option<Self>, VerifyError> {
        if places.iter().all(|(place, _)| place.row == person) {
            return Ok(None);
        }
        let rows = places.iter().flat_map(|(place, rows)| {
            let rows = rows.iter();
            rows.map(|&row| (row, place.row))
        });
        let mut rows: Vec<(u32, ReleaseBits)> = rows.collect();
        let subject_of = |row: &(u32, ReleaseBits)| subjects[row.0 as usize];
        rows.sort_unstable_by_key(|row| (subject_of(row), row.0));
        let releases = (0..ReleaseBits::BITS as usize).filter(|bit| person >> bit & 1 == 1);
        let mut combined = Self {
            of_release: releases.map(|release| (release, Vec::new())).collect(),
        };
        for rows in rows.chunk_by(|a, b| subject_of(a) == subject_of(b)) {
            combined.add(rows)?;
        }
        Ok(Some(combined))
    }

    /// Adds the combinations of the rows of one person.
    fn add(&mut self, rows: RowsOfPerson<'_>) -> Result<(), VerifyError> {
        let width = self.of_release.len();
        let known = self.of_release.values().next().map_or(0, Vec::len);
        let most = MOST_ROWS / width.max(1);
        let mut combinations: Vec<Vec<(u32, ReleaseBits)>> = vec![Vec::new()];
        for &release in self.of_release.keys() {
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
        for (number, chosen) in self.of_release.values_mut().enumerate() {
            chosen.extend(combinations.iter().map(|combination| combination[number].0));
        }
        Ok(())
    }
}
