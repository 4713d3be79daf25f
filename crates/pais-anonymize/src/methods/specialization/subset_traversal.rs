//! Depth-first traversal of the subsets of a child's attributes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::bitmaps::GroupBitmaps;
use super::requirement::by_value;
use super::share_subjects::PersonCheck;
use super::split_counts::PartitionShare;
use super::validity::{ChildCheck, ValidityCheck, ValueColumn};

/// Largest number of counters (attribute values times sensitive values) kept in a dense array.
const DENSE_COUNTERS: usize = 1 << 16;

/// A depth-first traversal of subsets of a child's attributes, on one thread.
pub(super) struct SubsetTraversal<'a> {
    child: &'a ChildCheck<'a>,
    /// Whether any thread has found a qid that is not allowed.
    found_invalid: &'a AtomicBool,
    /// The attributes of the current subset. After a failed check, those of the qid that failed.
    pub(super) chosen: Vec<usize>,
    /// By depth, a group sorted by an attribute value.
    sorted: Vec<Vec<u32>>,
    /// By value of the current attribute: number of rows or shares; all 0 between uses.
    counts: Vec<u64>,
    /// The attribute values whose count is not 0.
    seen: Vec<u32>,
    /// Rows by sensitive value; all 0 between uses.
    totals: Vec<u64>,
    /// Rows by attribute value and sensitive value; all 0 between uses.
    value_counts: Vec<u64>,
    bitmaps: GroupBitmaps,
    persons: PersonCheck<'a>,
}

impl<'a> SubsetTraversal<'a> {
    pub(super) fn new(child: &'a ChildCheck<'a>, found_invalid: &'a AtomicBool) -> Self {
        let widest = child.columns.first().map_or(0, |column| column.width);
        let values = child.check.requirement.counted_values;
        Self {
            child,
            found_invalid,
            chosen: Vec::new(),
            sorted: Vec::new(),
            counts: vec![0; widest],
            seen: Vec::new(),
            totals: vec![0; values],
            value_counts: Vec::new(),
            bitmaps: GroupBitmaps::default(),
            persons: PersonCheck::new(child.check.requirement),
        }
    }

    fn must_stop(&self) -> bool {
        self.found_invalid.load(Ordering::Relaxed) || self.child.check.observer.must_stop()
    }

    /// Whether all groups are allowed that result from splitting these shares by any `depth` of
    /// the columns from `from` on. If not, `chosen` contains the attributes of the failing qid.
    pub(super) fn visit(&mut self, group: &[u32], from: usize, depth: usize) -> bool {
        let shares = self.child.shares;
        if group.iter().all(|&share| shares[share as usize].meets) {
            return true;
        }
        if depth == 0 || group.len() == 1 {
            return self.allows(group);
        }
        if depth == 1 {
            return self.count(group, from..self.child.columns.len());
        }
        let sizes = group
            .iter()
            .map(|&share| shares[share as usize].size as usize);
        let rows = sizes.sum();
        for first in from..=self.child.columns.len() - depth {
            if self.bitmaps_are_cheaper(group.len(), rows, first) {
                let (child, found_invalid) = (self.child, self.found_invalid);
                let stop =
                    || found_invalid.load(Ordering::Relaxed) || child.check.observer.must_stop();
                let columns = (first, depth);
                return (self.bitmaps).check(child, group, columns, &mut self.chosen, &stop);
            }
            if !self.visit_starting_with(group, first, depth) {
                return false;
            }
        }
        true
    }

    /// Like [`Self::visit`], for the subsets whose first column is `first`.
    pub(super) fn visit_starting_with(
        &mut self,
        group: &[u32],
        first: usize,
        depth: usize,
    ) -> bool {
        if self.must_stop() {
            return false;
        }
        self.chosen.push(self.child.columns[first].attribute);
        if self.sorted.len() <= depth {
            self.sorted.resize_with(depth + 1, Vec::new);
        }
        let mut sorted = std::mem::take(&mut self.sorted[depth]);
        let ends = self.sort(group, first, &mut sorted);
        let mut start = 0;
        for end in ends {
            if !self.visit(&sorted[start..end], first + 1, depth - 1) {
                return false;
            }
            start = end;
        }
        self.sorted[depth] = sorted;
        self.chosen.pop();
        true
    }

