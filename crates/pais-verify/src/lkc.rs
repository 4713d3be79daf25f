//! Definition 3.1 of the KDD'09 paper, decided by enumeration.
//!
//! Only qids of the greatest size, min(L, number of quasi-identifiers), are enumerated: adding
//! an attribute to a qid splits its group into disjoint parts, none larger than the group, and
//! the group's confidence is the mean of theirs, weighted by size, so no greater than the
//! greatest. The smallest group, the greatest confidence and the first violation are therefore
//! all found at the greatest size. For the same reason an attribute with one value throughout
//! is left out.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use pais_core::table::ReleasedTable;

use super::LkcRequirement;
use super::classes::{Classes, Sensitive, Values};
use super::profiles::{Grid, Profiles, Splitter, Tally};
use super::search::{Known, Visitor, Walk, choose};
use super::verification::{
    ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
};

/// Decides whether a table satisfies LKC-privacy (KDD'09, Definition 3.1) over the columns
/// `quasi_identifiers`.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed; a table that does not
/// satisfy the requirement is an answer, not an error.
pub fn verify_lkc(
    table: &ReleasedTable,
    quasi_identifiers: &[Box<str>],
    requirement: &LkcRequirement,
) -> Result<Verification, VerifyError> {
    verify_lkc_unless(table, quasi_identifiers, requirement, &|| false)
}

/// As [`verify_lkc`], until `stopped` says so. The work grows with the number of subsets, which
/// a great L over many quasi-identifiers makes long.
///
/// # Errors
/// As [`verify_lkc`], and [`VerifyError::Stopped`].
pub fn verify_lkc_unless(
    table: &ReleasedTable,
    quasi_identifiers: &[Box<str>],
    requirement: &LkcRequirement,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Verification, VerifyError> {
    let columns = Values::of_all(table, quasi_identifiers)?;
    let sensitive = Sensitive::of(table, &requirement.sensitive)?;
    let mut classes = Classes::of(table.rows, &columns)?;
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
        classes = Classes::of(table.rows, &[])?;
    }
    // Many values first: groups get small early, and what remains of them merges well.
    attributes.sort_by_key(|values| std::cmp::Reverse(values.count()));
    let grid = Grid::of(&attributes, &classes.row);
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
        Walk::new(&grid, sensitive.count()).visit(&mut violations, all, 0, size, true);
        if stopped() {
            return Err(VerifyError::Stopped);
        }
        verification.violations = violations.found.min(VIOLATION_CAP);
        verification.worst = violations
            .worst()
            .map(|found| found.name(&attributes, &sensitive))
            .collect();
        let declared = |known: &ColumnValue| {
            let mut names = quasi_identifiers.iter();
            names.position(|name| **name == *known.column)
        };
        for group in &mut verification.worst {
            group.quasi_identifiers.sort_by_key(declared);
        }
    }
    Ok(verification)
}

/// Walks the whole search space, its first attribute in parallel.
fn find_extremes(
    grid: &Grid,
    profiles: &Profiles,
    sensitive_values: usize,
    size: usize,
    extremes: &Extremes,
) {
    if size <= 1 || size == grid.attributes() {
        let all = (profiles, 0..profiles.len());
        Walk::new(grid, sensitive_values).visit(&mut &*extremes, all, 0, size, true);
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
                || Walk::new(grid, sensitive_values),
                |walk, bounds| {
                    let value = grid.values(split.class[bounds[0]])[attribute];
                    let group = (split, bounds[0]..bounds[1]);
                    walk.visit_below(&mut &*extremes, (attribute, value), group, size - 1);
                },
            );
        });
}

/// The smallest group and the greatest confidence found so far, by all threads together.
struct Extremes<'s> {
    smallest: AtomicU32,
    /// Records of a sensitive value and of its group, packed.
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

