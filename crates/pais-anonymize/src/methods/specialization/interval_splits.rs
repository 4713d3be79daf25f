//! Determines all points at which an interval may be split, in one pass per subset of attributes.
//!
//! Checking splits one by one costs a scan of `T[x]` and a traversal of all subsets for each split,
//! and an interval has as many splits as distinct numbers. Here the rows of `T[x]` are counted once
//! by partition and by the run of numbers between two points. Then, for each subset of the other
//! attributes, the runs are added to the lower part in ascending order, while the number of groups
//! that are not allowed is maintained. The same is done for the upper part in descending order. A
//! point is valid if no group of either part violates the requirement for any subset. For all
//! points together this costs a few times as much as one check.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pais_core::parallel;
use rustc_hash::{FxHashMap, FxHashSet};

use super::partitions::{PartitionId, PartitionShare};
use super::requirement::ValueRows;
use super::validity::ValidityCheck;

/// Largest number of counters (groups times counted values) kept in a dense array.
const DENSE_COUNTERS: usize = 1 << 20;

/// The rows of an interval, counted by partition and by the runs between split points.
pub(super) struct IntervalSplits<'a> {
    check: &'a ValidityCheck<'a>,
    /// The partitions that have rows in the interval.
    link: Vec<PartitionId>,
    /// Shares: run after run, then the missing cells.
    entries: Vec<Entry<'a>>,
    /// End of the entries of each run.
    ends: Vec<usize>,
}

/// The rows of one partition in one run.
struct Entry<'a> {
    /// Index of the partition in [`IntervalSplits::link`].
    link_index: u32,
    share: &'a PartitionShare,
    /// The persons of the rows; empty where rows are counted or are enough.
    subjects: &'a [u32],
}

impl<'a> IntervalSplits<'a> {
    /// Largest number of points of one pass. Bounds the memory independently of the number of
    /// distinct numbers.
    pub(super) const MAX_POINTS: usize = if cfg!(test) { 3 } else { 1 << 12 };

    /// The counts of `check` must have one child for each of `runs` runs, and may have one more for
    /// missing cells.
    pub(super) fn new(check: &'a ValidityCheck<'a>, runs: usize) -> Self {
        let mut link: Vec<PartitionId> = Vec::new();
        let mut link_index_of: FxHashMap<PartitionId, u32> = FxHashMap::default();
        let mut entries = Vec::new();
        let mut ends = Vec::with_capacity(runs);
        for (child, shares) in check.split_counts.children.iter().enumerate() {
            for (index, share) in (0..).zip(shares) {
                let link_index = *link_index_of.entry(share.partition).or_insert_with(|| {
                    link.push(share.partition);
                    link.len() as u32 - 1
                });
                let subjects = check.subjects.map(|subjects| subjects.child(child));
                entries.push(Entry {
                    link_index,
                    share,
                    subjects: subjects.map_or(&[], |subjects| subjects.of_share(index)),
                });
            }
            if child < runs {
                ends.push(entries.len());
            }
        }
        Self {
            check,
            link,
            entries,
            ends,
        }
    }

    /// Returns for each point whether its split is valid together with `others`, the other
    /// attributes below their topmost value. If the observer stops it, the points not checked
    /// completely are returned as valid.
    pub(super) fn valid(&self, others: &[usize]) -> Vec<bool> {
        let valid_points = ValidPoints::new(self.ends.len() - 1);
        let depth = others.len().min(self.check.requirement.l - 1);
        let whole = PartitionGroups {
            of: vec![0; self.link.len()],
            count: 1,
        };
        if depth == 0 {
            self.sweep(&whole, &valid_points);
        } else {
            let begins = 0..=others.len() - depth;
            parallel::map(begins, |first| {
                let groups = self.refined(&whole, others[first]);
                let others = &others[first + 1..];
                self.visit(&groups, others, depth - 1, &valid_points);
            });
        }
        let points = valid_points.by_point.into_iter();
        points.map(AtomicBool::into_inner).collect()
    }

    /// Sweeps over the groups that result from refining these by any `depth` of the attributes.
    fn visit(
        &self,
        groups: &PartitionGroups,
        others: &[usize],
        depth: usize,
        valid_points: &ValidPoints,
    ) {
        if valid_points.remaining() == 0 || self.check.observer.must_stop() {
            return;
        }
        if depth == 0 {
            self.sweep(groups, valid_points);
            return;
        }
        for first in 0..=others.len() - depth {
            let groups = self.refined(groups, others[first]);
            let others = &others[first + 1..];
            self.visit(&groups, others, depth - 1, valid_points);
        }
    }

    fn refined(&self, groups: &PartitionGroups, attribute: usize) -> PartitionGroups {
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let partitions = self.link.iter().zip(&groups.of);
        let number = |(&partition, &group): (&PartitionId, &u32)| {
            let key = (group, self.check.partitions.concept(partition, attribute));
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        };
        PartitionGroups {
            of: partitions.map(number).collect(),
            count: numbers.len(),
        }
    }

    /// Marks the points as invalid for which a group of either part violates the requirement.
    fn sweep(&self, groups: &PartitionGroups, valid_points: &ValidPoints) {
        let mut side = SideCounts::new(self, groups);
        let points = self.ends.len() - 1;
        let entries = |run: usize| {
            let start = run.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.entries[start..self.ends[run]]
        };
        for point in 0..points {
            side.add(entries(point));
            if side.violations > 0 {
                valid_points.mark_invalid(point);
            }
        }
        side.clear();
        for point in (0..points).rev() {
            side.add(entries(point + 1));
            if side.violations > 0 {
                valid_points.mark_invalid(point);
            }
        }
        side.clear();
        side.add(&self.entries[self.ends[points]..]);
        if side.violations > 0 {
            (0..points).for_each(|point| valid_points.mark_invalid(point));
        }
    }
}

