//! Groups of small partitions as bitmaps: one bit per row, one bitmap for each value of an
//! attribute.
//!
//! The rows that share a qid are the intersection of its values' bitmaps, computed 64 rows at a
//! time. That makes the 4.5 million subsets of 41 attributes at *L* = 6 affordable when nearly
//! every row is a partition of its own.

use std::ops::Range;

use multiversion::multiversion;

use super::requirement::{Requirement, by_value};
use super::validity::ChildCheck;

/// Bitmaps of one group, and memory for their intersections.
#[derive(Default)]
pub(super) struct GroupBitmaps {
    /// Number of 64-bit words of a bitmap.
    words: usize,
    /// All bitmaps, one after another.
    bits: Vec<u64>,
    /// Attribute and bitmaps of each column, without columns that have only one value in the group.
    columns: Vec<(usize, Range<usize>)>,
    /// The bitmaps of the counted values; empty if *C* bounds none.
    values: Range<usize>,
    /// Intersections, one after another by depth.
    masks: Vec<u64>,
    /// The bitmap of each value of the current column; all [`NONE`] between columns.
    bitmap_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl GroupBitmaps {
    /// Largest number of rows of a group.
    pub(super) const MAX_ROWS: usize = 1 << 16;

    /// Largest number of words of a group's columns: 32 MiB.
    pub(super) const MAX_WORDS: usize = 1 << 22;

    /// Largest number of counted values.
    pub(super) const MAX_VALUES: usize = 64;

    /// Whether all groups are allowed that result from splitting a group of a child's shares by any
    /// `depth` of the columns from `from` on. If not, `chosen` receives the attributes of the
    /// failing qid. Returns `false` if `stop` returns `true`.
    pub(super) fn check(
        &mut self,
        child: &ChildCheck<'_>,
        group: &[u32],
        (from, depth): (usize, usize),
        chosen: &mut Vec<usize>,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        let rows = self.build(child, group, from);
        let depth = depth.min(self.columns.len());
        let mut masks = std::mem::take(&mut self.masks);
        masks.clear();
        masks.resize((depth + 1) * self.words, 0);
        let (all, deeper) = masks.split_at_mut(self.words);
        set(all, 0..rows);
        let requirement = child.check.requirement;
        let mut traversal = BitmapTraversal {
            bitmaps: self,
            requirement,
            value_counts: vec![0; self.values.len()],
            chosen,
            stop,
        };
        let group = BitmapGroup {
            mask: all,
            rows: rows as u64,
        };
        let allowed = match depth {
            0 => {
                count_values(self, group.mask, &mut traversal.value_counts);
                requirement.allows_counts(group.rows, by_value(&traversal.value_counts))
            }
            _ => traversal.visit(group, deeper, 0, depth),
        };
        self.masks = masks;
        allowed
    }

    /// Builds the bitmaps. Returns the number of rows of the group.
    fn build(&mut self, child: &ChildCheck<'_>, group: &[u32], from: usize) -> usize {
        let shares = || group.iter().map(|&share| &child.shares[share as usize]);
        let rows: usize = shares().map(|share| share.size as usize).sum();
        self.words = rows.div_ceil(64);
        self.bits.clear();
        self.columns.clear();
        let mut built = 0;
        for column in &child.columns[from..] {
            let first = built;
            self.bitmap_of
                .resize(column.width.max(self.bitmap_of.len()), NONE);
            let mut row = 0;
            for &share in group {
                let bitmap = &mut self.bitmap_of[column.codes[share as usize] as usize];
                if *bitmap == NONE {
                    *bitmap = built as u32;
                    built += 1;
                    self.bits.resize(built * self.words, 0);
                }
                let bitmap = *bitmap as usize * self.words;
                let size = child.shares[share as usize].size as usize;
                set(&mut self.bits[bitmap..bitmap + self.words], row..row + size);
                row += size;
            }
            for &share in group {
                self.bitmap_of[column.codes[share as usize] as usize] = NONE;
            }
            if built - first == 1 {
                built = first;
                self.bits.truncate(built * self.words);
            } else {
                self.columns.push((column.attribute, first..built));
            }
        }
        let check = child.check;
        self.values = built..built;
        if check.requirement.bounds_confidence() {
            self.values.end += check.requirement.counted_values;
            self.bits.resize(self.values.end * self.words, 0);
            let mut row = 0;
            for share in shares() {
                // The rows of a share are never separated, so it does not matter which of them are
                // marked as having a value.
                for &(value, count) in check.split_counts.sensitive_counts(share) {
                    let bitmap = (built + value as usize) * self.words;
                    let bitmap = &mut self.bits[bitmap..bitmap + self.words];
                    set(bitmap, row..row + count as usize);
                }
                row += share.size as usize;
            }
        }
        rows
    }

    #[inline(always)]
    fn bitmap(&self, number: usize) -> &[u64] {
        &self.bits[number * self.words..(number + 1) * self.words]
    }
}

fn set(bitmap: &mut [u64], bits: Range<usize>) {
    for bit in bits {
        bitmap[bit / 64] |= 1 << (bit % 64);
    }
}

/// A subset of the rows of the group that the bitmaps were built for.
#[derive(Clone, Copy)]
struct BitmapGroup<'m> {
    mask: &'m [u64],
    rows: u64,
}

