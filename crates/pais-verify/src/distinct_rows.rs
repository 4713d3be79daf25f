//! The distinct rows of codes among many, counted while they are read.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Distinct rows, in the order of their first occurrences.
#[derive(Clone, Debug)]
pub(super) struct DistinctRows {
    /// Codes of a row.
    width: usize,
    /// Row by row.
    codes: Vec<u32>,
    counts: Vec<u32>,
    index: HashTable<u32>,
    /// Keyed at random, so that nobody can make a file of rows with equal hashes.
    hasher: DefaultHashBuilder,
}

impl DistinctRows {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            codes: Vec::new(),
            counts: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Codes of a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Counts a row of as many codes as the width. Returns the number of its distinct row.
    #[inline]
    pub(super) fn add(&mut self, row: &[u32]) -> u32 {
        let Self {
            width,
            codes,
            counts,
            index,
            hasher,
        } = self;
        let of = |codes: &[u32], number: u32| {
            let start = number as usize * *width;
            hasher.hash_one(&codes[start..start + *width])
        };
        let hash = hasher.hash_one(row);
        let is_row = |&number: &u32| {
            let start = number as usize * *width;
            codes[start..start + *width] == *row
        };
        let number = match index.find(hash, is_row) {
            Some(&number) => number,
            None => {
                let number = counts.len() as u32;
                codes.extend_from_slice(row);
                counts.push(0);
                index.insert_unique(hash, number, |&number| of(codes, number));
                number
            }
        };
        counts[number as usize] += 1;
        number
    }

    /// Bytes that they take at most, while they grow and while a model is decided on them: for each,
    /// its codes four times and 64 more.
    pub(super) fn bytes(&self) -> u64 {
        const COPIES: u64 = 4;
        const BESIDE: u64 = 64;
        self.counts.len() as u64 * (COPIES * 4 * self.width as u64 + BESIDE)
    }

    /// The codes of each column, and the multiplicity of each distinct row.
    pub(super) fn into_columns(self) -> (Vec<Vec<u32>>, Vec<u32>) {
        drop(self.index);
        let column = |column: usize| {
            let codes = self.codes.iter().skip(column);
            codes.step_by(self.width.max(1)).copied().collect()
        };
        ((0..self.width).map(column).collect(), self.counts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::DistinctRows;

    proptest! {
        #[test]
        fn rows_are_counted_in_the_order_of_their_first_occurrences(
            width in 0..4usize,
            cells in prop::collection::vec(0..3u32, 0..300),
        ) {
            let rows = cells.len() / 4;
            let row = |row: usize| &cells[row * 4..row * 4 + width];
            let mut found = DistinctRows::new(width);
            let mut expected: Vec<(&[u32], u32)> = Vec::new();
            for number in (0..rows).map(row) {
                let known = expected.iter().position(|(row, _)| *row == number);
                let at = known.unwrap_or(expected.len());
                if known.is_none() {
                    expected.push((number, 0));
                }
                expected[at].1 += 1;
                prop_assert_eq!(found.add(number) as usize, at);
            }
            let (columns, counts) = found.into_columns();
            prop_assert_eq!(counts, expected.iter().map(|(_, rows)| *rows).collect::<Vec<u32>>());
            for (index, column) in columns.iter().enumerate() {
                let codes: Vec<u32> = expected.iter().map(|(row, _)| row[index]).collect();
                prop_assert_eq!(column, &codes);
            }
        }
    }
}
