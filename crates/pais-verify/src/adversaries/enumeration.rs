//! Enumerates all qids up to a length, by depth-first division of the classes.
//!
//! Before the qids without the next attribute of a group are enumerated, its classes that are equal on all
//! later attributes are merged, if at most half of them remain. The attributes with the most values come first,
//! so that few classes remain after them.
//!
//! A group of one class is not divided further: longer qids with the same values match the same records, so
//! they are counted without being visited. Neither is a group whose qid is one value short of the maximum
//! length: its parts are counted ([`super::last_values`]).

use std::iter::once;

use pais_core::cancellation::Cancellation;
use pais_core::subsets::choose;
use pais_core::table::SubjectCounter;
use rayon::prelude::*;

use super::classes_of_table::{MergedClasses, TableClasses};
use super::found_qids::{FoundLengths, MeasuredQids, QidFigures};
use super::last_values::LastValues;
use crate::lists::{DividedGroup, Divider, PartOrder};
use crate::profiles::Share;
use crate::verification::VerifyError;

/// What the privacy model assumes.
#[derive(Clone, Copy)]
pub(super) struct Assumed {
    /// *K*.
    pub(super) k: u64,
    /// Maximum number of values that an adversary knows.
    pub(super) length: usize,
}

/// Enumerates the qids up to `longest`; those up to the assumed length are counted by size and
/// confidence.
///
/// If every class has *K* records, as in a table of local recoding, the assumed lengths come first: longer qids
/// then mostly add nothing.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(super) fn enumerate(
    classes: &TableClasses,
    longest: usize,
    assumed: Assumed,
    cancellation: &Cancellation,
) -> Result<FoundLengths, VerifyError> {
    let may_end_early = classes.persons.is_none() && u64::from(classes.smallest()) >= assumed.k;
    if may_end_early && (1..longest).contains(&assumed.length) {
        let mut found = enumerate_all(classes, assumed.length, assumed, cancellation)?;
        if found.is_final(classes, assumed.k) {
            found.qids.by_length.resize(longest, QidFigures::NONE);
            return Ok(found);
        }
    }
    enumerate_all(classes, longest, assumed, cancellation)
}

fn enumerate_all(
    classes: &TableClasses,
    longest: usize,
    assumed: Assumed,
    cancellation: &Cancellation,
) -> Result<FoundLengths, VerifyError> {
    let limits = Limits {
        longest,
        assumed,
        cancellation,
    };
    let members = classes.members();
    let all = QidGroup::all(classes, &members, 0);
    if longest > 0 {
        return enumerate_in_parallel(all, limits);
    }
    // No column varies: every qid matches all records.
    let mut whole = QidEnumeration::new(classes, limits);
    let mut below_from = vec![u8::MAX; members.len()];
    whole.note(QidGroup { length: 1, ..all }, &mut below_from);
    Ok(FoundLengths {
        qids: whole.found,
        below_from,
    })
}

/// Enumerates the qids of a group of all classes.
fn enumerate_in_parallel(all: QidGroup, limits: Limits) -> Result<FoundLengths, VerifyError> {
    let mut found = enumerate_first(all, limits)?;
    let Some(later) = all.without_first() else {
        return Ok(found);
    };
    let merged = later.merged(&mut all.classes.value_index());
    let Some(MergedClasses { classes, starts }) = merged else {
        return Ok(found.merge(&enumerate_in_parallel(later, limits)?));
    };
    let of_merged = enumerate_in_parallel(QidGroup::all(&classes, &classes.members(), 0), limits)?;
    found.qids.merge(&of_merged.qids);
    let below = &mut found.below_from;
    lower_members(below, all.members, &starts, &of_merged.below_from);
    Ok(found)
}

/// Enumerates the qids of a group of all classes that begin with its first attribute; its values are shared among
/// threads.
fn enumerate_first(all: QidGroup, limits: Limits) -> Result<FoundLengths, VerifyError> {
    let start = || QidEnumeration::new(all.classes, limits);
    let below = || vec![u8::MAX; all.members.len()];
    let mut parts = DividedGroup::default();
    start().divide(all, &mut parts);
    let parts: Vec<&[u32]> = parts.parts().collect();
    let found = parts.into_par_iter().try_fold(
        || (start(), below()),
        |(mut enumeration, mut below), part| {
            enumeration.visit(all.part(part), &mut below)?;
            Ok((enumeration, below))
        },
    );
    let found = found.map(|found: Result<_, VerifyError>| {
        let (QidEnumeration { found: qids, .. }, below_from) = found?;
        Ok(FoundLengths { qids, below_from })
    });
    let found = found.try_reduce_with(|one, other| Ok(one.merge(&other)));
    found.unwrap_or_else(|| {
        Ok(FoundLengths {
            qids: MeasuredQids::new(limits.longest),
            below_from: below(),
        })
    })
}

