//! Which points an interval may be split at: all of them told in one pass a subset.
//!
//! Checking one split after the other costs a scan of `T[x]` and a walk over all subsets each,
//! and an interval has as many splits as distinct numbers. Here the rows of `T[x]` are counted once
//! by partition and by the run of numbers between two points. For each subset of the other
//! attributes they then go over to the lower part, run by run, while it is counted how many groups
//! are not allowed; and again from the highest run down, to the upper part. A point is valid where no group of either part
//! was short in any subset. That is a few times what one check costs, for all points.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::Observer;

use super::partitions::{PartitionId, Partitions};
use super::requirement::Requirement;
use super::weights::{Item, Weights};

/// Most counters of sensitive values by group that are kept side by side.
const DENSE_COUNTERS: usize = 1 << 20;

/// The rows of an interval, counted by partition and by the runs that points cut it into.
pub struct Interval<'a> {
    partitions: &'a Partitions,
    requirement: &'a Requirement<'a>,
    weights: &'a Weights,
    /// The partitions that have rows of it.
    link: Vec<PartitionId>,
    /// Rows of a partition, by its place in `link`; run after run, then those without a number.
    entries: Vec<(u32, &'a Item)>,
    /// Where the entries of each run end.
    ends: Vec<usize>,
}

impl<'a> Interval<'a> {
    /// Most points of one pass, which bounds its memory whatever the numbers are.
    pub const POINTS: usize = if cfg!(test) { 3 } else { 1 << 12 };

    /// `weights` has a child for each of `runs` runs, one more for missing cells.
    pub fn new(
        partitions: &'a Partitions,
        requirement: &'a Requirement<'a>,
        weights: &'a Weights,
        runs: usize,
    ) -> Self {
        let mut link: Vec<PartitionId> = Vec::new();
        let mut place_of: FxHashMap<PartitionId, u32> = FxHashMap::default();
        let mut entries = Vec::new();
        let mut ends = Vec::with_capacity(runs);
        for (child, items) in weights.children().iter().enumerate() {
            for item in items {
                let place = *place_of.entry(item.partition).or_insert_with(|| {
                    link.push(item.partition);
                    link.len() as u32 - 1
                });
                entries.push((place, item));
            }
            if child < runs {
                ends.push(entries.len());
            }
        }
        Self {
            partitions,
            requirement,
            weights,
            link,
            entries,
            ends,
        }
    }

    /// Whether each point's split is valid beside `others`, the other attributes below their
    /// topmost value. Stopped by the observer, it answers as if nothing more were found.
    pub fn valid(&self, others: &[usize], observer: &dyn Observer) -> Vec<bool> {
        let standing = Standing::new(self.ends.len() - 1);
        let depth = others.len().min(self.requirement.l - 1);
        let whole = Groups {
            of: vec![0; self.link.len()],
            count: 1,
        };
        if depth == 0 {
            self.sweep(&whole, &standing);
        } else {
            let begins = 0..=others.len() - depth;
            begins.into_par_iter().for_each(|first| {
                let groups = self.refined(&whole, others[first]);
                let search = (&standing, observer);
                self.visit(&groups, &others[first + 1..], depth - 1, search);
            });
        }
        let points = standing.by_point.into_iter();
        points.map(AtomicBool::into_inner).collect()
    }

    /// Sweeps over the groups that `depth` of the attributes make of these.
    fn visit(
        &self,
        groups: &Groups,
        others: &[usize],
        depth: usize,
        (standing, observer): (&Standing, &dyn Observer),
    ) {
        if standing.left() == 0 || observer.must_stop() {
            return;
        }
        if depth == 0 {
            self.sweep(groups, standing);
            return;
        }
        for first in 0..=others.len() - depth {
            let groups = self.refined(groups, others[first]);
            let search = (standing, observer);
            self.visit(&groups, &others[first + 1..], depth - 1, search);
        }
    }

