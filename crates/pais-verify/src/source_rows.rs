//! The raw row of each row of a finished table whose rows are in an unknown order. Several raw rows
//! can be the generalized row; this is one possible choice with the fewest rows left over, and whether it is
//! the only one.

use pais_core::cancellation::{Cancellation, Stopped};

use super::fit_index::Fit;
use super::lists::Lists;
use super::matching::{MatchingSide, matched};

/// The source row of a released row that has no raw row.
pub const NOWHERE: u32 = u32::MAX;

/// The raw rows of the rows of a finished table.
pub(super) struct SourceRows {
    /// The raw row of each finished row, or [`NOWHERE`].
    pub(super) of_row: Vec<u32>,
    /// By bucket, whether equal finished records can have other raw rows than these.
    pub(super) has_choice: Vec<bool>,
}

impl SourceRows {
    /// The raw rows of each bucket with a choice; `buckets` are those of the raw rows.
    pub(super) fn interchangeable(&self, buckets: &[u32]) -> Vec<Vec<u32>> {
        let rows = Lists::of_positions(buckets, self.has_choice.len());
        let rows = rows.iter().zip(&self.has_choice);
        let rows = rows.filter(|(_, has_choice)| **has_choice);
        rows.map(|(rows, _)| rows.to_vec()).collect()
    }
}

/// The raw rows where rows of equal buckets fit each other.
pub(super) fn by_bucket(raw: &[u32], finished: &[u32], buckets: usize) -> SourceRows {
    let mut raw = Queues::new(raw, buckets);
    let rows = finished.iter().map(|&bucket| raw.next(bucket));
    let of_row = rows.map(|row| row.unwrap_or(NOWHERE)).collect();
    SourceRows {
        of_row,
        has_choice: raw.are_partly_taken(),
    }
}

/// As [`by_bucket`], where rows fit only if their records fit too.
///
/// # Errors
/// [`Stopped`].
pub(super) fn by_matching(
    raw: &MatchedRows<impl Fn(u32) -> Vec<u32>>,
    finished: &MatchedRows<impl Fn(u32) -> Vec<u32>>,
    buckets: usize,
    fit: &impl Fit,
    cancellation: &Cancellation,
) -> Result<SourceRows, Stopped> {
    let raw_rows = Lists::of_positions(raw.buckets, buckets);
    let finished_rows = Lists::of_positions(finished.buckets, buckets);
    let mut sources = vec![NOWHERE; finished.buckets.len()];
    let mut has_choice = Vec::with_capacity(buckets);
    for (raw_rows, finished_rows) in raw_rows.iter().zip(finished_rows.iter()) {
        cancellation.check()?;
        let (raw_side, mut raw_queues) = raw.side(raw_rows);
        let (finished_side, mut finished_queues) = finished.side(finished_rows);
        let matching = matched(&finished_side, &raw_side, fit, cancellation)?;
        has_choice.push(!matching.is_only);
        for (one, other, rows) in matching.pairs {
            for _ in 0..rows {
                let places = (finished_queues.next(one), raw_queues.next(other));
                if let (Some(finished), Some(raw)) = places {
                    sources[finished_rows[finished as usize] as usize] = raw_rows[raw as usize];
                }
            }
        }
    }
    Ok(SourceRows {
        of_row: sources,
        has_choice,
    })
}

/// The rows of a table that are matched.
pub(super) struct MatchedRows<'r, R> {
    /// The bucket of each row; only rows of equal buckets fit each other.
    pub(super) buckets: &'r [u32],
    /// The record of a row.
    pub(super) record: R,
}

impl<R: Fn(u32) -> Vec<u32>> MatchedRows<'_, R> {
    /// A side of the matching from some rows, and the positions of these by their records.
    fn side(&self, rows: &[u32]) -> (MatchingSide, Queues) {
        let mut side = MatchingSide::default();
        let records = rows.iter().map(|&row| side.add((self.record)(row)));
        let records: Vec<u32> = records.collect();
        let queues = Queues::new(&records, side.len());
        (side, queues)
    }
}

/// The positions of a list by their numbers, each to be taken once and in order.
struct Queues {
    positions: Lists<u32>,
    /// By number, how many were taken.
    taken: Vec<usize>,
}

