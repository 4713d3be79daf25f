//! The violating qids of a table: how many there are, and the worst of them.

use std::cmp::Ordering;

use hashbrown::HashSet;

use super::LkcRequirement;
use super::classes::Values;
use super::person_search::{ClassGroups, SmallGroupVisitor};
use super::profiles::{Grid, Profiles, ValueCount};
use super::qid_search::{FoundQids, GroupVisitor, KnownValue, QidSearch};
use super::sensitive::SensitiveIndex;
use super::verification::{ColumnValue, VIOLATION_CAP, VerifyError, WORST_GROUPS, WorstGroup};

/// Sensitive columns with one denominator, and the records in it.
pub(super) type Denominator<'a> = (SensitiveIndex<'a>, Profiles);

/// Number of violating qids of `size` values, up to the cap, and the worst qids. The first of the
/// denominators is the number of all records. With `persons`, K is asked of these, not of records.
///
/// It runs in one thread, so that the same table always gives the same qids.
pub(super) fn find_violations(
    grid: &Grid,
    attributes: &[&Values],
    denominators: &[Denominator],
    size: usize,
    requirement: &LkcRequirement,
    persons: Option<&ClassGroups>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(u64, Vec<WorstGroup>), VerifyError> {
    let mut violations = Violations::new(requirement, stop);
    if let Some(persons) = persons {
        persons.visit(&mut violations, size);
        violations.asks_size = false;
    }
    for (sensitive, profiles) in denominators {
        let all = (profiles, 0..profiles.len());
        QidSearch::new(grid, sensitive.count()).visit(&mut violations, all, 0, size, true);
        if stop() {
            return Err(VerifyError::Stopped);
        }
        violations.asks_size = false;
    }
    let candidates = violations.small.iter().chain(&violations.confident);
    let mut worst: Vec<MeasuredQid> = candidates
        .map(|found| MeasuredQid::new(&found.qid, grid, denominators, persons))
        .collect();
    // A stable sort: equal ones stay in the order in which they were found.
    worst.sort_by(|one, other| {
        let size = |found: &MeasuredQid| found.records.min(requirement.k);
        let by_size = size(one).cmp(&size(other));
        by_size.then_with(|| {
            if one.records < requirement.k {
                Ordering::Equal
            } else {
                compare(other.most_of, one.most_of)
            }
        })
    });
    let worst = worst.iter().take(WORST_GROUPS);
    let worst = worst.map(|found| found.name(attributes, denominators));
    Ok((violations.found.len() as u64, worst.collect()))
}

/// A violating qid, with attributes and values by number, as the search found it.
struct ViolatingQid {
    qid: Vec<KnownValue>,
    /// Records of the group in the denominator of the search; persons where these are searched.
    records: u32,
    /// Those of them with the sensitive value that is inferred best.
    most: u32,
}

impl ViolatingQid {
    /// Whether `most` of `records` is a greater confidence than this group's.
    fn exceeds(&self, most: u32, records: u32) -> bool {
        compare((most, records), (self.most, self.records)).is_gt()
    }
}

/// Compares two confidences, each as records with a value and records of its group.
fn compare((one, one_of): (u32, u32), (other, other_of): (u32, u32)) -> Ordering {
    let one = u64::from(one) * u64::from(other_of);
    one.cmp(&(u64::from(other) * u64::from(one_of)))
}

/// Counts the violating qids of several searches up to the cap and keeps the worst: first those
/// with the fewest records below K, then those with the greatest confidence above C, and equal ones
/// in search order.
struct Violations<'r> {
    requirement: &'r LkcRequirement,
    stop: &'r (dyn Fn() -> bool + Sync),
    /// Whether a group of fewer than K records violates: not where only the records that have a
    /// value in some column are searched, and not where persons count.
    asks_size: bool,
    /// The violating qids of the greatest size, up to the cap. One qid can be found by several
    /// searches.
    found: HashSet<Vec<KnownValue>>,
    small: Vec<ViolatingQid>,
    confident: Vec<ViolatingQid>,
}

impl<'r> Violations<'r> {
    fn new(requirement: &'r LkcRequirement, stop: &'r (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            requirement,
            stop,
            asks_size: true,
            found: HashSet::new(),
            small: Vec::new(),
            confident: Vec::new(),
        }
    }

    fn is_below_cap(&self) -> bool {
        (self.found.len() as u64) < VIOLATION_CAP
    }

    fn is_too_small(&self, records: u32) -> bool {
        self.asks_size && u64::from(records) < self.requirement.k
    }

    fn is_too_confident(&self, most: u32, records: u32) -> bool {
        self.requirement
            .c
            .is_exceeded_by(u64::from(most), u64::from(records))
    }

    fn is_among_smallest(&self, records: u32) -> bool {
        let last = self.small.get(WORST_GROUPS - 1);
        last.is_none_or(|last| records < last.records)
    }

    fn is_among_most_confident(&self, most: u32, records: u32) -> bool {
        let slots = WORST_GROUPS - self.small.len();
        match slots.checked_sub(1) {
            None => false,
            Some(last) => self
                .confident
                .get(last)
                .is_none_or(|last| last.exceeds(most, records)),
        }
    }

