//! Validity of a specialization (KDD'09, Section 4.3.2), checked on the counts by partition.
//!
//! A specialization of *x* is valid when, for each child *c*, every qid of at most *L* values
//! that contains *c* is shared by at least *K* rows and bounded by *C*. Only qids of the full
//! size must be checked: the group of a shorter qid is a union of groups of full ones. Its size is
//! their sum, and its confidence is at most the greatest of theirs. For the same reason
//!  - an attribute with only one value among the rows of *c* can be skipped;
//!  - a partition that alone meets *K* and *C* never makes a group invalid, so a group whose
//!    partitions all meet them needs no further check. The same holds for a child.
//!
//! [`SubsetTraversal`] visits the subsets of a child's attributes depth first, so that subsets with
//! a common prefix share the work for it. For the last attribute rows are only counted, not sorted. Threads
//! share the children and the first attributes of the subsets.
//!
//! If most partitions are small and the remaining attributes have few values, a group is checked by
//! [`GroupBitmaps`]: one bit per row, one bitmap for each value of an attribute. The rows that
//! share a qid are the intersection of its values' bitmaps, computed 64 rows at a time. That makes the 4.5
//! million subsets of 41 attributes at *L* = 6 affordable when nearly every row is a partition of its own.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use multiversion::multiversion;
use pais_core::parallel;
use rayon::prelude::*;

use super::partitions::{PartitionShare, Partitions, SplitCounts};
use super::persons::{ChildSubjects, PersonCheck, ShareSubjects};
use super::requirement::{Requirement, by_value};
use crate::observer::Observer;

/// Number of shares times attributes below which a check is not worth running in parallel; lower in
/// tests, so that small tables are checked in parallel too.
const MIN_PARALLEL_WORK: usize = if cfg!(test) { 16 } else { 1 << 13 };

/// The check of every qid that contains a child of a specialization.
pub(super) struct ValidityCheck<'a> {
    /// The counts of the specialization.
    pub split_counts: &'a SplitCounts,
    /// The partitions it would refine.
    pub partitions: &'a Partitions,
    /// The privacy requirement.
    pub requirement: &'a Requirement<'a>,
    /// The persons of the shares, where *K* counts persons.
    pub subjects: Option<&'a ShareSubjects>,
    /// Checked at every attribute, since one check may take seconds. A stopped check returns an
    /// error, and the search then ends because it checks the observer next.
    pub observer: &'a dyn Observer,
}

impl ValidityCheck<'_> {
    /// Checks that every qid of at most *L* values that contains a child is allowed. `others` are
    /// the attributes below their topmost value, without the candidate's own.
    ///
    /// # Errors
    /// The attributes of a qid that is not allowed, or, once the observer requests a stop, of any qid.
    pub(super) fn run(&self, others: &[usize]) -> Result<(), Vec<usize>> {
        let children = &self.split_counts.children;
        let shares: usize = children.iter().map(Vec::len).sum();
        let found_invalid = AtomicBool::new(false);
        let check = |(child, shares): (usize, &Vec<PartitionShare>)| {
            let checked = self.check(child, shares, others, &found_invalid);
            if checked.is_err() {
                found_invalid.store(true, Ordering::Relaxed);
            }
            checked
        };
        if shares * others.len() >= MIN_PARALLEL_WORK {
            children.par_iter().enumerate().try_for_each(check)
        } else {
            children.iter().enumerate().try_for_each(check)
        }
    }

    /// Like [`Self::run`], for one child.
    fn check(
        &self,
        child: usize,
        shares: &[PartitionShare],
        others: &[usize],
        found_invalid: &AtomicBool,
    ) -> Result<(), Vec<usize>> {
        if shares.iter().all(|share| share.meets) {
            return Ok(());
        }
        let known = others.len().min(self.requirement.l - 1);
        let parallel = shares.len() * others.len() >= MIN_PARALLEL_WORK;
        let column =
            |&attribute: &usize| ValueColumn::from_shares(self.partitions, shares, attribute);
        let columns: Vec<ValueColumn> = match (known, shares.len()) {
            (0, _) | (_, 1) => Vec::new(),
            _ if parallel => parallel::map(others, column)
                .into_iter()
                .flatten()
                .collect(),
            _ => others.iter().filter_map(column).collect(),
        };
        let depth = columns.len().min(known);
        if depth > 0 {
            let check = ChildCheck::new(self, child, shares, columns);
            return check.check(depth, parallel, found_invalid);
        }
        let size = shares.iter().map(|share| u64::from(share.size)).sum();
        let subjects = self.subjects.map(|subjects| subjects.child(child));
        let lists = subjects.into_iter();
        let lists = lists.flat_map(|it| (0..shares.len() as u32).map(|share| it.of_share(share)));
        let enough = PersonCheck::new(self.requirement).has_enough(size, lists);
        if enough && self.allows(shares) {
            Ok(())
        } else {
            Err(Vec::new())
        }
    }

    /// Whether these shares together form an allowed group, by their numbers of rows.
    pub(super) fn allows(&self, shares: &[PartitionShare]) -> bool {
        let size = shares.iter().map(|share| u64::from(share.size)).sum();
        let mut totals = vec![0u64; self.requirement.counted_values];
        for counted in shares
            .iter()
            .flat_map(|share| self.split_counts.counts_of(share))
        {
            totals[counted.value as usize] += u64::from(counted.rows);
        }
        self.requirement.allows_counts(size, by_value(&totals))
    }
}

