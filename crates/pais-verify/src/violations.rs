//! The violating qids of a table: how many there are, and the worst of them.

use std::cmp::Ordering;

use hashbrown::HashSet;

use pais_core::cancellation::Cancellation;

use super::LkcRequirement;
use super::classes::Values;
use super::combinations::{Search, for_each_subset};
use super::group_visitor::{FoundQids, GroupVisitor};
use super::person_search::ClassGroups;
use super::profiles::{Grid, KnownValue, Share, Suffixes, ValueCount};
use super::qid_search::{ProfileParts, ProfileSearch};
use super::sensitive::SensitiveIndex;
use super::verification::{VIOLATION_CAP, VerifyError, WORST_GROUPS, WorstGroup};

/// Sensitive columns with one denominator, and the records in it.
pub(super) struct Denominator<'a> {
    pub(super) sensitive: SensitiveIndex<'a>,
    pub(super) profiles: ProfileParts,
}

/// A table, prepared for the search.
pub(super) struct SearchedTable<'t> {
    pub(super) grid: &'t Grid,
    pub(super) suffixes: &'t Suffixes,
    pub(super) attributes: &'t [&'t Values<'t>],
    /// The first is the number of all records.
    pub(super) denominators: &'t [Denominator<'t>],
    /// The persons, if K is required of persons instead of records.
    pub(super) persons: Option<&'t ClassGroups<'t>>,
}

/// The violating qids of a table.
pub(super) struct FoundViolations {
    /// Their number, up to the cap.
    pub(super) count: u64,
    /// The worst of them.
    pub(super) worst: Vec<WorstGroup>,
}

impl SearchedTable<'_> {
    /// The violating qids of `size` values.
    ///
    /// It runs in one thread, so that the same table always gives the same qids.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(super) fn find_violations(
        &self,
        size: usize,
        requirement: &LkcRequirement,
        cancellation: &Cancellation,
    ) -> Result<FoundViolations, VerifyError> {
        let mut violations = Violations {
            requirement,
            cancellation,
            asks_size: true,
            found: HashSet::new(),
            small: Vec::new(),
            confident: Vec::new(),
        };
        if let Some(persons) = self.persons {
            violations = persons.visit(violations, size)?;
            violations.asks_size = false;
        }
        for Denominator {
            sensitive,
            profiles,
        } in self.denominators
        {
            let values = sensitive.count();
            let combinations = ProfileSearch::new(self.grid, self.suffixes, values, violations);
            let mut search = Search::new(combinations);
            search.visit(&profiles.group(size))?;
            violations = search.combinations.visitor;
            violations.asks_size = false;
        }
        let candidates = violations.small.iter().chain(&violations.confident);
        let mut worst: Vec<MeasuredQid> = candidates
            .map(|found| MeasuredQid::new(&found.qid, self))
            .collect();
        // A stable sort: equal ones stay in the order in which they were found.
        worst.sort_by(|one, other| {
            let size = |found: &MeasuredQid| found.size.min(requirement.k);
            let by_size = size(one).cmp(&size(other));
            by_size.then_with(|| {
                if one.size < requirement.k {
                    Ordering::Equal
                } else {
                    other.share.cmp(one.share)
                }
            })
        });
        let worst = worst.iter().take(WORST_GROUPS);
        Ok(FoundViolations {
            count: violations.found.len() as u64,
            worst: worst.map(|found| found.name(self)).collect(),
        })
    }
}

/// A violating qid, with attributes and values by number, as the search found it.
struct ViolatingQid {
    qid: Vec<KnownValue>,
    /// Records of the group in the denominator of the search; persons where these are searched.
    size: u32,
    /// Those of them with the sensitive value of the greatest confidence.
    most: u32,
}

impl ViolatingQid {
    fn share(&self) -> Share {
        Share {
            most: self.most,
            of: self.size,
        }
    }
}

/// Counts the violating qids of several searches up to the cap and keeps the worst: first those
/// with the fewest records below K, then those with the greatest confidence above C, and equal ones
/// in search order.
struct Violations<'r> {
    requirement: &'r LkcRequirement,
    cancellation: &'r Cancellation,
    /// Whether a group of fewer than K records violates: not where only the records that have a
    /// value in some column are searched, and not where persons count.
    asks_size: bool,
    /// The violating qids of the greatest size, up to the cap. One qid can be found by several
    /// searches.
    found: HashSet<Vec<KnownValue>>,
    small: Vec<ViolatingQid>,
    confident: Vec<ViolatingQid>,
}

