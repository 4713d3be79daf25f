//! Validity of a specialization (KDD'09, Section 4.3.2), over weighted partitions.
//!
//! A specialization of *x* is valid when, for each child *c*, every qid of at most *L* values
//! that contains *c* is shared by at least *K* rows and bounded by *C*. Only qids of the full
//! size need looking at: a shorter one is a union of full ones, and sizes only add up while a
//! union's confidence is no more than the greatest of its parts. For the same reason
//!  - an attribute with one value among the rows of *c* adds nothing to a qid;
//!  - a partition that alone meets *K* and *C* can only help, so a group without a partition
//!    that falls short is done, and so is a child without any.
//!
//! The subsets are walked depth first, so that those that begin alike share the work of their
//! beginning, and the last attribute is counted, not split by. Threads share the children and
//! the first attributes of the subsets. Where most partitions are small and the attributes that
//! are left have few values, a group goes over to [`super::bitmaps`].

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::Observer;

use super::partitions::Partitions;
use super::requirement::Requirement;
use super::walk::Walk;
use super::weights::{Item, Weights};

/// Partitions times attributes below which a check is not worth sharing out; few in tests, so
/// that small tables are shared out too.
const SHARED: usize = if cfg!(test) { 16 } else { 1 << 13 };

/// Number of subsets of `size` of `of`; the greatest number where it is more.
pub fn subsets(of: usize, size: usize) -> u128 {
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

/// What every qid that contains a child of a specialization is checked for.
pub struct Check<'a> {
    /// The specialization.
    pub weights: &'a Weights,
    /// The partitions it would refine.
    pub partitions: &'a Partitions,
    /// What must hold.
    pub requirement: &'a Requirement<'a>,
    /// Asked at every attribute: one check may take seconds. A check that is stopped refuses, and
    /// the search, which asks next, ends.
    pub observer: &'a dyn Observer,
}

impl Check<'_> {
    /// Whether every qid of at most *L* values that contains a child is allowed. `others` are
    /// the attributes below their topmost value, the candidate's own left out.
    ///
    /// # Errors
    /// The attributes of a qid that is not allowed.
    pub fn run(&self, others: &[usize]) -> Result<(), Vec<usize>> {
        let children = self.weights.children();
        let items: usize = children.iter().map(Vec::len).sum();
        let refused = AtomicBool::new(false);
        let check = |items: &Vec<Item>| {
            let checked = self.check(items, others, &refused);
            if checked.is_err() {
                refused.store(true, Ordering::Relaxed);
            }
            checked
        };
        match items * others.len() >= SHARED {
            true => children.par_iter().try_for_each(check),
            false => children.iter().try_for_each(check),
        }
    }

    /// As [`Self::run`], of one child.
    fn check(
        &self,
        items: &[Item],
        others: &[usize],
        refused: &AtomicBool,
    ) -> Result<(), Vec<usize>> {
        if items.iter().all(|item| item.meets) {
            return Ok(());
        }
        let known = others.len().min(self.requirement.l - 1);
        let shared = items.len() * others.len() >= SHARED;
        let column = |&attribute: &usize| Column::of(self.partitions, items, attribute);
        let columns: Vec<Column> = match (known, items.len()) {
            (0, _) | (_, 1) => Vec::new(),
            _ if shared => others.par_iter().filter_map(column).collect(),
            _ => others.iter().filter_map(column).collect(),
        };
        let depth = columns.len().min(known);
        if depth > 0 {
            return Child::new(self, items, columns).check(depth, shared, refused);
        }
        match self.allows(items) {
            true => Ok(()),
            false => Err(Vec::new()),
        }
    }

    /// Whether these items together are allowed.
    pub(super) fn allows(&self, items: &[Item]) -> bool {
        let size = items.iter().map(|item| u64::from(item.size)).sum();
        let mut totals = vec![0u64; self.requirement.sensitive_values];
        for &(value, count) in items.iter().flat_map(|item| self.weights.holding(item)) {
            totals[value as usize] += u64::from(count);
        }
        let greatest = totals.into_iter().max().unwrap_or(0);
        self.requirement.allows(size, greatest)
    }
}

/// The values of an attribute that tell the partitions of a child apart, by partition.
pub(super) struct Column {
    pub(super) attribute: usize,
    /// The value of each item, numbered from 0 in order of appearance.
    pub(super) codes: Vec<u32>,
    /// How many values there are.
    pub(super) width: usize,
}

impl Column {
    /// `None` where all items have one value.
    fn of(partitions: &Partitions, items: &[Item], attribute: usize) -> Option<Self> {
        const NONE: u32 = u32::MAX;
        let mut number_of: Vec<u32> = Vec::new();
        let mut width = 0;
        let number = |item: &Item| {
            let concept = partitions.concept(item.partition, attribute) as usize;
            if concept >= number_of.len() {
                number_of.resize(concept + 1, NONE);
            }
            if number_of[concept] == NONE {
                number_of[concept] = width;
                width += 1;
            }
            number_of[concept]
        };
        let codes = items.iter().map(number).collect();
        (width > 1).then_some(Self {
            attribute,
            codes,
            width: width as usize,
        })
    }
}

/// The partitions that have rows in one child, attribute by attribute.
pub(super) struct Child<'a> {
    pub(super) check: &'a Check<'a>,
    pub(super) items: &'a [Item],
    /// Those of many values first: what is left after them is narrow.
    pub(super) columns: Vec<Column>,
    /// From each column on, how many values the columns have together.
    pub(super) widths: Vec<usize>,
}

impl<'a> Child<'a> {
    fn new(check: &'a Check<'a>, items: &'a [Item], mut columns: Vec<Column>) -> Self {
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
            items,
            columns,
            widths,
        }
    }

    /// Checks the qids of `depth` attributes beside the child's own.
    fn check(&self, depth: usize, shared: bool, refused: &AtomicBool) -> Result<(), Vec<usize>> {
        let all: Vec<u32> = (0..self.items.len() as u32).collect();
        if !shared {
            let mut walk = Walk::new(self, refused);
            return match walk.visit(&all, 0, depth) {
                true => Ok(()),
                false => Err(walk.chosen),
            };
        }
        // The subsets that begin with an attribute, or the one attribute there is to be added.
        let begins = 0..=self.columns.len() - depth;
        let check = |walk: &mut Walk<'_>, first| {
            let allowed = match depth {
                1 => walk.count(&all, first..first + 1),
                _ => walk.visit_beginning(&all, first, depth),
            };
            if allowed {
                return Ok(());
            }
            refused.store(true, Ordering::Relaxed);
            Err(std::mem::take(&mut walk.chosen))
        };
        let checked = begins
            .into_par_iter()
            .map_init(|| Walk::new(self, refused), check);
        checked.find_any(Result::is_err).unwrap_or(Ok(()))
    }
}