    /// Sorts a group by the value of a column, values in order of appearance. Returns the end
    /// index of each value.
    fn sort(&mut self, group: &[u32], column: usize, sorted: &mut Vec<u32>) -> Vec<usize> {
        let codes = &self.child.columns[column].codes;
        for &share in group {
            let code = codes[share as usize];
            let count = &mut self.counts[code as usize];
            if *count == 0 {
                self.seen.push(code);
            }
            *count += 1;
        }
        let mut sum = 0;
        for &code in &self.seen {
            sum += std::mem::replace(&mut self.counts[code as usize], sum);
        }
        sorted.clear();
        sorted.resize(group.len(), 0);
        for &share in group {
            let position = &mut self.counts[codes[share as usize] as usize];
            sorted[*position as usize] = share;
            *position += 1;
        }
        let counts = &mut self.counts;
        let end = |code: u32| std::mem::take(&mut counts[code as usize]) as usize;
        self.seen.drain(..).map(end).collect()
    }

    /// Whether all groups are allowed that result from splitting these shares by one of the
    /// columns.
    pub(super) fn count(&mut self, group: &[u32], columns: std::ops::Range<usize>) -> bool {
        if self.must_stop() {
            return false;
        }
        let ValidityCheck {
            requirement,
            split_counts,
            ..
        } = *self.child.check;
        let shares = self.child.shares;
        let (mut greatest, mut most_missing) = (0, 0);
        if requirement.bounds_confidence() {
            for &share in group {
                for &(value, count) in split_counts.sensitive_counts(&shares[share as usize]) {
                    let total = &mut self.totals[value as usize];
                    *total += u64::from(count);
                    greatest = greatest.max(*total);
                }
            }
            if requirement.excludes_missing() {
                (greatest, most_missing) = self.greatest_totals(group);
            }
            for &share in group {
                for &(value, _) in split_counts.sensitive_counts(&shares[share as usize]) {
                    self.totals[value as usize] = 0;
                }
            }
        }
        for column in columns {
            let column = &self.child.columns[column];
            for &share in group {
                let code = column.codes[share as usize];
                let count = &mut self.counts[code as usize];
                if *count == 0 {
                    self.seen.push(code);
                }
                *count += u64::from(shares[share as usize].size);
            }
            // No subgroup has more rows with a sensitive value, or more without a value, than the
            // whole group.
            let least = self
                .seen
                .iter()
                .map(|&code| self.counts[code as usize])
                .min();
            let least = least.unwrap_or(0);
            let allowed = requirement.meets_k(least)
                && (requirement.bounds(greatest, least.saturating_sub(most_missing))
                    || self.are_bounded(group, column))
                && (requirement.surely_meets_k(least) || self.have_enough_persons(group, column));
            for code in self.seen.drain(..) {
                self.counts[code as usize] = 0;
            }
            if !allowed {
                self.chosen.push(column.attribute);
                return false;
            }
        }
        true
    }

    /// The most rows of a group with the same sensitive value, and the most rows without a value
    /// in the same sensitive column, given that `totals` counts the rows of the group.
    fn greatest_totals(&self, group: &[u32]) -> (u64, u64) {
        let ValidityCheck {
            requirement,
            split_counts,
            ..
        } = *self.child.check;
        let (mut greatest, mut most_missing) = (0, 0);
        for &share in group {
            for &(value, _) in split_counts.sensitive_counts(&self.child.shares[share as usize]) {
                let most = match requirement.counts_missing(value) {
                    true => &mut most_missing,
                    false => &mut greatest,
                };
                *most = self.totals[value as usize].max(*most);
            }
        }
        (greatest, most_missing)
    }