/// The values of an attribute by partition of a child, for an attribute with more than one value.
pub(super) struct ValueColumn {
    pub(super) attribute: usize,
    /// The value of each share, numbered from 0 in order of appearance.
    pub(super) codes: Vec<u32>,
    /// Number of values.
    pub(super) width: usize,
}

impl ValueColumn {
    /// `None` if all shares have the same value.
    fn from_shares(
        partitions: &Partitions,
        shares: &[PartitionShare],
        attribute: usize,
    ) -> Option<Self> {
        const NONE: u32 = u32::MAX;
        let mut number_of: Vec<u32> = Vec::new();
        let mut width = 0;
        let number = |share: &PartitionShare| {
            let concept = partitions.concept(share.partition, attribute) as usize;
            if concept >= number_of.len() {
                number_of.resize(concept + 1, NONE);
            }
            if number_of[concept] == NONE {
                number_of[concept] = width;
                width += 1;
            }
            number_of[concept]
        };
        let codes = shares.iter().map(number).collect();
        (width > 1).then_some(Self {
            attribute,
            codes,
            width: width as usize,
        })
    }
}

/// The partitions that have rows in one child, attribute by attribute.
pub(super) struct ChildCheck<'a> {
    pub(super) check: &'a ValidityCheck<'a>,
    pub(super) shares: &'a [PartitionShare],
    /// The persons of each share, where *K* counts persons.
    pub(super) subjects: Option<&'a ChildSubjects>,
    /// In descending order of the number of values, so that the last columns have few values.
    pub(super) columns: Vec<ValueColumn>,
    /// For each column, the total number of values of this and all following columns.
    pub(super) widths: Vec<usize>,
}

impl<'a> ChildCheck<'a> {
    fn new(
        check: &'a ValidityCheck<'a>,
        child: usize,
        shares: &'a [PartitionShare],
        mut columns: Vec<ValueColumn>,
    ) -> Self {
        columns.sort_by_key(|column| (std::cmp::Reverse(column.width), column.attribute));
        let mut widths: Vec<usize> = columns
            .iter()
            .rev()
            .scan(0, |sum, column| {
                *sum += column.width;
                Some(*sum)
            })
            .collect();
        widths.reverse();
        Self {
            check,
            shares,
            subjects: check.subjects.map(|subjects| subjects.child(child)),
            columns,
            widths,
        }
    }

