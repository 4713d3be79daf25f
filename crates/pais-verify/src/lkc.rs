//! Definition 3.1 of the KDD'09 paper, decided by enumeration.
//!
//! Only qids of the greatest size, min(L, number of quasi-identifiers), are enumerated. Adding
//! an attribute to a qid splits its group into disjoint parts. No part is larger than the group,
//! and the group's confidence is the mean of theirs weighted by size, so it is at most the
//! greatest of them. Therefore the smallest group, the greatest confidence and any violation are
//! all found at the greatest size. For the same reason, an attribute with a single value in the
//! table is left out.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedTable;

use super::LkcRequirement;
use super::classes::{Classes, SensitiveIndex, Values};
use super::profiles::{Grid, Profiles, Splitter, ValueCount};
use super::qid_search::{GroupVisitor, KnownValue, QidSearch, choose};
use super::verification::{
    ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
};

/// Decides whether a table satisfies LKC-privacy (KDD'09, Definition 3.1) over the columns
/// `quasi_identifiers`.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed. A table that does not satisfy
/// the requirement is a result, not an error.
pub fn verify_lkc(
    table: &ReleasedTable,
    quasi_identifiers: &[Box<str>],
    requirement: &LkcRequirement,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let stopped = &|| cancellation.is_cancelled();
    let columns = Values::new_all(table, quasi_identifiers)?;
    let sensitive = SensitiveIndex::new(table, &requirement.sensitive)?;
    let mut classes = Classes::new(table.rows, &columns)?;
    let groups = classes.sizes.len() as u64;
    let mut verification = Verification {
        holds: true,
        rows: table.rows as u64,
        groups,
        smallest_group: 0,
        greatest_confidence: 0.0,
        subsets: 0,
        violations: 0,
        worst: Vec::new(),
    };
    if groups == 0 {
        return Ok(verification);
    }
    let mut attributes: Vec<&Values> = columns.iter().filter(|values| values.count() > 1).collect();
    if requirement.l == 0 {
        attributes.clear();
        classes = Classes::new(table.rows, &[])?;
    }
    // Attributes with many values first: groups become small early, and their profiles merge well.
    attributes.sort_by_key(|values| std::cmp::Reverse(values.count()));
    let grid = Grid::new(&attributes, &classes.row);
    let profiles = classes.profiles(&sensitive)?;
    let size = requirement.l.min(grid.attributes());

    let extremes = Extremes::new(stopped);
    find_extremes(&grid, &profiles, sensitive.count(), size, &extremes);
    if extremes.stopped.load(Relaxed) {
        return Err(VerifyError::Stopped);
    }
    let smallest = u64::from(extremes.smallest.load(Relaxed));
    let (most, of) = unpack(extremes.greatest.load(Relaxed));
    verification.smallest_group = smallest;
    verification.greatest_confidence = f64::from(most) / f64::from(of);
    verification.subsets = choose(grid.attributes(), size);
    verification.holds =
        smallest >= requirement.k && !requirement.c.is_exceeded_by(u64::from(most), u64::from(of));
    if !verification.holds {
        let mut violations = Violations::new(requirement, stopped);
        let all = (&profiles, 0..profiles.len());
        QidSearch::new(&grid, sensitive.count()).visit(&mut violations, all, 0, size, true);
        if stopped() {
            return Err(VerifyError::Stopped);
        }
        verification.violations = violations.found.min(VIOLATION_CAP);
        verification.worst = violations
            .worst()
            .map(|found| found.name(&attributes, &sensitive))
            .collect();
        let declared_position = |known: &ColumnValue| {
            let mut names = quasi_identifiers.iter();
            names.position(|name| **name == *known.column)
        };
        for group in &mut verification.worst {
            group.quasi_identifiers.sort_by_key(declared_position);
        }
    }
    Ok(verification)
}

/// Searches all qids of the greatest size, with the first attribute in parallel.
fn find_extremes(
    grid: &Grid,
    profiles: &Profiles,
    sensitive_values: usize,
    size: usize,
    extremes: &Extremes,
) {
    if size <= 1 || size == grid.attributes() {
        let all = (profiles, 0..profiles.len());
        QidSearch::new(grid, sensitive_values).visit(&mut &*extremes, all, 0, size, true);
        return;
    }
    (0..=grid.attributes() - size)
        .into_par_iter()
        .for_each(|attribute| {
            let mut split = Profiles::default();
            let mut splitter = Splitter::new(grid, sensitive_values);
            splitter.split(
                grid,
                (profiles, 0..profiles.len()),
                attribute,
                true,
                &mut split,
            );
            let split = &split;
            split.bounds.par_windows(2).for_each_init(
                || QidSearch::new(grid, sensitive_values),
                |search, bounds| {
                    let value = grid.values(split.class[bounds[0]])[attribute];
                    let group = (split, bounds[0]..bounds[1]);
                    search.visit_below(&mut &*extremes, (attribute, value), group, size - 1);
                },
            );
        });
}

/// The smallest group and the greatest confidence found so far, shared by all threads.
struct Extremes<'s> {
    smallest: AtomicU32,
    /// Number of records with a sensitive value and number of records of its group, packed.
    greatest: AtomicU64,
    stop: &'s (dyn Fn() -> bool + Sync),
    stopped: AtomicBool,
}