    /// Whether the groups that result from splitting these shares by a column are bounded by *C*.
    /// Their sizes are already in `counts`, and they have at least *K* rows.
    fn are_bounded(&mut self, group: &[u32], column: &ValueColumn) -> bool {
        let ValidityCheck {
            requirement,
            split_counts,
            ..
        } = *self.child.check;
        let shares = self.child.shares;
        let values = requirement.counted_values;
        let counters = column.width.saturating_mul(values);
        if counters > DENSE_COUNTERS {
            return self.are_bounded_sorted(group, column);
        }
        self.value_counts
            .resize(counters.max(self.value_counts.len()), 0);
        let excludes_missing = requirement.excludes_missing();
        let mut bounded = true;
        for &share in group {
            let code = column.codes[share as usize] as usize;
            for &(value, count) in split_counts.sensitive_counts(&shares[share as usize]) {
                let counter = &mut self.value_counts[code * values + value as usize];
                *counter += u64::from(count);
                bounded &= excludes_missing || requirement.bounds(*counter, self.counts[code]);
            }
        }
        if excludes_missing {
            // The rows without a value are known only when all shares are counted.
            bounded = self.seen.iter().all(|&code| {
                let block = &self.value_counts[code as usize * values..][..values];
                requirement.allows_counts(self.counts[code as usize], by_value(block))
            });
        }
        for &code in &self.seen {
            self.value_counts[code as usize * values..(code as usize + 1) * values].fill(0);
        }
        bounded
    }

    /// Like [`Self::are_bounded`], when there are too many values for dense counters.
    fn are_bounded_sorted(&self, group: &[u32], column: &ValueColumn) -> bool {
        let ValidityCheck {
            requirement,
            split_counts,
            ..
        } = *self.child.check;
        let entries = group.iter().flat_map(|&share| {
            let code = column.codes[share as usize];
            let value_counts = split_counts.sensitive_counts(&self.child.shares[share as usize]);
            value_counts
                .iter()
                .map(move |&(value, count)| (code, value, count))
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable();
        let mut subgroups = entries.chunk_by(|(a, ..), (b, ..)| a == b);
        subgroups.all(|subgroup| {
            let runs = subgroup.chunk_by(|(_, a, _), (_, b, _)| a == b);
            let total = |run: &[(u32, u32, u32)]| {
                let rows = run.iter().map(|&(.., count)| u64::from(count)).sum();
                (run[0].1, rows)
            };
            let size = self.counts[subgroup[0].0 as usize];
            requirement.allows_counts(size, runs.map(total))
        })
    }

    fn allows(&mut self, group: &[u32]) -> bool {
        let shares = self.child.shares;
        let shares: Vec<PartitionShare> =
            group.iter().map(|&share| shares[share as usize]).collect();
        let size = shares.iter().map(|share| u64::from(share.size)).sum();
        let subjects = self.child.subjects;
        let lists = group
            .iter()
            .filter_map(|&share| Some(subjects?.of_share(share)));
        self.persons.has_enough(size, lists) && self.child.check.allows(&shares)
    }

    /// Whether the groups that result from splitting these shares by a column have *K* persons.
    /// Their sizes are already in `counts`.
    fn have_enough_persons(&mut self, group: &[u32], column: &ValueColumn) -> bool {
        let Some(subjects) = self.child.subjects else {
            return true;
        };
        let requirement = self.child.check.requirement;
        let size = |code: u32| self.counts[code as usize];
        let coded = group
            .iter()
            .map(|&share| (column.codes[share as usize], share));
        let mut doubtful: Vec<(u32, u32)> = coded
            .filter(|&(code, _)| !requirement.surely_meets_k(size(code)))
            .collect();
        doubtful.sort_unstable();
        let persons = &mut self.persons;
        let counts = &self.counts;
        let mut groups = doubtful.chunk_by(|(a, _), (b, _)| a == b);
        groups.all(|group| {
            let lists = group.iter().map(|&(_, share)| subjects.of_share(share));
            persons.has_enough(counts[group[0].0 as usize], lists)
        })
    }

    /// Whether counting the columns from `from` on by bitmaps of the rows costs less than counting
    /// share by share. A word of 64 rows takes about as long as one share.
    fn bitmaps_are_cheaper(&self, shares: usize, rows: usize, from: usize) -> bool {
        let requirement = self.child.check.requirement;
        // Bitmaps count rows, not persons.
        if self.child.subjects.is_some() {
            return false;
        }
        if requirement.bounds_confidence() && requirement.counted_values > GroupBitmaps::MAX_VALUES
        {
            return false;
        }
        let columns = self.child.columns.len() - from;
        let words = self.child.widths[from] * rows.div_ceil(64);
        rows <= GroupBitmaps::MAX_ROWS
            && words <= GroupBitmaps::MAX_WORDS
            && words <= shares * columns
    }
}
