//! Bitmaps of the rows below each threshold of a column, for a block of rows.
//!
//! The rows whose codes are in a range are those below the range's end without those below its
//! start. Both sets are one bitmap each, so a condition costs one pass over the bits of a block,
//! whatever the number of codes. Thresholds with few rows between them share a bitmap, and the rows
//! that it lacks are listed; thus a block of *n* rows has at most *n* / [`SPACING`] + 1 bitmaps.

use pais_core::table::codes::CodeRange;

/// Minimum number of rows between two bitmaps.
const SPACING: u32 = 32;

/// The numbers of two thresholds.
#[derive(Clone, Copy)]
pub(super) struct ThresholdRange {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The codes at which the ranges of a column begin or end, in ascending order.
pub(super) struct RangeCodes {
    codes: Vec<u32>,
    /// For each code, the number of thresholds that are not above it. Greater codes have all.
    classes: Vec<u16>,
}

impl RangeCodes {
    /// The thresholds of ranges, which include both ends. There must be fewer than 2^15 ranges.
    pub(super) fn of(ranges: impl Iterator<Item = CodeRange>) -> Self {
        let mut codes: Vec<u32> = ranges.flat_map(|it| [it.first, it.last + 1]).collect();
        codes.sort_unstable();
        codes.dedup();
        let mut classes = Vec::new();
        for (class, &code) in (0..).zip(&codes) {
            classes.resize(code as usize, class);
        }
        Self { codes, classes }
    }

    /// The number of thresholds.
    fn count(&self) -> usize {
        self.codes.len()
    }

    /// The numbers of a range's thresholds.
    pub(super) fn range(&self, codes: CodeRange) -> ThresholdRange {
        let number = |code: u32| self.codes.partition_point(|&it| it < code);
        ThresholdRange {
            from: number(codes.first),
            to: number(codes.last + 1),
        }
    }

    /// The number of thresholds that are not above a code.
    fn class(&self, code: u32) -> usize {
        match self.classes.get(code as usize) {
            Some(&class) => usize::from(class),
            None => self.count(),
        }
    }
}

/// The bitmaps of one column.
#[derive(Default)]
pub(super) struct PrefixBitmaps {
    /// Words of a bitmap.
    words: usize,
    /// The rows in the order of their codes.
    sorted: Vec<u32>,
    /// For each threshold, the number of rows below it.
    below: Vec<u32>,
    /// For each threshold, the last bitmap whose rows are all below it, and its number of rows.
    bitmap_of: Vec<(u32, u32)>,
    bitmaps: Vec<u64>,
}

impl PrefixBitmaps {
    /// Replaces the bitmaps by those of a block's codes.
    pub(super) fn build(
        &mut self,
        codes: impl ExactSizeIterator<Item = u32> + Clone,
        thresholds: &RangeCodes,
    ) {
        let rows = codes.len();
        self.words = rows.div_ceil(64);
        // First the start of each class in the sorted rows; it moves to the class's end while
        // rows are sorted in.
        self.below.clear();
        self.below.resize(thresholds.count() + 1, 0);
        for code in codes.clone() {
            self.below[thresholds.class(code)] += 1;
        }
        let mut start = 0;
        for count in &mut self.below {
            start += std::mem::replace(count, start);
        }
        self.sorted.clear();
        self.sorted.resize(rows, 0);
        for (row, code) in (0..).zip(codes) {
            let next = &mut self.below[thresholds.class(code)];
            self.sorted[*next as usize] = row;
            *next += 1;
        }
        // The rows that are not below any threshold.
        self.below.pop();
        self.add_bitmaps();
    }

    fn add_bitmaps(&mut self) {
        self.bitmap_of.clear();
        self.bitmaps.clear();
        self.bitmaps.resize(self.words, 0);
        let (mut last, mut rows) = (0u32, 0u32);
        for &below in &self.below {
            if below - rows >= SPACING {
                let first_word = self.bitmaps.len() - self.words;
                self.bitmaps.extend_from_within(first_word..);
                let bitmap = &mut self.bitmaps[first_word + self.words..];
                toggle(bitmap, &self.sorted[rows as usize..below as usize]);
                (last, rows) = (last + 1, below);
            }
            self.bitmap_of.push((last, rows));
        }
    }

    /// The number of rows from one threshold to another.
    pub(super) fn count(&self, range: ThresholdRange) -> u32 {
        self.below[range.to] - self.below[range.from]
    }