    /// Counts qids, each made of `known` and `more` of the values `shared`.
    fn count(&mut self, known: &mut Vec<KnownValue>, shared: &[KnownValue], more: usize) {
        if !self.is_below_cap() {
            return;
        }
        if more == 0 {
            self.found.insert(known.clone());
            return;
        }
        for next in 0..=shared.len().saturating_sub(more) {
            let Some(&value) = shared.get(next) else {
                return;
            };
            known.push(value);
            self.count(known, &shared[next + 1..], more - 1);
            known.pop();
        }
    }

    fn keep_small(&mut self, found: ViolatingQid) {
        let before = |other: &ViolatingQid| other.records <= found.records;
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
            if !self.confident[at].exceeds(found.most, found.records) {
                return;
            }
            self.confident.remove(at);
        }
        let before = |other: &ViolatingQid| !other.exceeds(found.most, found.records);
        let position = self.confident.partition_point(before);
        self.confident.insert(position, found);
        self.confident.truncate(WORST_GROUPS);
    }
}

impl GroupVisitor for Violations<'_> {
    const NAMES_VALUES: bool = true;

    fn size_matters(&self, records: u32) -> bool {
        self.is_too_small(records) && (self.is_below_cap() || self.is_among_smallest(records))
    }

    fn confidence_matters(&self, most: u32, records: u32) -> bool {
        self.is_too_confident(most, records)
            && (self.is_below_cap() || self.is_among_most_confident(most, records))
    }

    fn group(&mut self, records: u32, most: Option<ValueCount>, qids: impl FnOnce() -> FoundQids) {
        let most = most.map_or(0, |count| count.records);
        let is_small = self.is_too_small(records);
        let kept = match is_small {
            true => self.is_among_smallest(records),
            false if !self.is_too_confident(most, records) => return,
            false => self.is_among_most_confident(most, records),
        };
        if !kept && !self.is_below_cap() {
            return;
        }
        let FoundQids {
            mut known,
            shared,
            more,
        } = qids();
        self.count(&mut known, &shared, more);
        if !kept {
            return;
        }
        let found = ViolatingQid {
            qid: known,
            records,
            most,
        };
        if is_small {
            self.keep_small(found);
        } else {
            self.keep_confident(found);
        }
    }

    fn should_stop(&self) -> bool {
        (self.stop)()
    }
}

impl SmallGroupVisitor for Violations<'_> {
    fn limit(&self) -> u64 {
        let last = self.small.get(WORST_GROUPS - 1);
        match last.filter(|_| !self.is_below_cap()) {
            Some(last) => u64::from(last.records),
            None => self.requirement.k,
        }
    }

    fn group(&mut self, persons: u64, qids: impl FnOnce() -> FoundQids) {
        let FoundQids {
            known: mut qid,
            shared,
            more,
        } = qids();
        self.count(&mut qid, &shared, more);
        // A table has fewer persons than rows, and fewer than 2³² rows.
        let records = persons as u32;
        if self.is_among_smallest(records) {
            self.keep_small(ViolatingQid {
                qid,
                records,
                most: 0,
            });
        }
    }

    fn should_stop(&self) -> bool {
        (self.stop)()
    }
}

/// A qid with the figures of its group in the whole table.
struct MeasuredQid<'q> {
    qid: &'q [KnownValue],
    /// *|T\[qid\]|*, in records or persons.
    records: u64,
    /// The sensitive value that is inferred best, by denominator and number.
    value: Option<(usize, u32)>,
    /// Records with that value, and records of the group in its denominator; 0 of 1 without one.
    most_of: (u32, u32),
}

impl<'q> MeasuredQid<'q> {
    fn new(
        qid: &'q [KnownValue],
        grid: &Grid,
        denominators: &[Denominator],
        persons: Option<&ClassGroups>,
    ) -> Self {
        let mut measured = Self {
            qid,
            records: 0,
            value: None,
            most_of: (0, 1),
        };
        for (number, (sensitive, profiles)) in denominators.iter().enumerate() {
            let mut records = 0;
            let mut holding = vec![0u32; sensitive.count()];
            for profile in 0..profiles.len() {
                let values = grid.values(profiles.class[profile]);
                if qid
                    .iter()
                    .all(|&(attribute, value)| values[attribute] == value)
                {
                    records += profiles.records[profile];
                    for count in profiles.value_counts(profile) {
                        holding[count.value as usize] += count.records;
                    }
                }
            }
            if number == 0 {
                measured.records = u64::from(records);
            }
            for (value, &most) in holding.iter().enumerate() {
                if compare((most, records), measured.most_of).is_gt() {
                    measured.value = Some((number, value as u32));
                    measured.most_of = (most, records);
                }
            }
        }
        if let Some(persons) = persons {
            measured.records = persons.persons_of(qid);
        }
        measured
    }

    /// The qid with the names of its columns and values.
    fn name(&self, attributes: &[&Values], denominators: &[Denominator]) -> WorstGroup {
        let known = self.qid.iter().map(|&(attribute, value)| {
            let values = attributes[attribute];
            ColumnValue {
                column: values.column.name.to_string(),
                value: values.text(value).map(str::to_owned),
            }
        });
        let sensitive = self.value.map(|(denominator, value)| {
            let (column, value) = denominators[denominator].0.name(value);
            ColumnValue {
                column: column.into(),
                value: Some(value.into()),
            }
        });
        let (most, of) = self.most_of;
        WorstGroup {
            quasi_identifiers: known.collect(),
            size: self.records,
            sensitive,
            confidence: f64::from(most) / f64::from(of),
        }
    }
}
