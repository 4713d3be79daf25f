//! Enumerates all qids up to a length, by depth-first division of the classes.
//!
//! Before the qids of a group are enumerated that lack its next attribute, those of its classes that are equal on
//! all later ones are merged, where that leaves at most half of them; the attributes of most values come first, so
//! that few classes are left after them.
//!
//! A group of one class is not divided further: longer qids with the same values match the same
//! records, so that they are counted without being visited. Neither is a group whose qid lacks one value
//! to the greatest length: its parts are counted ([`super::last_values`]).

use std::iter::once;

use pais_core::cancellation::Cancellation;
use rayon::prelude::*;

use super::buckets::{Buckets, CONFIDENCE_BUCKETS, SIZE_BUCKETS, confidence_bucket, size_bucket};
use super::classes_of_table::{MergedClasses, TableClasses};
use super::last_values::LastValues;
use crate::combinations::choose;
use crate::lists::{DividedGroup, Divider, PartOrder};
use crate::persons::PersonCounter;
use crate::profiles::Share;
use crate::verification::VerifyError;

/// What the privacy model assumes.
#[derive(Clone, Copy)]
pub(super) struct Assumed {
    /// *K*.
    pub(super) k: u64,
    /// The most values that an adversary knows.
    pub(super) length: usize,
}

/// The worst figures of some qids.
#[derive(Clone, Copy)]
pub(super) struct QidFigures {
    /// The least size.
    pub(super) size: u32,
    /// The greatest confidence.
    pub(super) greatest: Share,
}

impl QidFigures {
    /// Those of no qids.
    const NONE: Self = Self {
        size: u32::MAX,
        greatest: Share::NONE,
    };

    fn worst(self, other: Self) -> Self {
        Self {
            size: self.size.min(other.size),
            greatest: self.greatest.max(other.greatest),
        }
    }
}

/// What was found of all qids up to each length.
pub(super) struct FoundLengths {
    /// By length minus 1.
    by_length: Vec<QidFigures>,
    /// The least length at which each class is below *K*.
    below_from: Vec<u8>,
    sizes: [u64; SIZE_BUCKETS],
    confidences: [u64; CONFIDENCE_BUCKETS],
}

impl FoundLengths {
    fn new(lengths: usize, classes: usize) -> Self {
        Self {
            by_length: vec![QidFigures::NONE; lengths],
            below_from: vec![u8::MAX; classes],
            sizes: [0; SIZE_BUCKETS],
            confidences: [0; CONFIDENCE_BUCKETS],
        }
    }

    /// Notes a qid of this length.
    fn note(&mut self, length: usize, figures: QidFigures) {
        self.by_length[length - 1] = self.by_length[length - 1].worst(figures);
    }

    /// Counts qids with the same figures.
    fn count(&mut self, QidFigures { size, greatest }: QidFigures, qids: u64) {
        let count = &mut self.sizes[size_bucket(size)];
        *count = count.saturating_add(qids);
        let count = &mut self.confidences[confidence_bucket(greatest)];
        *count = count.saturating_add(qids);
    }

    /// Adds what was found of other qids of the same classes.
    fn merge(mut self, other: &Self) -> Self {
        self.merge_figures(other);
        for (one, other) in self.below_from.iter_mut().zip(&other.below_from) {
            *one = (*one).min(*other);
        }
        self
    }

    fn merge_figures(&mut self, other: &Self) {
        for (one, other) in self.by_length.iter_mut().zip(&other.by_length) {
            *one = one.worst(*other);
        }
        let counts = self.sizes.iter_mut().zip(other.sizes);
        let confidences = self.confidences.iter_mut().zip(other.confidences);
        for (one, other) in counts.chain(confidences) {
            *one = one.saturating_add(other);
        }
    }

    /// Whether qids of any greater length add nothing to what was found: there is a class, the
    /// group of the longest qids, with the least size and one with the greatest confidence, and none
    /// below *K*.
    fn is_final(&self, classes: &TableClasses, k: u64) -> bool {
        let found = self.up_to(self.by_length.len());
        let smallest = classes.smallest();
        // Persons of a class are no more than its records, and are not looked up here.
        classes.persons.is_none()
            && u64::from(smallest) >= k
            && found.size == smallest
            && !classes.greatest_confidence().exceeds(found.greatest)
    }

    /// The worst figures of the qids of at most this length.
    pub(super) fn up_to(&self, length: usize) -> QidFigures {
        let figures = self.by_length.iter().take(length.max(1)).copied();
        figures.fold(QidFigures::NONE, QidFigures::worst)
    }

