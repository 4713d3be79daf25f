//! The qids of the greatest size, as combinations of attributes over groups of profiles. The last
//! attribute of a qid is only counted, not split.

use std::ops::Range;

use super::bitmap_search::BitmapSearch;
use super::combinations::{Combinations, Group, Part};
use super::counter::Counter;
use super::group_visitor::{FoundQids, GroupVisitor};
use super::profiles::{
    Grid, KnownValue, ProfileGroup, Profiles, Share, Splitter, Suffixes, ValueCount,
};
use super::verification::VerifyError;

/// The combinations of attributes, over groups of profiles.
pub(super) struct ProfileSearch<'g, V> {
    pub(super) grid: &'g Grid,
    pub(super) visitor: V,
    splitter: Splitter<'g>,
    counter: Counter<'g>,
    wide: BitmapSearch<'g>,
}

/// The profiles of a group that was split by an attribute, and those of its previous split.
#[derive(Default)]
pub(super) struct ProfileParts {
    profiles: Profiles,
    previous: Profiles,
}

impl ProfileParts {
    /// All profiles of a table, as one part.
    pub(super) fn all(profiles: Profiles) -> Self {
        Self {
            profiles,
            previous: Profiles::default(),
        }
    }

    pub(super) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The group of all profiles, of which `need` attributes may be known.
    pub(super) fn group(&self, need: usize) -> Group<'_, Self> {
        Group::all(self, 0..self.profiles.len(), need)
    }
}

impl<'p> Group<'p, ProfileParts> {
    fn profiles(&self) -> ProfileGroup<'p> {
        self.parts.profiles.group(self.range.clone())
    }
}

impl<'g, V: GroupVisitor> ProfileSearch<'g, V> {
    pub(super) fn new(
        grid: &'g Grid,
        suffixes: &'g Suffixes,
        sensitive_values: usize,
        visitor: V,
    ) -> Self {
        Self {
            grid,
            visitor,
            splitter: Splitter::new(grid, suffixes, sensitive_values),
            counter: Counter::new(grid, sensitive_values),
            wide: BitmapSearch::new(grid, sensitive_values),
        }
    }

    /// Whether some profiles of a group are relevant for their confidence.
    fn confidence_matters(&self, group: &ProfileGroup) -> bool {
        let ProfileGroup { profiles, range } = group;
        range.clone().any(|profile| {
            self.visitor.confidence_matters(Share {
                most: profiles.most[profile],
                of: profiles.records[profile],
            })
        })
    }

    /// Visits the groups that are profiles: of a single profile, which no attribute splits, or of
    /// all further attributes together, which split a group into its profiles.
    fn visit_profiles(&mut self, prefix: &[KnownValue], group: &Group<ProfileParts>) {
        let (grid, profiles) = (self.grid, &group.parts.profiles);
        let is_alone = group.range.len() == 1;
        for profile in group.range.clone() {
            let mut most = ValueCount::default();
            for &count in profiles.value_counts(profile) {
                most.raise(count);
            }
            let most = (most.records > 0).then_some(most);
            self.visitor.group(profiles.records[profile], most, || {
                let values = grid.values(profiles.class[profile])[group.from..].iter();
                let rest: Vec<KnownValue> = (group.from..).zip(values.copied()).collect();
                if is_alone {
                    FoundQids {
                        known: prefix.to_vec(),
                        shared: rest,
                        more: group.need,
                    }
                } else {
                    FoundQids::of([prefix, &rest].concat())
                }
            });
        }
    }

    /// Visits the groups that one last attribute splits a group into.
    fn count_last(&mut self, prefix: &[KnownValue], group: &Group<ProfileParts>) {
        let profiles = group.profiles();
        let with_counts = V::NAMES_VALUES || self.confidence_matters(&profiles);
        let visitor = &mut self.visitor;
        self.counter.count(&profiles, group.from, |share| {
            (V::NAMES_VALUES && visitor.size_matters(share.of))
                || (with_counts && visitor.confidence_matters(share))
        });
        self.counter.drain(|known, records, most| {
            visitor.group(records, most, || FoundQids::of([prefix, &[known]].concat()));
        });
    }