impl Visitor for &Extremes<'_> {
    const NAMES_VALUES: bool = false;

    #[inline]
    fn minds_size(&self, records: u32) -> bool {
        records < self.smallest.load(Relaxed)
    }

    #[inline]
    fn minds_confidence(&self, most: u32, records: u32) -> bool {
        let (best, of) = unpack(self.greatest.load(Relaxed));
        u64::from(most) * u64::from(of) > u64::from(best) * u64::from(records)
    }

    #[inline]
    fn group(&mut self, records: u32, most: Option<Tally>, _: u64, _: impl FnOnce() -> Vec<Known>) {
        if self.minds_size(records) {
            self.smallest.fetch_min(records, Relaxed);
        }
        let Some(Tally { records: most, .. }) = most else {
            return;
        };
        let mut best = self.greatest.load(Relaxed);
        loop {
            let (held, of) = unpack(best);
            if u64::from(most) * u64::from(of) <= u64::from(held) * u64::from(records) {
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

    fn stops(&self) -> bool {
        if !self.stopped.load(Relaxed) && (self.stop)() {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}

/// A violating qid, by numbers.
struct Found {
    qid: Vec<Known>,
    records: u32,
    most: Option<Tally>,
}

impl Found {
    fn name(&self, attributes: &[&Values], sensitive: &Sensitive) -> WorstGroup {
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

    fn exceeds(&self, most: u32, records: u32) -> bool {
        let held = self.most.map_or(0, |tally| tally.records);
        u64::from(most) * u64::from(self.records) > u64::from(held) * u64::from(records)
    }
}

/// Counts violating qids up to the cap and keeps the worst: first those with the fewest records
/// below K, then those with the greatest confidence above C, equals in the order of the walk.
/// One thread, so that the same table always names the same groups.
struct Violations<'r> {
    requirement: &'r LkcRequirement,
    stop: &'r (dyn Fn() -> bool + Sync),
    found: u64,
    small: Vec<Found>,
    confident: Vec<Found>,
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

    fn worst(&self) -> impl Iterator<Item = &Found> {
        self.small.iter().chain(&self.confident).take(WORST_GROUPS)
    }

    fn counts(&self) -> bool {
        self.found < VIOLATION_CAP
    }

    fn too_small(&self, records: u32) -> bool {
        u64::from(records) < self.requirement.k
    }

    fn too_confident(&self, most: u32, records: u32) -> bool {
        self.requirement
            .c
            .is_exceeded_by(u64::from(most), u64::from(records))
    }

    fn among_smallest(&self, records: u32) -> bool {
        let last = self.small.get(WORST_GROUPS - 1);
        last.is_none_or(|last| records < last.records)
    }

    fn among_most_confident(&self, most: u32, records: u32) -> bool {
        let places = WORST_GROUPS - self.small.len();
        match places.checked_sub(1) {
            None => false,
            Some(last) => self
                .confident
                .get(last)
                .is_none_or(|last| last.exceeds(most, records)),
        }
    }
}

impl Visitor for Violations<'_> {
    const NAMES_VALUES: bool = true;

    fn minds_size(&self, records: u32) -> bool {
        self.too_small(records) && (self.counts() || self.among_smallest(records))
    }

    fn minds_confidence(&self, most: u32, records: u32) -> bool {
        self.too_confident(most, records)
            && (self.counts() || self.among_most_confident(most, records))
    }

    fn group(
        &mut self,
        records: u32,
        most: Option<Tally>,
        qids: u64,
        qid: impl FnOnce() -> Vec<Known>,
    ) {
        let held = most.map_or(0, |tally| tally.records);
        if self.too_small(records) {
            self.found = self.found.saturating_add(qids);
            if self.among_smallest(records) {
                let place = self.small.partition_point(|found| found.records <= records);
                self.small.insert(
                    place,
                    Found {
                        qid: qid(),
                        records,
                        most,
                    },
                );
                self.small.truncate(WORST_GROUPS);
            }
        } else if self.too_confident(held, records) {
            self.found = self.found.saturating_add(qids);
            if self.among_most_confident(held, records) {
                let place = self
                    .confident
                    .partition_point(|found| !found.exceeds(held, records));
                self.confident.insert(
                    place,
                    Found {
                        qid: qid(),
                        records,
                        most,
                    },
                );
                self.confident.truncate(WORST_GROUPS);
            }
        }
    }

    fn stops(&self) -> bool {
        (self.stop)()
    }
}