/// What is enumerated.
#[derive(Clone, Copy)]
struct Limits<'a> {
    /// The greatest length.
    longest: usize,
    assumed: Assumed,
    cancellation: &'a Cancellation,
}

/// The group of a qid, whose longer qids are enumerated.
#[derive(Clone, Copy)]
struct QidGroup<'a> {
    classes: &'a TableClasses,
    /// The classes of the group.
    members: &'a [u32],
    /// The number of values of the qid.
    length: usize,
    /// The first attribute that may extend it.
    from: usize,
}

impl<'a> QidGroup<'a> {
    /// The group of all of some classes.
    fn all(classes: &'a TableClasses, members: &'a [u32], length: usize) -> Self {
        Self {
            classes,
            members,
            length,
            from: 0,
        }
    }

    /// The members that have a value of the first attribute.
    fn part(self, members: &'a [u32]) -> Self {
        Self {
            members,
            length: self.length + 1,
            from: self.from + 1,
            ..self
        }
    }

    /// The same group, whose qid is not extended by the first attribute; `None` if there is no other.
    fn without_first(self) -> Option<Self> {
        let from = self.from + 1;
        (from < self.classes.grid.attributes()).then_some(Self { from, ..self })
    }

    /// See [`TableClasses::merged`].
    fn merged(self, index: &mut [u32]) -> Option<MergedClasses> {
        self.classes.merged(self.members, self.from, index)
    }
}

/// The enumeration of one thread.
///
/// `below` is, by class, the least length at which it is below *K*.
struct QidEnumeration<'a> {
    limits: Limits<'a>,
    /// The length up to which qids are counted by size and confidence.
    most_counted: usize,
    found: MeasuredQids,
    /// `None` where groups are divided by their last value too.
    last_values: Option<LastValues>,
    divider: Divider,
    /// Divided groups that are not in use, for their memory.
    spare: Vec<DividedGroup>,
    /// By denominator and sensitive value, number of records; 0 between calls.
    value_records: Vec<Vec<u32>>,
    touched: Vec<u32>,
    /// That of [`TableClasses::merged`].
    index: Vec<u32>,
    persons: SubjectCounter,
}

impl<'a> QidEnumeration<'a> {
    fn new(classes: &TableClasses, limits: Limits<'a>) -> Self {
        let value_counts = classes.sensitive.iter().map(|counts| counts.value_count);
        let longest = limits.longest.max(1);
        Self {
            limits,
            most_counted: limits.assumed.length.min(longest),
            found: MeasuredQids::new(longest),
            last_values: LastValues::new(classes),
            divider: Divider::new(classes.grid.most_values(), PartOrder::OfMembers),
            spare: Vec::new(),
            value_records: value_counts.map(|count| vec![0; count]).collect(),
            touched: Vec::new(),
            index: classes.value_index(),
            persons: SubjectCounter::new(classes.persons.as_ref().map_or(0, |it| it.count)),
        }
    }

    /// Divides a group by the values of its first attribute.
    fn divide(&mut self, group: QidGroup, into: &mut DividedGroup) {
        let value = |class: u32| once(group.classes.grid.values(class)[group.from]);
        self.divider.divide(group.members, value, into);
    }

    /// Notes the qid of a group, and enumerates those that extend it.
    fn visit(&mut self, group: QidGroup, below: &mut [u8]) -> Result<(), VerifyError> {
        let Limits {
            longest,
            cancellation,
            ..
        } = self.limits;
        cancellation.check()?;
        self.note(group, below);
        let is_last = group.members.len() == 1 || group.length == longest;
        if is_last || group.length + 1 == longest && self.count_last(group, below) {
            return Ok(());
        }
        self.extend(group, below)
    }