    /// Writes the rows from one threshold to another.
    #[inline(always)]
    pub(super) fn rows_between(&self, range: ThresholdRange, rows: &mut [u64]) {
        let ThresholdRange { from, to } = range;
        let ((one, from_rows), (other, to_rows)) = (self.bitmap_of[from], self.bitmap_of[to]);
        let pairs = self.bitmap(one).iter().zip(self.bitmap(other));
        for (word, (one, other)) in rows.iter_mut().zip(pairs) {
            *word = one ^ other;
        }
        toggle(rows, self.listed(from_rows, from));
        toggle(rows, self.listed(to_rows, to));
    }

    /// Removes the rows that are not below a threshold.
    #[inline(always)]
    pub(super) fn keep_below(&self, threshold: usize, rows: &mut [u64], buffer: &mut [u64]) {
        self.rows_below(threshold, buffer);
        for (word, below) in rows.iter_mut().zip(buffer) {
            *word &= *below;
        }
    }

    /// Removes the rows that are below a threshold.
    #[inline(always)]
    pub(super) fn remove_below(&self, threshold: usize, rows: &mut [u64], buffer: &mut [u64]) {
        self.rows_below(threshold, buffer);
        for (word, below) in rows.iter_mut().zip(buffer) {
            *word &= !*below;
        }
    }

    #[inline(always)]
    fn rows_below(&self, threshold: usize, rows: &mut [u64]) {
        let (bitmap, listed_from) = self.bitmap_of[threshold];
        rows.copy_from_slice(self.bitmap(bitmap));
        toggle(rows, self.listed(listed_from, threshold));
    }

    fn bitmap(&self, number: u32) -> &[u64] {
        let start = number as usize * self.words;
        &self.bitmaps[start..start + self.words]
    }

    /// The rows below a threshold that its bitmap lacks.
    fn listed(&self, from: u32, threshold: usize) -> &[u32] {
        &self.sorted[from as usize..self.below[threshold] as usize]
    }
}

/// Changes the bits of the rows listed.
#[inline(always)]
fn toggle(bits: &mut [u64], rows: &[u32]) {
    for &row in rows {
        bits[row as usize / 64] ^= 1 << (row % 64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CodeRange, PrefixBitmaps, RangeCodes};

    proptest! {
        #[test]
        fn the_rows_between_two_thresholds_are_those_whose_codes_are_in_the_range(
            blocks in prop::collection::vec(prop::collection::vec(0..40u32, 1..400), 1..4),
            ranges in prop::collection::vec((0..40u32, 0..10u32), 1..8),
        ) {
            let ranges = ranges.iter().map(|&(first, more)| CodeRange::new(first, first + more));
            let ranges: Vec<CodeRange> = ranges.collect();
            let thresholds = RangeCodes::of(ranges.iter().copied());
            let mut bitmaps = PrefixBitmaps::default();
            for codes in blocks {
                // A code above all thresholds is in no range.
                let codes: Vec<u32> = codes
                    .into_iter()
                    .map(|code| if code == 39 { u32::MAX } else { code })
                    .collect();
                bitmaps.build(codes.iter().copied(), &thresholds);
                let bits = |keeps: &dyn Fn(u32) -> bool| {
                    let mut bits = vec![0u64; codes.len().div_ceil(64)];
                    for (row, _) in codes.iter().enumerate().filter(|(_, code)| keeps(**code)) {
                        bits[row / 64] |= 1 << (row % 64);
                    }
                    bits
                };
                for &codes in &ranges {
                    let range = thresholds.range(codes);
                    let CodeRange { first, last } = codes;
                    let expected = bits(&|code| first <= code && code <= last);
                    let (mut found, mut buffer) = (expected.clone(), expected.clone());
                    found.fill(!0);
                    bitmaps.rows_between(range, &mut found);
                    prop_assert_eq!(&found, &expected);
                    let count: u32 = expected.iter().map(|word| word.count_ones()).sum();
                    prop_assert_eq!(bitmaps.count(range), count);
                    found.fill(!0);
                    bitmaps.keep_below(range.to, &mut found, &mut buffer);
                    prop_assert_eq!(&found, &bits(&|code| code <= last));
                    bitmaps.remove_below(range.from, &mut found, &mut buffer);
                    prop_assert_eq!(&found, &expected);
                }
            }
        }
    }
}