impl Queues {
    fn new(numbers: &[u32], count: usize) -> Self {
        Self {
            positions: Lists::of_positions(numbers, count),
            taken: vec![0; count],
        }
    }

    /// The next position with a number.
    fn next(&mut self, number: u32) -> Option<u32> {
        let taken = &mut self.taken[number as usize];
        let position = self.positions.of(number).get(*taken).copied();
        *taken += 1;
        position
    }

    /// By number, whether some positions were taken and others are left.
    fn are_partly_taken(&self) -> Vec<bool> {
        let positions = self.positions.lengths().zip(&self.taken);
        let is_partly = |(all, &taken): (u32, &usize)| taken > 0 && taken < all as usize;
        positions.map(is_partly).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pais_core::cancellation::Cancellation;
    use proptest::prelude::*;

    use super::{MatchedRows, MatchingSide, NOWHERE, by_bucket, by_matching};
    use crate::fit_index::{Fit, Have, Need};
    use crate::tests::plain_matching::plain_matching;

    /// Which of four numbers on the left fit which of four on the right, or whether all do.
    struct FitTable<'a>(&'a [bool], bool);

    impl Fit for FitTable<'_> {
        fn columns(&self) -> usize {
            1
        }

        fn have(&self, _: usize, raw: u32) -> Have {
            Have::Code(raw)
        }

        fn need(&self, _: usize, _: u32) -> Option<Need> {
            Some(Need::Codes(0..4, None))
        }

        fn fits(&self, finished: &[u32], raw: &[u32]) -> bool {
            self.1 || self.0[(finished[0] * 4 + raw[0]) as usize]
        }
    }

    proptest! {
        #[test]
        fn as_many_rows_as_possible_get_a_raw_row_of_their_own(
            raw in prop::collection::vec((0..3u32, 0..4u32), 0..8),
            finished in prop::collection::vec((0..3u32, 0..4u32), 0..8),
            fits in prop::collection::vec(any::<bool>(), 16),
            all_fit in any::<bool>(),
        ) {
            let fit = |one: u32, other: u32| all_fit || fits[(one * 4 + other) as usize];
            let ids = |rows: &[(u32, u32)]| rows.iter().map(|(id, _)| *id).collect::<Vec<u32>>();
            let (raw_ids, finished_ids) = (ids(&raw), ids(&finished));
            let raw_rows = MatchedRows {
                buckets: &raw_ids,
                record: |row: u32| vec![raw[row as usize].1],
            };
            let finished_rows = MatchedRows {
                buckets: &finished_ids,
                record: |row: u32| vec![finished[row as usize].1],
            };
            let covers = |one: &[u32], other: &[u32]| fit(one[0], other[0]);
            let table = FitTable(&fits, all_fit);
            let found = by_matching(&raw_rows, &finished_rows, 3, &table, &Cancellation::new());
            let found = found.unwrap();
            let mut most = 0;
            for bucket in 0..3 {
                let side = |rows: &[(u32, u32)]| {
                    let mut side = MatchingSide::default();
                    for (_, record) in rows.iter().filter(|(id, _)| *id == bucket) {
                        side.add(vec![*record]);
                    }
                    side
                };
                most += plain_matching(&side(&finished), &side(&raw), covers);
            }
            prop_assert_eq!(matched(&found.of_row, &raw, &finished, fit)?, most);
            if all_fit {
                let found = by_bucket(&raw_ids, &finished_ids, 3);
                prop_assert_eq!(matched(&found.of_row, &raw, &finished, fit)?, most);
            }
        }
    }

    /// Number of rows with a raw row, which each is its own and fits.
    fn matched(
        sources: &[u32],
        raw: &[(u32, u32)],
        finished: &[(u32, u32)],
        fit: impl Fn(u32, u32) -> bool,
    ) -> Result<u64, TestCaseError> {
        prop_assert_eq!(sources.len(), finished.len());
        let mut taken = BTreeMap::new();
        let pairs = sources.iter().zip(finished);
        for (&source, row) in pairs.filter(|(source, _)| **source != NOWHERE) {
            prop_assert_eq!(taken.insert(source, row), None);
            let raw = raw[source as usize];
            prop_assert!(raw.0 == row.0 && fit(row.1, raw.1));
        }
        Ok(taken.len() as u64)
    }
}