/// A depth-first traversal of the subsets of the columns.
struct BitmapTraversal<'a> {
    bitmaps: &'a GroupBitmaps,
    requirement: &'a Requirement<'a>,
    /// By counted value, the number of rows of the current group that have it.
    value_counts: Vec<u64>,
    chosen: &'a mut Vec<usize>,
    stop: &'a dyn Fn() -> bool,
}

impl BitmapTraversal<'_> {
    fn visit(
        &mut self,
        group: BitmapGroup<'_>,
        masks: &mut [u64],
        from: usize,
        depth: usize,
    ) -> bool {
        if depth == 1 {
            return self.count(group, from);
        }
        if (self.stop)() {
            return false;
        }
        let bitmaps = self.bitmaps;
        let (here, deeper) = masks.split_at_mut(bitmaps.words);
        for at in from..=bitmaps.columns.len() - depth {
            let (attribute, numbers) = &bitmaps.columns[at];
            self.chosen.push(*attribute);
            for number in numbers.clone() {
                let rows = intersect(here, group.mask, bitmaps.bitmap(number));
                if rows == 0 {
                    continue;
                }
                if !self.requirement.meets_k(rows) {
                    return false;
                }
                // All rows have this value, so the column does not split the group: subsets of the
                // columns after it are at least as strict.
                if rows == group.rows && bitmaps.columns.len() - at > depth {
                    break;
                }
                let part = BitmapGroup { mask: here, rows };
                if !self.visit(part, deeper, at + 1, depth - 1) {
                    return false;
                }
            }
            self.chosen.pop();
        }
        true
    }

    /// Whether all groups are allowed that result from splitting a group by one of the columns from
    /// `from` on.
    fn count(&mut self, group: BitmapGroup<'_>, from: usize) -> bool {
        count_by_popcnt(self, group, from)
    }

    #[inline(always)]
    fn count_inline(&mut self, group: BitmapGroup<'_>, from: usize) -> bool {
        let bitmaps = self.bitmaps;
        // A subgroup with enough rows for the values of the group is always allowed.
        let mut enough = None;
        for (attribute, numbers) in &bitmaps.columns[from..] {
            let mut left = group.rows;
            for number in numbers.clone() {
                let bitmap = bitmaps.bitmap(number);
                let rows = if number + 1 < numbers.end {
                    ones(group.mask.iter().zip(bitmap).map(|(a, b)| a & b))
                } else {
                    left
                };
                left -= rows;
                if rows == 0 {
                    continue;
                }
                if !self.requirement.meets_k(rows) {
                    self.chosen.push(*attribute);
                    return false;
                }
                if bitmaps.values.is_empty() {
                    continue;
                }
                let enough = *enough.get_or_insert_with(|| {
                    count_values(bitmaps, group.mask, &mut self.value_counts);
                    self.requirement.least_group_within(&self.value_counts)
                });
                if rows < enough && !self.is_bounded(group, bitmap, rows) {
                    self.chosen.push(*attribute);
                    return false;
                }
            }
        }
        true
    }

    /// Whether no sensitive value exceeds *C* among the rows that a group shares with a bitmap.
    /// There are `rows` of them, at least *K*. Only the values are counted that would exceed *C* if
    /// all their rows in the group, and all its rows without a value, were among them.
    #[inline(always)]
    fn is_bounded(&self, group: BitmapGroup<'_>, bitmap: &[u64], rows: u64) -> bool {
        if self.requirement.excludes_missing() {
            return self.is_bounded_without_missing(group, bitmap, rows);
        }
        let values = self.bitmaps.values.clone().zip(&self.value_counts);
        let mut doubtful = values.filter(|&(_, &count)| !self.requirement.bounds(count, rows));
        doubtful.all(|(value, _)| {
            let count = self.shared_with(group, bitmap, value);
            self.requirement.bounds(count, rows)
        })
    }

    /// Like [`Self::is_bounded`], where missing cells are excluded.
    fn is_bounded_without_missing(
        &self,
        group: BitmapGroup<'_>,
        bitmap: &[u64],
        rows: u64,
    ) -> bool {
        let requirement = self.requirement;
        let first = self.bitmaps.values.start;
        let mut values = (0..).zip(&self.value_counts);
        values.all(|(value, &most)| {
            if requirement.counts_missing(value) {
                return true;
            }
            let missing = requirement
                .missing_of(value)
                .map(|missing| missing as usize);
            let most_missing = missing.map_or(0, |missing| self.value_counts[missing]);
            if requirement.bounds(most, rows.saturating_sub(most_missing)) {
                return true;
            }
            let count = |value: usize| self.shared_with(group, bitmap, first + value);
            let of = rows - missing.map_or(0, count);
            requirement.bounds(count(value as usize), of)
        })
    }

    /// Number of rows that a group, a bitmap and a numbered bitmap share.
    #[inline(always)]
    fn shared_with(&self, group: BitmapGroup<'_>, bitmap: &[u64], number: usize) -> u64 {
        let numbered = self.bitmaps.bitmap(number);
        let shared = group.mask.iter().zip(bitmap).map(|(a, b)| a & b);
        ones(shared.zip(numbered).map(|(a, b)| a & b))
    }
}

/// As [`BitmapTraversal::count_inline`], with one instruction to count the bits of a word instead
/// of a dozen where the processor has it.
#[multiversion(targets("x86_64+popcnt"))]
fn count_by_popcnt(
    traversal: &mut BitmapTraversal<'_>,
    group: BitmapGroup<'_>,
    from: usize,
) -> bool {
    traversal.count_inline(group, from)
}

/// Counts the rows of a mask by counted value.
#[inline(always)]
fn count_values(bitmaps: &GroupBitmaps, mask: &[u64], value_counts: &mut [u64]) {
    for (value, count) in bitmaps.values.clone().zip(value_counts) {
        *count = ones(mask.iter().zip(bitmaps.bitmap(value)).map(|(a, b)| a & b));
    }
}

#[inline(always)]
fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// Writes the intersection of two bitmaps to `into`. Returns its number of rows.
fn intersect(into: &mut [u64], a: &[u64], b: &[u64]) -> u64 {
    let mut rows = 0;
    for (into, (a, b)) in into.iter_mut().zip(a.iter().zip(b)) {
        *into = a & b;
        rows += u64::from(into.count_ones());
    }
    rows
}