/// Partitions grouped by the values that an adversary may know of other attributes.
struct PartitionGroups {
    /// By partition, the number of its group.
    of: Vec<u32>,
    count: usize,
}

/// The points not found invalid so far, shared by all threads. Point *i* is before run *i* + 1.
struct ValidPoints {
    by_point: Vec<AtomicBool>,
    remaining: AtomicUsize,
}

impl ValidPoints {
    fn new(points: usize) -> Self {
        Self {
            by_point: (0..points).map(|_| AtomicBool::new(true)).collect(),
            remaining: AtomicUsize::new(points),
        }
    }

    fn remaining(&self) -> usize {
        self.remaining.load(Ordering::Relaxed)
    }

    fn mark_invalid(&self, point: usize) {
        let is_valid = &self.by_point[point];
        if is_valid.load(Ordering::Relaxed) && is_valid.swap(false, Ordering::Relaxed) {
            self.remaining.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The counts of one side of a split by group, as rows are added to it. Counts only increase, so
/// the greatest count of a group is updated with each addition.
struct SideCounts<'a> {
    interval: &'a IntervalSplits<'a>,
    groups: &'a PartitionGroups,
    sizes: Vec<u64>,
    /// By group, its persons so far, as long as they are fewer than *K*; empty where rows are
    /// counted.
    persons: Vec<FxHashSet<u32>>,
    /// Number of columns of `greatest`: 1 unless missing cells are excluded.
    columns: usize,
    /// By group and sensitive column, the most rows with the same sensitive value.
    greatest: Vec<u64>,
    /// By group and sensitive column, the rows without a value; empty unless missing cells are
    /// excluded.
    missing: Vec<u64>,
    /// Rows by group and counted value; empty if there are too many counters, then `sparse` is
    /// used.
    value_counts: Vec<u64>,
    sparse: FxHashMap<usize, u64>,
    is_violated: Vec<bool>,
    /// Number of groups that have rows and are not allowed.
    violations: usize,
}

impl<'a> SideCounts<'a> {
    fn new(interval: &'a IntervalSplits<'a>, groups: &'a PartitionGroups) -> Self {
        let counters = if interval.check.requirement.bounds_confidence() {
            groups.count * interval.check.requirement.counted_values
        } else {
            0
        };
        let (columns, missing) = if interval.check.requirement.excludes_missing() {
            let columns = interval.check.requirement.sensitive.len();
            (columns, vec![0; groups.count * columns])
        } else {
            (1, Vec::new())
        };
        Self {
            interval,
            groups,
            sizes: vec![0; groups.count],
            persons: match interval.check.subjects {
                Some(_) => vec![FxHashSet::default(); groups.count],
                None => Vec::new(),
            },
            columns,
            greatest: vec![0; groups.count * columns],
            missing,
            value_counts: vec![
                0;
                if counters <= DENSE_COUNTERS {
                    counters
                } else {
                    0
                }
            ],
            sparse: FxHashMap::default(),
            is_violated: vec![false; groups.count],
            violations: 0,
        }
    }

    fn clear(&mut self) {
        self.sizes.fill(0);
        self.persons.iter_mut().for_each(FxHashSet::clear);
        self.greatest.fill(0);
        self.missing.fill(0);
        self.value_counts.fill(0);
        self.sparse.clear();
        self.is_violated.fill(false);
        self.violations = 0;
    }

    /// Whether the rows of a group counted so far are allowed.
    fn allows(&self, group: usize) -> bool {
        let requirement = self.interval.check.requirement;
        let size = self.sizes[group];
        if !requirement.surely_meets_k(size)
            && let Some(persons) = self.persons.get(group)
            && (persons.len() as u64) < requirement.k.get()
        {
            return false;
        }
        if self.missing.is_empty() {
            return requirement.meets_k(size) && requirement.bounds(self.greatest[group], size);
        }
        let columns = group * self.columns..(group + 1) * self.columns;
        let missing = &self.missing[columns.clone()];
        let mut columns = self.greatest[columns].iter().zip(missing);
        requirement.meets_k(size)
            && columns.all(|(&greatest, missing)| requirement.bounds(greatest, size - missing))
    }

    fn add(&mut self, entries: &[Entry<'_>]) {
        let ValidityCheck {
            requirement,
            split_counts,
            ..
        } = *self.interval.check;
        let bounded = requirement.bounds_confidence();
        for &Entry {
            link_index,
            share,
            subjects,
        } in entries
        {
            let group = self.groups.of[link_index as usize] as usize;
            self.sizes[group] += u64::from(share.size);
            if let Some(persons) = self.persons.get_mut(group)
                && (persons.len() as u64) < requirement.k.get()
            {
                persons.extend(subjects);
            }
            if bounded {
                let excludes_missing = requirement.excludes_missing();
                for &ValueRows { value, rows } in split_counts.counts_of(share) {
                    let mut column = group;
                    if excludes_missing {
                        column = group * self.columns + requirement.column_of(value);
                        if requirement.counts_missing(value) {
                            self.missing[column] += u64::from(rows);
                            continue;
                        }
                    }
                    let at = group * requirement.counted_values + value as usize;
                    let count = match self.value_counts.get_mut(at) {
                        Some(count) => count,
                        None => self.sparse.entry(at).or_insert(0),
                    };
                    *count += u64::from(rows);
                    self.greatest[column] = self.greatest[column].max(*count);
                }
            }
            let is_violated = !self.allows(group);
            self.violations += usize::from(is_violated);
            self.violations -=
                usize::from(std::mem::replace(&mut self.is_violated[group], is_violated));
        }
    }
}