    /// Checks the qids of `depth` attributes in addition to the child's own.
    fn check(
        &self,
        depth: usize,
        parallel: bool,
        found_invalid: &AtomicBool,
    ) -> Result<(), Vec<usize>> {
        let all: Vec<u32> = (0..self.shares.len() as u32).collect();
        if !parallel {
            let mut traversal = SubsetTraversal::new(self, found_invalid);
            return if traversal.visit(&all, 0, depth) {
                Ok(())
            } else {
                Err(traversal.chosen)
            };
        }
        // One task per first attribute of a subset, or per attribute if `depth` is 1.
        let begins = 0..=self.columns.len() - depth;
        let check = |traversal: &mut SubsetTraversal<'_>, first| {
            let allowed = match depth {
                1 => traversal.count(&all, first..first + 1),
                _ => traversal.visit_starting_with(&all, first, depth),
            };
            if allowed {
                return Ok(());
            }
            found_invalid.store(true, Ordering::Relaxed);
            Err(std::mem::take(&mut traversal.chosen))
        };
        let checked = begins
            .into_par_iter()
            .map_init(|| SubsetTraversal::new(self, found_invalid), check);
        checked.find_any(Result::is_err).unwrap_or(Ok(()))
    }
}

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
                let (bitmaps, chosen) = (&mut self.bitmaps, &mut self.chosen);
                return bitmaps.check(child, group, first, depth, chosen, &stop);
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
                for counted in split_counts.counts_of(&shares[share as usize]) {
                    let total = &mut self.totals[counted.value as usize];
                    *total += u64::from(counted.rows);
                    greatest = greatest.max(*total);
                }
            }
            if requirement.excludes_missing() {
                (greatest, most_missing) = self.greatest_totals(group);
            }
            for &share in group {
                for counted in split_counts.counts_of(&shares[share as usize]) {
                    self.totals[counted.value as usize] = 0;
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

    /// The maximum number of rows of a group with the same sensitive value, and of rows without a value in the
    /// same sensitive column, given that `totals` counts the rows of the group.
    fn greatest_totals(&self, group: &[u32]) -> (u64, u64) {
        let ValidityCheck {
            requirement,
            split_counts,
            ..
        } = *self.child.check;
        let (mut greatest, mut most_missing) = (0, 0);
        for &share in group {
            for counted in split_counts.counts_of(&self.child.shares[share as usize]) {
                let value = counted.value;
                let most = if requirement.counts_missing(value) {
                    &mut most_missing
                } else {
                    &mut greatest
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
            for counted in split_counts.counts_of(&shares[share as usize]) {
                let counter = &mut self.value_counts[code * values + counted.value as usize];
                *counter += u64::from(counted.rows);
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
            let value_counts = split_counts.counts_of(&self.child.shares[share as usize]);
            value_counts
                .iter()
                .map(move |counted| (code, counted.value, counted.rows))
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
        from: usize,
        depth: usize,
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
                for counted in check.split_counts.counts_of(share) {
                    let bitmap = (built + counted.value as usize) * self.words;
                    let bitmap = &mut self.bits[bitmap..bitmap + self.words];
                    set(bitmap, row..row + counted.rows as usize);
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
            return count(self, group, from);
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

    /// Whether no sensitive value exceeds *C* among the rows that a group shares with a bitmap. There are
    /// `rows` of them, at least *K*. Counts only the values that would exceed *C* if all their rows in the
    /// group, and all its rows without a value, were among them.
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

/// Whether all groups are allowed that result from splitting a group by one of the columns from
/// `from` on. Uses one instruction to count the bits of a word instead of a dozen where the
/// processor has it.
#[multiversion(targets("x86_64+popcnt"))]
fn count(traversal: &mut BitmapTraversal<'_>, group: BitmapGroup<'_>, from: usize) -> bool {
    let bitmaps = traversal.bitmaps;
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
            if !traversal.requirement.meets_k(rows) {
                traversal.chosen.push(*attribute);
                return false;
            }
            if bitmaps.values.is_empty() {
                continue;
            }
            let enough = *enough.get_or_insert_with(|| {
                count_values(bitmaps, group.mask, &mut traversal.value_counts);
                traversal
                    .requirement
                    .least_group_within(&traversal.value_counts)
            });
            if rows < enough && !traversal.is_bounded(group, bitmap, rows) {
                traversal.chosen.push(*attribute);
                return false;
            }
        }
    }
    true
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