    fn refined(&self, groups: &Groups, attribute: usize) -> Groups {
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let partitions = self.link.iter().zip(&groups.of);
        let number = |(&partition, &group): (&PartitionId, &u32)| {
            let key = (group, self.partitions.concept(partition, attribute));
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        };
        Groups {
            of: partitions.map(number).collect(),
            count: numbers.len(),
        }
    }

    /// Strikes out the points that leave a group of either part short.
    fn sweep(&self, groups: &Groups, standing: &Standing) {
        let mut part = Part::new(self, groups);
        let points = self.ends.len() - 1;
        let entries = |run: usize| {
            let start = run.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.entries[start..self.ends[run]]
        };
        for point in 0..points {
            part.add(entries(point));
            if part.short > 0 {
                standing.strike(point);
            }
        }
        part.clear();
        for point in (0..points).rev() {
            part.add(entries(point + 1));
            if part.short > 0 {
                standing.strike(point);
            }
        }
        part.clear();
        part.add(&self.entries[self.ends[points]..]);
        if part.short > 0 {
            (0..points).for_each(|point| standing.strike(point));
        }
    }
}

/// Partitions grouped by what an adversary may know of other attributes.
struct Groups {
    /// By partition, the number of its group.
    of: Vec<u32>,
    count: usize,
}

/// Points not found invalid, for all threads; point *i* stands before run *i* + 1.
struct Standing {
    by_point: Vec<AtomicBool>,
    left: AtomicUsize,
}

impl Standing {
    fn new(points: usize) -> Self {
        Self {
            by_point: (0..points).map(|_| AtomicBool::new(true)).collect(),
            left: AtomicUsize::new(points),
        }
    }

    fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    fn strike(&self, point: usize) {
        let stands = &self.by_point[point];
        if stands.load(Ordering::Relaxed) && stands.swap(false, Ordering::Relaxed) {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One part of a split, group by group, as rows are added to it. Its counts only grow, so the
/// greatest count of a group is that of the value counted last or the one before.
struct Part<'a> {
    interval: &'a Interval<'a>,
    groups: &'a Groups,
    sizes: Vec<u64>,
    greatest: Vec<u64>,
    /// Rows by group and sensitive value; in `sparse` where they are too many.
    held: Vec<u64>,
    sparse: FxHashMap<usize, u64>,
    is_short: Vec<bool>,
    /// Groups that have rows and are not allowed.
    short: usize,
}

impl<'a> Part<'a> {
    fn new(interval: &'a Interval<'a>, groups: &'a Groups) -> Self {
        let counters = match interval.requirement.bounds_confidence() {
            true => groups.count * interval.requirement.sensitive_values,
            false => 0,
        };
        Self {
            interval,
            groups,
            sizes: vec![0; groups.count],
            greatest: vec![0; groups.count],
            held: vec![
                0;
                if counters <= DENSE_COUNTERS {
                    counters
                } else {
                    0
                }
            ],
            sparse: FxHashMap::default(),
            is_short: vec![false; groups.count],
            short: 0,
        }
    }

    fn clear(&mut self) {
        self.sizes.fill(0);
        self.greatest.fill(0);
        self.held.fill(0);
        self.sparse.clear();
        self.is_short.fill(false);
        self.short = 0;
    }

    fn add(&mut self, entries: &[(u32, &Item)]) {
        let Interval {
            requirement,
            weights,
            ..
        } = *self.interval;
        let bounded = requirement.bounds_confidence();
        for &(place, item) in entries {
            let group = self.groups.of[place as usize] as usize;
            self.sizes[group] += u64::from(item.size);
            if bounded {
                for &(value, rows) in weights.holding(item) {
                    let at = group * requirement.sensitive_values + value as usize;
                    let held = match self.held.get_mut(at) {
                        Some(held) => held,
                        None => self.sparse.entry(at).or_insert(0),
                    };
                    *held += u64::from(rows);
                    self.greatest[group] = self.greatest[group].max(*held);
                }
            }
            let is_short = !requirement.allows(self.sizes[group], self.greatest[group]);
            self.short += usize::from(is_short);
            self.short -= usize::from(std::mem::replace(&mut self.is_short[group], is_short));
        }
    }
}