    /// Enumerates the qids that extend that of a group.
    fn extend(&mut self, group: QidGroup, below: &mut [u8]) -> Result<(), VerifyError> {
        if group.from < group.classes.grid.attributes() {
            let mut parts = self.spare.pop().unwrap_or_default();
            self.divide(group, &mut parts);
            for part in parts.parts() {
                self.visit(group.part(part), below)?;
            }
            self.spare.push(parts);
        }
        let Some(later) = group.without_first() else {
            return Ok(());
        };
        let Some(MergedClasses { classes, starts }) = later.merged(&mut self.index) else {
            return self.extend(later, below);
        };
        let members = classes.members();
        let mut of_merged = vec![u8::MAX; members.len()];
        let merged = QidGroup::all(&classes, &members, group.length);
        self.extend(merged, &mut of_merged)?;
        lower_members(below, group.members, &starts, &of_merged);
        Ok(())
    }

    /// Notes the group of a qid. A group of one class is that of every longer qid too.
    fn note(&mut self, group: QidGroup, below: &mut [u8]) {
        let figures = self.measure(group);
        if u64::from(figures.size) < self.limits.assumed.k {
            lower(below, group.length, group.members.iter().copied());
        }
        self.found.note(group.length, figures);
        let further = match group.members.len() {
            1 => group.classes.grid.attributes() - group.from,
            _ => 0,
        };
        for more in 0..=further {
            if group.length + more > self.most_counted {
                break;
            }
            self.found.count(figures, choose(further, more));
        }
    }

    /// Notes the qids of the greatest length that extend the qid of a group by one value. Returns whether they
    /// could be counted.
    fn count_last(&mut self, group: QidGroup, below: &mut [u8]) -> bool {
        let length = group.length + 1;
        let with_confidence = self.confidence_matters(length);
        let Some(last_values) = &mut self.last_values else {
            return false;
        };
        let QidGroup {
            classes,
            members,
            from,
            ..
        } = group;
        last_values.count(classes, members, from, with_confidence);
        let classes_below = last_values.below(classes, members, from, self.limits.assumed.k);
        lower(below, length, classes_below);
        let found = &mut self.found;
        last_values.drain(|figures| {
            found.note(length, figures);
            if length <= self.most_counted {
                found.count(figures, 1);
            }
        });
        true
    }

    /// Whether the confidence of qids of this length matters. Beyond the assumed lengths, whose qids are
    /// counted by confidence, it does not matter once a qid of at most this length has 100 %.
    fn confidence_matters(&self, length: usize) -> bool {
        let Share { most, of } = self.found.up_to(length).greatest;
        length <= self.limits.assumed.length || most < of
    }

    /// Measures a group. A confidence that does not matter is given as 0.
    fn measure(&mut self, group: QidGroup) -> QidFigures {
        let QidGroup {
            classes, members, ..
        } = group;
        let mut greatest = Share::NONE;
        let sensitive = if self.confidence_matters(group.length) {
            classes.sensitive.as_slice()
        } else {
            &[]
        };
        for (counts, records) in sensitive.iter().zip(&mut self.value_records) {
            let mut of = 0;
            for &class in members {
                of += counts.records[class as usize];
                for count in counts.values.of(class) {
                    let record = &mut records[count.value as usize];
                    if *record == 0 {
                        self.touched.push(count.value);
                    }
                    *record += count.records;
                }
            }
            let mut most = 0;
            for value in self.touched.drain(..) {
                most = most.max(std::mem::take(&mut records[value as usize]));
            }
            if of > 0 {
                greatest = greatest.max(Share { most, of });
            }
        }
        let size = match &classes.persons {
            None => {
                let sizes = members.iter().map(|&class| classes.sizes[class as usize]);
                sizes.sum()
            }
            Some(persons) => {
                let lists = members.iter().map(|&class| persons.by_class.of(class));
                // A table has fewer persons than rows, and fewer than 2³² rows.
                self.persons.count_lists(u64::MAX, lists) as u32
            }
        };
        QidFigures { size, greatest }
    }
}

/// Notes classes that have a qid of this length below *K*.
fn lower(below: &mut [u8], length: usize, classes: impl Iterator<Item = u32>) {
    let length = u8::try_from(length).unwrap_or(u8::MAX - 1);
    for class in classes {
        let below = &mut below[class as usize];
        *below = (*below).min(length);
    }
}

/// Notes what was found for merged classes for their members, which begin at `starts` in a group.
fn lower_members(below: &mut [u8], group: &[u32], starts: &[u32], of_merged: &[u8]) {
    let is_below = |from: &u8| *from < u8::MAX;
    for (ends, &from) in starts.windows(2).zip(of_merged).filter(|it| is_below(it.1)) {
        let members = &group[ends[0] as usize..ends[1] as usize];
        lower(below, from.into(), members.iter().copied());
    }
}