    /// The classes that have a qid of at most this length below *K*.
    pub(super) fn below_k(&self, length: usize) -> Vec<u32> {
        let classes = (0u32..).zip(&self.below_from);
        let below = classes.filter(|(_, from)| usize::from(**from) <= length.max(1));
        below.map(|(class, _)| class).collect()
    }

    /// The distributions over the qids that were counted.
    pub(super) fn buckets(&self) -> Buckets {
        Buckets::new(&self.sizes, &self.confidences)
    }
}

/// Enumerates the qids up to `longest`; those up to the assumed length are counted by size and
/// confidence.
///
/// Where every class has *K* records, as in a table of local recoding, the assumed lengths come
/// first: mostly longer qids then add nothing.
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
            found.by_length.resize(longest, QidFigures::NONE);
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
    let all: Vec<u32> = (0..classes.sizes.len() as u32).collect();
    let limits = Limits {
        longest,
        assumed,
        cancellation,
    };
    let mut whole = QidEnumeration::new(classes, limits);
    let mut below = vec![u8::MAX; all.len()];
    if longest == 0 {
        // No column varies: every qid matches all records.
        whole.note(classes, &all, 1, 0, &mut below);
    } else if longest > 1 || !whole.count_last(classes, &all, 0, 1, &mut below) {
        return enumerate_in_parallel(classes, 0, limits);
    }
    whole.found.below_from = below;
    Ok(whole.found)
}

/// Enumerates the qids with attributes from number `from` on; the groups of the values of the first attribute are
/// shared among threads.
fn enumerate_in_parallel(
    classes: &TableClasses,
    from: usize,
    limits: Limits,
) -> Result<FoundLengths, VerifyError> {
    let start = || QidEnumeration::new(classes, limits);
    let all: Vec<u32> = (0..classes.sizes.len() as u32).collect();
    let mut first = start();
    let mut parts = DividedGroup::default();
    first.divide(classes, &all, from, &mut parts);
    let parts: Vec<&[u32]> = parts.parts().collect();
    let found = parts.into_par_iter().try_fold(
        || (start(), vec![u8::MAX; all.len()]),
        |(mut enumeration, mut below), part| {
            enumeration.group(classes, part, from + 1, 1, &mut below)?;
            Ok((enumeration, below))
        },
    );
    let found = found.map(|enumeration| {
        let (QidEnumeration { mut found, .. }, below) = enumeration?;
        found.below_from = below;
        Ok(found)
    });
    let mut found = found
        .try_reduce_with(|one, other| Ok(one.merge(&other)))
        .unwrap_or_else(|| Ok(first.found))?;
    if from + 1 < classes.grid.attributes() {
        let merged = classes.merged(&all, from + 1, &mut first.index);
        let Some(MergedClasses { classes, starts }) = merged else {
            return Ok(found.merge(&enumerate_in_parallel(classes, from + 1, limits)?));
        };
        let later = enumerate_in_parallel(&classes, 0, limits)?;
        found.merge_figures(&later);
        lower_members(&mut found.below_from, &all, &starts, &later.below_from);
    }
    Ok(found)
}

/// What is enumerated.
#[derive(Clone, Copy)]
struct Limits<'a> {
    /// The greatest length.
    longest: usize,
    assumed: Assumed,
    cancellation: &'a Cancellation,
}

/// The enumeration of one thread.
///
/// `below` is, by class, the least length at which it is below *K*.
struct QidEnumeration<'a> {
    limits: Limits<'a>,
    /// The length up to which qids are counted by size and confidence.
    most_counted: usize,
    found: FoundLengths,
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
    persons: PersonCounter,
}

impl<'a> QidEnumeration<'a> {
    fn new(classes: &TableClasses, limits: Limits<'a>) -> Self {
        let value_counts = classes.sensitive.iter().map(|counts| counts.value_count);
        let most_values = value_counts.clone().max().unwrap_or(0);
        let longest = limits.longest.max(1);
        Self {
            limits,
            most_counted: limits.assumed.length.min(longest),
            found: FoundLengths::new(longest, 0),
            last_values: LastValues::new(classes),
            divider: Divider::new(classes.grid.most_values(), PartOrder::OfMembers),
            spare: Vec::new(),
            value_records: value_counts.map(|count| vec![0; count]).collect(),
            touched: Vec::new(),
            index: vec![u32::MAX; most_values],
            persons: PersonCounter::new(classes.persons.as_ref().map_or(0, |it| it.count)),
        }
    }

    /// Divides a group by the values of an attribute.
    fn divide(
        &mut self,
        classes: &TableClasses,
        group: &[u32],
        attribute: usize,
        into: &mut DividedGroup,
    ) {
        let value = |class: u32| once(classes.grid.values(class)[attribute]);
        self.divider.divide(group, value, into);
    }