impl<'s> Extremes<'s> {
    fn new(stop: &'s (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            smallest: AtomicU32::new(u32::MAX),
            greatest: AtomicU64::new(pack(0, 1)),
            stop,
            stopped: AtomicBool::new(false),
        }
    }
}

fn pack(most: u32, of: u32) -> u64 {
    u64::from(most) << 32 | u64::from(of)
}

fn unpack(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

impl GroupVisitor for &Extremes<'_> {
    const NAMES_VALUES: bool = false;

    #[inline]
    fn size_matters(&self, records: u32) -> bool {
        records < self.smallest.load(Relaxed)
    }

    #[inline]
    fn confidence_matters(&self, most: u32, records: u32) -> bool {
        let (best, of) = unpack(self.greatest.load(Relaxed));
        u64::from(most) * u64::from(of) > u64::from(best) * u64::from(records)
    }

    #[inline]
    fn group(
        &mut self,
        records: u32,
        most: Option<ValueCount>,
        _: u64,
        _: impl FnOnce() -> Vec<KnownValue>,
    ) {
        if self.size_matters(records) {
            self.smallest.fetch_min(records, Relaxed);
        }
        let Some(ValueCount { records: most, .. }) = most else {
            return;
        };
        let mut best = self.greatest.load(Relaxed);
        loop {
            let (most_records, of) = unpack(best);
            if u64::from(most) * u64::from(of) <= u64::from(most_records) * u64::from(records) {
                return;
            }
            match self
                .greatest
                .compare_exchange_weak(best, pack(most, records), Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(current) => best = current,
            }
        }
    }

    fn should_stop(&self) -> bool {
        if !self.stopped.load(Relaxed) && (self.stop)() {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}

/// A violating qid, with attributes and values by number.
struct ViolatingQid {
    qid: Vec<KnownValue>,
    records: u32,
    most: Option<ValueCount>,
}

impl ViolatingQid {
    /// The qid with the names of its columns and values.
    fn name(&self, attributes: &[&Values], sensitive: &SensitiveIndex) -> WorstGroup {
        let known = self.qid.iter().map(|&(attribute, value)| {
            let values = attributes[attribute];
            ColumnValue {
                column: values.column.name.to_string(),
                value: values.text(value).map(str::to_owned),
            }
        });
        let (value, confidence) = match self.most {
            None => (None, 0.0),
            Some(most) => {
                let (column, value) = sensitive.name(most.value);
                let value = ColumnValue {
                    column: column.into(),
                    value: Some(value.into()),
                };
                (
                    Some(value),
                    f64::from(most.records) / f64::from(self.records),
                )
            }
        };
        WorstGroup {
            quasi_identifiers: known.collect(),
            size: u64::from(self.records),
            sensitive: value,
            confidence,
        }
    }

    /// Whether `most` of `records` is a greater confidence than this group's.
    fn exceeds(&self, most: u32, records: u32) -> bool {
        let most_records = self.most.map_or(0, |count| count.records);
        u64::from(most) * u64::from(self.records) > u64::from(most_records) * u64::from(records)
    }
}

/// Counts violating qids up to the cap and keeps the worst: first those with the fewest records
/// below K, then those with the greatest confidence above C, and equal ones in search order. It
/// runs in one thread, so that the same table always gives the same groups.
struct Violations<'r> {
    requirement: &'r LkcRequirement,
    stop: &'r (dyn Fn() -> bool + Sync),
    found: u64,
    small: Vec<ViolatingQid>,
    confident: Vec<ViolatingQid>,
}

impl<'r> Violations<'r> {
    fn new(requirement: &'r LkcRequirement, stop: &'r (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            requirement,
            stop,
            found: 0,
            small: Vec::new(),
            confident: Vec::new(),
        }
    }

    fn worst(&self) -> impl Iterator<Item = &ViolatingQid> {
        self.small.iter().chain(&self.confident).take(WORST_GROUPS)
    }

    fn is_below_cap(&self) -> bool {
        self.found < VIOLATION_CAP
    }

    fn is_too_small(&self, records: u32) -> bool {
        u64::from(records) < self.requirement.k
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

    fn group(
        &mut self,
        records: u32,
        most: Option<ValueCount>,
        qids: u64,
        qid: impl FnOnce() -> Vec<KnownValue>,
    ) {
        let most_records = most.map_or(0, |count| count.records);
        if self.is_too_small(records) {
            self.found = self.found.saturating_add(qids);
            if self.is_among_smallest(records) {
                let position = self.small.partition_point(|found| found.records <= records);
                self.small.insert(
                    position,
                    ViolatingQid {
                        qid: qid(),
                        records,
                        most,
                    },
                );
                self.small.truncate(WORST_GROUPS);
            }
        } else if self.is_too_confident(most_records, records) {
            self.found = self.found.saturating_add(qids);
            if self.is_among_most_confident(most_records, records) {
                let position = self
                    .confident
                    .partition_point(|found| !found.exceeds(most_records, records));
                self.confident.insert(
                    position,
                    ViolatingQid {
                        qid: qid(),
                        records,
                        most,
                    },
                );
                self.confident.truncate(WORST_GROUPS);
            }
        }
    }

    fn should_stop(&self) -> bool {
        (self.stop)()
    }
}
