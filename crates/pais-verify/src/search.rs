//! Every qid of the greatest size, by depth-first refinement of groups.
//!
//! A subset of attributes is built in their order, so that subsets with the same beginning
//! share the work of it: the group of a beginning is split once by each attribute that may
//! follow. The last attribute is not split at all but counted.

use std::ops::Range;

use super::counter::Counter;
use super::profiles::{Grid, Profiles, Splitter, Tally};
use super::wide::Wide;

/// An attribute and one of its values, by number.
pub(super) type Known = (usize, u32);

/// What is sought: which groups are worth looking into, and what to do with the final ones.
pub(super) trait Visitor {
    /// Whether the most frequent sensitive value must be known of a group that is of interest
    /// for its size alone.
    const NAMES_VALUES: bool;

    /// Whether a group of so many records is of interest for its size. Must be false for more
    /// records where it is false for fewer.
    fn minds_size(&self, records: u32) -> bool;

    /// Whether a group with `most` of `records` holding one sensitive value is of interest for
    /// its confidence. Must be false for a lower confidence where it is false for a higher.
    fn minds_confidence(&self, most: u32, records: u32) -> bool;

    /// A final group: its records, its most frequent sensitive value, and of how many qids of
    /// the greatest size it is the group. `qid` names one of them, by its beginning alone where
    /// that leaves one profile.
    fn group(
        &mut self,
        records: u32,
        most: Option<Tally>,
        qids: u64,
        qid: impl FnOnce() -> Vec<Known>,
    );

    /// Whether to give up.
    fn stops(&self) -> bool;
}

/// A walk over the subsets of a grid's attributes.
pub(super) struct Walk<'g> {
    grid: &'g Grid,
    splitter: Splitter,
    spare: Vec<[Profiles; 2]>,
    prefix: Vec<Known>,
    counter: Counter,
    wide: Wide,
}

impl<'g> Walk<'g> {
    /// A walk that begins with what is known already.
    pub(super) fn new(grid: &'g Grid, sensitive_values: usize) -> Self {
        Self {
            grid,
            splitter: Splitter::new(grid, sensitive_values),
            spare: Vec::new(),
            prefix: Vec::new(),
            counter: Counter::new(grid, sensitive_values),
            wide: Wide::new(grid, sensitive_values),
        }
    }

    /// As [`Self::visit`], for a group of those that hold `known`.
    pub(super) fn visit_below<V: Visitor>(
        &mut self,
        visitor: &mut V,
        known: Known,
        group: (&Profiles, Range<usize>),
        need: usize,
    ) {
        self.prefix.push(known);
        self.visit(visitor, group, known.0 + 1, need, true);
        self.prefix.pop();
    }

    /// Visits the groups of all qids that add `need` of the attributes from number `from` on to
    /// what is known. `tallies`: whether confidence matters.
    pub(super) fn visit<V: Visitor>(
        &mut self,
        visitor: &mut V,
        (profiles, group): (&Profiles, Range<usize>),
        from: usize,
        need: usize,
        tallies: bool,
    ) {
        // Every group below is a union of these profiles: it is no smaller than the smallest of
        // them, and its confidence, a mean of theirs, no greater than the greatest. So where no
        // profile is of interest, nothing below is.
        let confidence = tallies
            && group.clone().any(|profile| {
                visitor.minds_confidence(profiles.most[profile], profiles.records[profile])
            });
        let sizes = group
            .clone()
            .any(|profile| visitor.minds_size(profiles.records[profile]));
        if !(confidence || sizes) || visitor.stops() {
            return;
        }
        let tallies = confidence || V::NAMES_VALUES;
        let remaining = self.grid.attributes() - from;
        if group.len() == 1 || need == remaining {
            // One profile is split by no attribute, and all attributes split into the profiles.
            let alone = group.len() == 1;
            let qids = if alone { choose(remaining, need) } else { 1 };
            for profile in group {
                let class = profiles.class[profile];
                let (prefix, grid) = (&self.prefix, self.grid);
                let most = profiles.tallies(profile).iter().copied();
                let most = most.reduce(|best, tally| {
                    if tally.records > best.records {
                        tally
                    } else {
                        best
                    }
                });
                visitor.group(profiles.records[profile], most, qids, || {
                    let mut qid = prefix.clone();
                    if !alone {
                        qid.extend((from..).zip(grid.values(class)[from..].iter().copied()));
                    }
                    qid
                });
            }
            return;
        }
        if need == 1 {
            self.counter
                .count(self.grid, (profiles, group), from, |most, records| {
                    (V::NAMES_VALUES && visitor.minds_size(records))
                        || (tallies && visitor.minds_confidence(most, records))
                });
            let prefix = &self.prefix;
            self.counter.drain(|known, records, most| {
                visitor.group(records, most, 1, || {
                    let mut qid = prefix.clone();
                    qid.push(known);
                    qid
                });
            });
            return;
        }
        if V::NAMES_VALUES {
            let mut probe = Probe {
                sought: visitor,
                found: false,
            };
            let (of, wide) = ((profiles, group.clone()), &mut self.wide);
            if wide.visit(&mut probe, self.grid, of, from, need) && !probe.found {
                return;
            }
        } else {
            let of = (profiles, group.clone());
            if self.wide.visit(visitor, self.grid, of, from, need) {
                return;
            }
        }
        let [mut made, mut last] = self.spare.pop().unwrap_or_default();
        for attribute in from..=self.grid.attributes() - need {
            // What the attribute before merged stays merged.
            let source = if attribute == from {
                (profiles, group.clone())
            } else {
                (&last, 0..last.len())
            };
            self.splitter
                .split(self.grid, source, attribute, tallies, &mut made);
            for bound in 0..made.bounds.len() - 1 {
                let group = made.bounds[bound]..made.bounds[bound + 1];
                let value = self.grid.values(made.class[group.start])[attribute];
                self.prefix.push((attribute, value));
                self.visit(visitor, (&made, group), attribute + 1, need - 1, tallies);
                self.prefix.pop();
            }
            std::mem::swap(&mut made, &mut last);
        }
        self.spare.push([made, last]);
    }
}

/// Whether there is a group of interest at all, and no more than that.
struct Probe<'v, V> {
    sought: &'v V,
    found: bool,
}

impl<V: Visitor> Visitor for Probe<'_, V> {
    const NAMES_VALUES: bool = false;

    fn minds_size(&self, records: u32) -> bool {
        self.sought.minds_size(records)
    }

    fn minds_confidence(&self, most: u32, records: u32) -> bool {
        self.sought.minds_confidence(most, records)
    }

    fn group(&mut self, records: u32, most: Option<Tally>, _: u64, _: impl FnOnce() -> Vec<Known>) {
        self.found |= self.minds_size(records)
            || most.is_some_and(|most| self.minds_confidence(most.records, records));
    }

    fn stops(&self) -> bool {
        self.found || self.sought.stops()
    }
}

/// Number of subsets of `taken` of `of`; `u64::MAX` where it is more.
pub(super) fn choose(of: usize, taken: usize) -> u64 {
    let taken = taken.min(of.saturating_sub(taken));
    let mut subsets = 1u128;
    for index in 0..taken as u128 {
        subsets = subsets * (of as u128 - index) / (index + 1);
        if subsets > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    subsets as u64
}