    /// Notes the qid of a group, which has `length` values, and enumerates those that extend it by attributes
    /// from number `from` on.
    fn group(
        &mut self,
        classes: &TableClasses,
        group: &[u32],
        from: usize,
        length: usize,
        below: &mut [u8],
    ) -> Result<(), VerifyError> {
        if self.limits.cancellation.is_cancelled() {
            return Err(VerifyError::Stopped);
        }
        let is_alone = group.len() == 1;
        let further = if is_alone {
            classes.grid.attributes() - from
        } else {
            0
        };
        self.note(classes, group, length, further, below);
        if is_alone
            || length == self.limits.longest
            || length + 1 == self.limits.longest
                && self.count_last(classes, group, from, length + 1, below)
        {
            return Ok(());
        }
        self.extend(classes, group, from, length, below)
    }

    /// Enumerates the qids that extend that of a group, which has `length` values, by attributes from number
    /// `from` on.
    fn extend(
        &mut self,
        classes: &TableClasses,
        group: &[u32],
        from: usize,
        length: usize,
        below: &mut [u8],
    ) -> Result<(), VerifyError> {
        if from == classes.grid.attributes() {
            return Ok(());
        }
        let mut parts = self.spare.pop().unwrap_or_default();
        self.divide(classes, group, from, &mut parts);
        for part in parts.parts() {
            self.group(classes, part, from + 1, length + 1, below)?;
        }
        self.spare.push(parts);
        let merged = classes.merged(group, from + 1, &mut self.index);
        let Some(MergedClasses { classes, starts }) = merged else {
            return self.extend(classes, group, from + 1, length, below);
        };
        let all: Vec<u32> = (0..classes.sizes.len() as u32).collect();
        let mut of_merged = vec![u8::MAX; all.len()];
        self.extend(&classes, &all, 0, length, &mut of_merged)?;
        lower_members(below, group, &starts, &of_merged);
        Ok(())
    }

    /// Notes the group of a qid. A group of one class is that of every longer qid with some of the
    /// `further` attributes too.
    fn note(
        &mut self,
        classes: &TableClasses,
        group: &[u32],
        length: usize,
        further: usize,
        below: &mut [u8],
    ) {
        let figures = self.measure(classes, group, length);
        if u64::from(figures.size) < self.limits.assumed.k {
            lower(below, length, group.iter().copied());
        }
        self.found.note(length, figures);
        for more in 0..=further {
            if length + more > self.most_counted {
                break;
            }
            self.found.count(figures, choose(further, more));
        }
    }

    /// Notes the qids of this length, the greatest one, that extend the qid of a group by one attribute
    /// from number `from` on. Returns whether they could be counted.
    fn count_last(
        &mut self,
        classes: &TableClasses,
        group: &[u32],
        from: usize,
        length: usize,
        below: &mut [u8],
    ) -> bool {
        let with_confidence = self.confidence_matters(length);
        let Some(last_values) = &mut self.last_values else {
            return false;
        };
        last_values.count(classes, group, from, with_confidence);
        let classes_below = last_values.below(classes, group, from, self.limits.assumed.k);
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

    /// Whether the confidence of qids of this length is of interest. Beyond the assumed lengths, whose
    /// qids are counted by their confidence, it is not once a qid of at most this length has 100 %.
    fn confidence_matters(&self, length: usize) -> bool {
        let Share { most, of } = self.found.up_to(length).greatest;
        length <= self.limits.assumed.length || most < of
    }

    /// Measures the group of a qid of this length. A confidence that is of no interest is given as 0.
    fn measure(&mut self, classes: &TableClasses, group: &[u32], length: usize) -> QidFigures {
        let mut greatest = Share::NONE;
        let sensitive = if self.confidence_matters(length) {
            classes.sensitive.as_slice()
        } else {
            &[]
        };
        for (counts, records) in sensitive.iter().zip(&mut self.value_records) {
            let mut of = 0;
            for &class in group {
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
                let sizes = group.iter().map(|&class| classes.sizes[class as usize]);
                sizes.sum()
            }
            Some(persons) => {
                let lists = group.iter().map(|&class| persons.by_class.of(class));
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

/// Notes what was found of merged classes for their members, which begin at `starts` in a group.
fn lower_members(below: &mut [u8], group: &[u32], starts: &[u32], of_merged: &[u8]) {
    let is_below = |from: &u8| *from < u8::MAX;
    for (ends, &from) in starts.windows(2).zip(of_merged).filter(|it| is_below(it.1)) {
        let members = &group[ends[0] as usize..ends[1] as usize];
        lower(below, from.into(), members.iter().copied());
    }
}