impl Violations<'_> {
    fn is_below_cap(&self) -> bool {
        (self.found.len() as u64) < VIOLATION_CAP
    }

    fn is_too_small(&self, records: u32) -> bool {
        self.asks_size && u64::from(records) < self.requirement.k
    }

    fn is_too_confident(&self, Share { most, of }: Share) -> bool {
        self.requirement.c.is_exceeded_by(most.into(), of.into())
    }

    fn is_among_smallest(&self, size: u32) -> bool {
        let last = self.small.get(WORST_GROUPS - 1);
        last.is_none_or(|last| size < last.size)
    }

    fn is_among_most_confident(&self, share: Share) -> bool {
        // If there are already that many small groups, none of these is listed.
        let last = (WORST_GROUPS - self.small.len()).checked_sub(1);
        last.is_some_and(|last| {
            let last = self.confident.get(last);
            last.is_none_or(|last| share.exceeds(last.share()))
        })
    }

    /// Counts qids, each made of `known` and `more` of the values `shared`.
    fn count(&mut self, known: &mut Vec<KnownValue>, shared: &[KnownValue], more: usize) {
        let mut insert = |qid: &[KnownValue]| {
            if (self.found.len() as u64) < VIOLATION_CAP {
                self.found.insert(qid.to_vec());
                Ok(())
            } else {
                Err(())
            }
        };
        // An error means that the cap is reached.
        let _ = for_each_subset(shared, more, known, &mut insert);
    }

    fn keep_small(&mut self, found: ViolatingQid) {
        let before = |other: &ViolatingQid| other.size <= found.size;
        let position = self.small.partition_point(before);
        self.small.insert(position, found);
        self.small.truncate(WORST_GROUPS);
    }

    /// Keeps a qid among the most confident, once.
    fn keep_confident(&mut self, found: ViolatingQid) {
        let is_same = |other: &ViolatingQid| other.qid == found.qid;
        if self.small.iter().any(is_same) {
            return;
        }
        if let Some(at) = self.confident.iter().position(is_same) {
            if !found.share().exceeds(self.confident[at].share()) {
                return;
            }
            self.confident.remove(at);
        }
        let before = |other: &ViolatingQid| !found.share().exceeds(other.share());
        let position = self.confident.partition_point(before);
        self.confident.insert(position, found);
        self.confident.truncate(WORST_GROUPS);
    }
}

impl GroupVisitor for Violations<'_> {
    const NAMES_VALUES: bool = true;

    fn limit(&self) -> u64 {
        let last = self.small.get(WORST_GROUPS - 1);
        match last.filter(|_| !self.is_below_cap()) {
            _ if !self.asks_size => 0,
            Some(last) => u64::from(last.size),
            None => self.requirement.k,
        }
    }

    fn confidence_matters(&self, share: Share) -> bool {
        self.is_too_confident(share) && (self.is_below_cap() || self.is_among_most_confident(share))
    }

    fn group(&mut self, size: u32, most: Option<ValueCount>, qids: impl FnOnce() -> FoundQids) {
        let most = most.map_or(0, |count| count.records);
        let share = Share { most, of: size };
        let is_small = self.is_too_small(size);
        if !is_small && !self.is_too_confident(share) {
            return;
        }
        let is_kept = if is_small {
            self.is_among_smallest(size)
        } else {
            self.is_among_most_confident(share)
        };
        if !is_kept && !self.is_below_cap() {
            return;
        }
        let FoundQids {
            mut known,
            shared,
            more,
        } = qids();
        self.count(&mut known, &shared, more);
        if !is_kept {
            return;
        }
        let found = ViolatingQid {
            qid: known,
            size,
            most,
        };
        if is_small {
            self.keep_small(found);
        } else {
            self.keep_confident(found);
        }
    }

    fn should_stop(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}

/// A qid with the figures of its group in the whole table.
struct MeasuredQid<'q> {
    qid: &'q [KnownValue],
    /// *|T\[qid\]|*, in records or persons.
    size: u64,
    /// The sensitive value of the greatest confidence, by denominator and number.
    value: Option<(usize, u32)>,
    /// The confidence in it.
    share: Share,
}

impl<'q> MeasuredQid<'q> {
    fn new(qid: &'q [KnownValue], table: &SearchedTable) -> Self {
        let mut measured = Self {
            qid,
            size: 0,
            value: None,
            share: Share::NONE,
        };
        for (number, denominator) in table.denominators.iter().enumerate() {
            let profiles = denominator.profiles.profiles();
            let mut records = 0;
            let mut holding = vec![0u32; denominator.sensitive.count()];
            for profile in 0..profiles.len() {
                if table.grid.has(profiles.class[profile], qid) {
                    records += profiles.records[profile];
                    for count in profiles.value_counts(profile) {
                        holding[count.value as usize] += count.records;
                    }
                }
            }
            if number == 0 {
                measured.size = u64::from(records);
            }
            for (value, most) in (0..).zip(holding) {
                let share = Share { most, of: records };
                if share.exceeds(measured.share) {
                    measured.value = Some((number, value));
                    measured.share = share;
                }
            }
        }
        if let Some(persons) = table.persons {
            measured.size = persons.persons_of(qid);
        }
        measured
    }

    /// The qid with the names of its columns and values.
    fn name(&self, table: &SearchedTable) -> WorstGroup {
        let known = self.qid.iter();
        let known = known.map(|&(attribute, value)| table.attributes[attribute].name(value));
        let sensitive = self
            .value
            .map(|(denominator, value)| table.denominators[denominator].sensitive.name(value));
        WorstGroup {
            quasi_identifiers: known.collect(),
            size: self.size,
            sensitive,
            confidence: self.share.as_f64(),
        }
    }
}
