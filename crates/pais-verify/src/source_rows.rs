//! The raw row of each row of a finished table whose rows are in an unknown order. Several raw rows
//! can be the generalized row; this is one possible choice with the fewest rows left over.

use super::fit::Fit;
use super::matching::{MatchingSide, matched_pairs};

/// The source row of a released row that has no raw row.
pub const NOWHERE: u32 = u32::MAX;

/// The raw row of each finished row, or [`NOWHERE`], where rows with equal ids fit each other.
/// `ids` are those of the raw rows, below `buckets`, then those of the finished ones.
pub(super) fn by_bucket(ids: &[u32], buckets: usize, raw_rows: usize) -> Vec<u32> {
    let (raw, finished) = ids.split_at(raw_rows);
    let mut rows = Queues::new(raw.iter().copied(), buckets);
    finished.iter().map(|&id| rows.next(id as usize)).collect()
}

/// As [`by_bucket`], where rows fit only if their records fit too.
pub(super) fn by_matching(
    ids: &[u32],
    buckets: usize,
    raw_rows: usize,
    records: (impl Fn(usize) -> Vec<u32>, impl Fn(usize) -> Vec<u32>),
    fit: &impl Fit,
) -> Vec<u32> {
    let (raw_record, finished_record) = records;
    let (raw_ids, finished_ids) = ids.split_at(raw_rows);
    let mut in_bucket = Queues::new(raw_ids.iter().copied(), buckets);
    let mut finished_in_bucket = Queues::new(finished_ids.iter().copied(), buckets);
    let mut sources = vec![NOWHERE; finished_ids.len()];
    for bucket in 0..buckets {
        let (raw, raw_side) = Records::of(&mut in_bucket, bucket, &raw_record);
        let (finished, finished_side) =
            Records::of(&mut finished_in_bucket, bucket, &finished_record);
        let mut raw_rows = Queues::new(raw.records.iter().copied(), raw_side.len());
        let mut finished_rows = Queues::new(finished.records.iter().copied(), finished_side.len());
        for (one, other, rows) in matched_pairs(&finished_side, &raw_side, fit) {
            for _ in 0..rows {
                let places = (finished_rows.next(one), raw_rows.next(other));
                let finished = finished.rows.get(places.0 as usize);
                let raw = raw.rows.get(places.1 as usize);
                if let (Some(&finished), Some(&raw)) = (finished, raw) {
                    sources[finished as usize] = raw;
                }
            }
        }
    }
    sources
}

/// The rows of a bucket, each with the number of its record.
struct Records {
    rows: Vec<u32>,
    records: Vec<u32>,
}

impl Records {
    fn of(
        rows: &mut Queues,
        bucket: usize,
        record: impl Fn(usize) -> Vec<u32>,
    ) -> (Self, MatchingSide) {
        let mut side = MatchingSide::default();
        let rows: Vec<u32> = std::iter::from_fn(|| rows.take(bucket)).collect();
        let number = |&row: &u32| side.add(record(row as usize).into_iter()) as u32;
        let records = rows.iter().map(number).collect();
        (Self { rows, records }, side)
    }
}

/// The positions of a list by their numbers, each to be taken once and in order.
struct Queues {
    positions: Vec<u32>,
    next: Vec<u32>,
    ends: Vec<u32>,
}

impl Queues {
    fn new(numbers: impl Iterator<Item = u32> + Clone, count: usize) -> Self {
        let mut next = vec![0u32; count + 1];
        for number in numbers.clone() {
            next[number as usize + 1] += 1;
        }
        for number in 0..count {
            next[number + 1] += next[number];
        }
        let mut positions = vec![0; next[count] as usize];
        let mut ends = next.clone();
        for (position, number) in (0..).zip(numbers) {
            let end = &mut ends[number as usize];
            positions[*end as usize] = position;
            *end += 1;
        }
        Self {
            positions,
            next,
            ends,
        }
    }

    fn take(&mut self, number: usize) -> Option<u32> {
        let next = &mut self.next[number];
        (*next < self.ends[number]).then(|| {
            *next += 1;
            self.positions[*next as usize - 1]
        })
    }

    /// The next position with a number, or [`NOWHERE`].
    fn next(&mut self, number: usize) -> u32 {
        self.take(number).unwrap_or(NOWHERE)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{MatchingSide, NOWHERE, by_bucket, by_matching};
    use crate::fit::{Fit, Have, Need};
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
            let ids: Vec<u32> = raw.iter().chain(&finished).map(|(id, _)| *id).collect();
            let records = (|row: usize| vec![raw[row].1], |row: usize| vec![finished[row].1]);
            let covers = |one: &[u32], other: &[u32]| fit(one[0], other[0]);
            let table = FitTable(&fits, all_fit);
            let found = by_matching(&ids, 3, raw.len(), records, &table);
            let mut most = 0;
            for bucket in 0..3 {
                let side = |rows: &[(u32, u32)]| {
                    let mut side = MatchingSide::default();
                    for (_, record) in rows.iter().filter(|(id, _)| *id == bucket) {
                        side.add([*record].into_iter());
                    }
                    side
                };
                most += plain_matching(&side(&finished), &side(&raw), covers);
            }
            prop_assert_eq!(matched(&found, &raw, &finished, fit)?, most);
            if all_fit {
                let found = by_bucket(&ids, 3, raw.len());
                prop_assert_eq!(matched(&found, &raw, &finished, fit)?, most);
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
