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
//! The subsets are traversed depth first, so that subsets with a common prefix share the work for
//! it. For the last attribute rows are only counted, not sorted. Threads share the children and the
//! first attributes of the subsets. If most partitions are small and the remaining attributes have
//! few values, the group is checked by [`super::bitmaps`].

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::observer::Observer;

use super::partitions::Partitions;
use super::requirement::{Requirement, by_value};
use super::share_subjects::{ChildSubjects, PersonCheck, ShareSubjects};
use super::split_counts::{PartitionShare, SplitCounts};
use super::subset_traversal::SubsetTraversal;

/// Number of shares times attributes below which a check is not worth running in parallel; lower in
/// tests, so that small tables are checked in parallel too.
const MIN_PARALLEL_WORK: usize = if cfg!(test) { 16 } else { 1 << 13 };

/// Number of subsets of `size` elements of a set of `of`; saturates at the greatest `u128`.
pub(super) fn subsets(of: usize, size: usize) -> u128 {
    let size = size.min(of);
    (0..size.min(of - size)).fold(1u128, |count, taken| {
        let next = count.saturating_mul((of - taken) as u128);
        if next == u128::MAX {
            next
        } else {
            next / (taken as u128 + 1)
        }
    })
}

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
    /// The attributes of a qid that is not allowed.
    pub(super) fn run(&self, others: &[usize]) -> Result<(), Vec<usize>> {
        let children = self.split_counts.children();
        let shares: usize = children.iter().map(Vec::len).sum();
        let found_invalid = AtomicBool::new(false);
        let check = |(child, shares): (usize, &Vec<PartitionShare>)| {
            let checked = self.check((child, shares), others, &found_invalid);
            if checked.is_err() {
                found_invalid.store(true, Ordering::Relaxed);
            }
            checked
        };
        match shares * others.len() >= MIN_PARALLEL_WORK {
            true => children.par_iter().enumerate().try_for_each(check),
            false => children.iter().enumerate().try_for_each(check),
        }
    }

    /// Like [`Self::run`], for one child.
    fn check(
        &self,
        (child, shares): (usize, &[PartitionShare]),
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
            _ if parallel => others.par_iter().filter_map(column).collect(),
            _ => others.iter().filter_map(column).collect(),
        };
        let depth = columns.len().min(known);
        if depth > 0 {
            let check = ChildCheck::new(self, (child, shares), columns);
            return check.check(depth, parallel, found_invalid);
        }
        let size = shares.iter().map(|share| u64::from(share.size)).sum();
        let subjects = self.subjects.map(|subjects| subjects.child(child));
        let lists = subjects.into_iter();
        let lists = lists.flat_map(|it| (0..shares.len() as u32).map(|share| it.of_share(share)));
        let enough = PersonCheck::new(self.requirement).has_enough(size, lists);
        match enough && self.allows(shares) {
            true => Ok(()),
            false => Err(Vec::new()),
        }
    }

    /// Whether these shares together form an allowed group, by their numbers of rows.
    pub(super) fn allows(&self, shares: &[PartitionShare]) -> bool {
        let size = shares.iter().map(|share| u64::from(share.size)).sum();
        let mut totals = vec![0u64; self.requirement.counted_values];
        for &(value, count) in shares
            .iter()
            .flat_map(|share| self.split_counts.sensitive_counts(share))
        {
            totals[value as usize] += u64::from(count);
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
        (child, shares): (usize, &'a [PartitionShare]),
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
            return match traversal.visit(&all, 0, depth) {
                true => Ok(()),
                false => Err(traversal.chosen),
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