    /// Searches a group with bitmaps. Returns `false` if searching its profiles is faster, or if
    /// it has relevant qids that have to be named.
    fn search_bitmaps(&mut self, group: &Group<ProfileParts>) -> bool {
        let profiles = group.profiles();
        let (from, need) = (group.from, group.need);
        if !V::NAMES_VALUES {
            return self.wide.visit(&mut self.visitor, &profiles, from, need);
        }
        let mut probe = Probe {
            inner: &self.visitor,
            found: false,
        };
        self.wide.visit(&mut probe, &profiles, from, need) && !probe.found
    }
}

impl<V: GroupVisitor> Combinations for ProfileSearch<'_, V> {
    type Known = KnownValue;
    type Parts = ProfileParts;

    fn visit(
        &mut self,
        known: &[KnownValue],
        group: &Group<ProfileParts>,
    ) -> Result<bool, VerifyError> {
        // Every group below is a union of these profiles. Its size is at least that of the
        // smallest profile, and its confidence, a weighted mean of theirs, is at most the
        // greatest. So if no profile is relevant, no group below is.
        let profiles = group.profiles();
        let size_matters = |&records: &u32| self.visitor.size_matters(records);
        if !self.confidence_matters(&profiles) && !profiles.records().iter().any(size_matters) {
            return Ok(false);
        }
        if self.visitor.should_stop() {
            return Err(VerifyError::Stopped);
        }
        if group.range.len() == 1 || group.need == self.grid.attributes() - group.from {
            self.visit_profiles(known, group);
            return Ok(false);
        }
        if group.need == 1 {
            self.count_last(known, group);
            return Ok(false);
        }
        Ok(!self.search_bitmaps(group))
    }

    fn elements(&self, group: &Group<ProfileParts>) -> Range<usize> {
        group.from..self.grid.attributes() - group.need + 1
    }

    fn divide(
        &mut self,
        group: &Group<ProfileParts>,
        attribute: usize,
        into: &mut ProfileParts,
    ) -> Result<(), VerifyError> {
        std::mem::swap(&mut into.profiles, &mut into.previous);
        // Profiles that the previous attribute merged stay merged.
        let source = if attribute == group.from {
            group.profiles()
        } else {
            into.previous.all()
        };
        let with_counts = V::NAMES_VALUES || self.confidence_matters(&source);
        self.splitter
            .split(&source, attribute, with_counts, &mut into.profiles);
        Ok(())
    }

    fn part(
        &self,
        parts: &ProfileParts,
        attribute: usize,
        number: usize,
    ) -> Option<Part<KnownValue>> {
        let profiles = &parts.profiles;
        let end = *profiles.bounds.get(number + 1)?;
        let start = profiles.bounds[number];
        let value = self.grid.values(profiles.class[start])[attribute];
        Some(Part {
            known: (attribute, value),
            range: start..end,
            from: attribute + 1,
        })
    }
}

/// A visitor that only finds out whether there is any relevant group.
struct Probe<'v, V> {
    inner: &'v V,
    found: bool,
}

impl<V: GroupVisitor> GroupVisitor for Probe<'_, V> {
    const NAMES_VALUES: bool = false;

    fn limit(&self) -> u64 {
        self.inner.limit()
    }

    fn confidence_matters(&self, share: Share) -> bool {
        self.inner.confidence_matters(share)
    }

    fn group(&mut self, records: u32, most: Option<ValueCount>, _: impl FnOnce() -> FoundQids) {
        let share = |most: ValueCount| Share {
            most: most.records,
            of: records,
        };
        self.found |= self.size_matters(records)
            || most.is_some_and(|most| self.confidence_matters(share(most)));
    }

    fn should_stop(&self) -> bool {
        self.found || self.inner.should_stop()
    }
}
