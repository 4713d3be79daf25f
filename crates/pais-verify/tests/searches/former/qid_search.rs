//! Enumerates every qid of the greatest size, by depth-first refinement of groups.
//!
//! A subset of attributes is built in attribute order, so that subsets with a common prefix
//! share its work: the group of a prefix is split once by each attribute that may follow. The
//! last attribute of a qid is only counted, not split.

use std::ops::Range;

use super::counter::Counter;
use super::profiles::{Grid, Profiles, Splitter, ValueCount};

/// Number of an attribute, and number of one of its values.
pub(super) type KnownValue = (usize, u32);

/// All qids of the greatest size that have one group.
#[derive(Default)]
pub(super) struct FoundQids {
    /// The values that select the group.
    pub(super) known: Vec<KnownValue>,
    /// Values of further attributes, which all records of the group have.
    pub(super) shared: Vec<KnownValue>,
    /// How many of `shared` each qid has in addition to `known`.
    pub(super) more: usize,
}

/// Decides which groups the search explores, and receives the groups of complete qids.
pub(super) trait GroupVisitor {
    /// Whether [`Self::group`] needs the most frequent sensitive value also for a group that is
    /// relevant for its size alone.
    const NAMES_VALUES: bool;

    /// Whether a group of `records` records is relevant for its size. If false, it must also be
    /// false for more records.
    fn size_matters(&self, records: u32) -> bool;

    /// Whether a group in which `most` of `records` records have one sensitive value is relevant
    /// for its confidence. If false, it must also be false for a lower confidence.
    fn confidence_matters(&self, most: u32, records: u32) -> bool;

    /// Receives the group of complete qids: its number of records, its most frequent sensitive
    /// value, and the qids.
    fn group(&mut self, records: u32, most: Option<ValueCount>, qids: impl FnOnce() -> FoundQids);

    /// Whether to stop the search.
    fn should_stop(&self) -> bool;
}

/// A search over the subsets of a grid's attributes.
pub(super) struct QidSearch<'g> {
    grid: &'g Grid,
    splitter: Splitter,
    spare: Vec<[Profiles; 2]>,
    prefix: Vec<KnownValue>,
    counter: Counter,
}

impl<'g> QidSearch<'g> {
    /// A search that starts with the empty prefix.
    pub(super) fn new(grid: &'g Grid, sensitive_values: usize) -> Self {
        Self {
            grid,
            splitter: Splitter::new(grid, sensitive_values),
            spare: Vec::new(),
            prefix: Vec::new(),
            counter: Counter::new(grid, sensitive_values),
        }
    }

    /// As [`Self::visit`], for the group of the records that have the value `known`.
    pub(super) fn visit_below<V: GroupVisitor>(
        &mut self,
        visitor: &mut V,
        known: KnownValue,
        group: (&Profiles, Range<usize>),
        need: usize,
    ) {
        self.prefix.push(known);
        self.visit(visitor, group, known.0 + 1, need, true);
        self.prefix.pop();
    }

    /// Visits the groups of all qids that extend the prefix by `need` of the attributes from
    /// number `from` on. `with_counts`: whether confidence matters.
    pub(super) fn visit<V: GroupVisitor>(
        &mut self,
        visitor: &mut V,
        (profiles, group): (&Profiles, Range<usize>),
        from: usize,
        need: usize,
        with_counts: bool,
    ) {
        // Every group below is a union of these profiles. Its size is at least that of the
        // smallest profile, and its confidence, a weighted mean of theirs, is at most the
        // greatest. So if no profile is relevant, no group below is.
        let confidence = with_counts
            && group.clone().any(|profile| {
                visitor.confidence_matters(profiles.most[profile], profiles.records[profile])
            });
        let sizes = group
            .clone()
            .any(|profile| visitor.size_matters(profiles.records[profile]));
        if !(confidence || sizes) || visitor.should_stop() {
            return;
        }
        let with_counts = confidence || V::NAMES_VALUES;
        let remaining = self.grid.attributes() - from;
        if group.len() == 1 || need == remaining {
            // No attribute splits a single profile, and all attributes together split a group into
            // its profiles.
            let alone = group.len() == 1;
            for profile in group {
                let class = profiles.class[profile];
                let (prefix, grid) = (&self.prefix, self.grid);
                let most = profiles.value_counts(profile).iter().copied();
                let most = most.reduce(|best, count| {
                    if count.records > best.records {
                        count
                    } else {
                        best
                    }
                });
                visitor.group(profiles.records[profile], most, || {
                    let mut known = prefix.clone();
                    let values = grid.values(class)[from..].iter().copied();
                    let mut shared: Vec<KnownValue> = (from..).zip(values).collect();
                    if !alone {
                        known.append(&mut shared);
                    }
                    FoundQids {
                        known,
                        more: if alone { need } else { 0 },
                        shared,
                    }
                });
            }
            return;
        }
        if need == 1 {
            self.counter
                .count(self.grid, (profiles, group), from, |most, records| {
                    (V::NAMES_VALUES && visitor.size_matters(records))
                        || (with_counts && visitor.confidence_matters(most, records))
                });
            let prefix = &self.prefix;
            self.counter.drain(|known, records, most| {
                visitor.group(records, most, || FoundQids {
                    known: prefix.iter().copied().chain([known]).collect(),
                    ..FoundQids::default()
                });
            });
            return;
        }
        let [mut made, mut last] = self.spare.pop().unwrap_or_default();
        for attribute in from..=self.grid.attributes() - need {
            // Profiles that the previous attribute merged stay merged.
            let source = if attribute == from {
                (profiles, group.clone())
            } else {
                (&last, 0..last.len())
            };
            self.splitter
                .split(self.grid, source, attribute, with_counts, &mut made);
            for bound in 0..made.bounds.len() - 1 {
                let group = made.bounds[bound]..made.bounds[bound + 1];
                let value = self.grid.values(made.class[group.start])[attribute];
                self.prefix.push((attribute, value));
                self.visit(
                    visitor,
                    (&made, group),
                    attribute + 1,
                    need - 1,
                    with_counts,
                );
                self.prefix.pop();
            }
            std::mem::swap(&mut made, &mut last);
        }
        self.spare.push([made, last]);
    }
}

/// Number of subsets of `taken` out of `of` elements; at most `u64::MAX`.
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
