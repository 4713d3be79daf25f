//! Enumerates all qids up to a length, by depth-first division of the classes.
//!
//! Qids are enumerated by their first attribute. To those classes are one that are equal on it and all later attributes;
//! the attributes of most values come first, so that few classes are left after them.
//!
//! A group of one class is not divided further: longer qids with the same values match the same
//! records, so that they are counted without being visited. Neither is a group whose qid lacks one value
//! to the greatest length: its parts are counted ([`super::last_values`]).

use std::iter::once;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pais_core::cancellation::Cancellation;

use super::buckets::{Buckets, CONFIDENCE_BUCKETS, SIZE_BUCKETS, confidence_bucket, size_bucket};
use super::classes_of_table::TableClasses;
use super::last_values::LastValues;
use crate::combinations::{Combinations, Group, Part, choose, search_in_parallel};
use crate::lists::{DividedGroup, Divider, PartOrder};
use crate::persons::PersonCounter;
use crate::profiles::{KnownValue, Share};
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

    /// Notes classes that have a qid of this length below *K*.
    fn note_below(&mut self, length: usize, classes: impl Iterator<Item = u32>) {
        let length = u8::try_from(length).unwrap_or(u8::MAX - 1);
        for class in classes {
            let below = &mut self.below_from[class as usize];
            *below = (*below).min(length);
        }
    }

    /// Counts qids with the same figures.
    fn count(&mut self, QidFigures { size, greatest }: QidFigures, qids: u64) {
        let count = &mut self.sizes[size_bucket(size)];
        *count = count.saturating_add(qids);
        let count = &mut self.confidences[confidence_bucket(greatest)];
        *count = count.saturating_add(qids);
    }

    /// Adds what was found of other qids of the same classes.
    fn merge(&mut self, other: &Self) {
        self.merge_figures(other);
        for (one, other) in self.below_from.iter_mut().zip(&other.below_from) {
            *one = (*one).min(*other);
        }
    }

    /// Adds what was found of other qids of merged classes, of which these begin at `starts`.
    fn merge_of_merged(&mut self, other: &Self, starts: &[u32]) {
        self.merge_figures(other);
        for (ends, other) in starts.windows(2).zip(&other.below_from) {
            for below in &mut self.below_from[ends[0] as usize..ends[1] as usize] {
                *below = (*below).min(*other);
            }
        }
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

/// Enumerates the qids by their first attribute, with classes that are merged as far as they are equal on it and all
/// later ones.
fn enumerate_all(
    classes: &TableClasses,
    longest: usize,
    assumed: Assumed,
    cancellation: &Cancellation,
) -> Result<FoundLengths, VerifyError> {
    let attributes = classes.grid.attributes();
    // Single values need no merging, and persons of merged classes would have to be counted.
    if longest < 2 || classes.persons.is_some() {
        return enumerate_from(classes, 0..attributes, longest, assumed, cancellation);
    }
    let of_first =
        |classes: &TableClasses| enumerate_from(classes, 0..1, longest, assumed, cancellation);
    let mut found = of_first(classes)?;
    // The first class of each merged one, and the number of classes.
    let mut starts: Vec<u32> = (0..=classes.sizes.len() as u32).collect();
    let mut last: Option<TableClasses> = None;
    for _ in 1..attributes {
        let merged = last.as_ref().unwrap_or(classes).without_first();
        starts = merged
            .starts
            .iter()
            .map(|&start| starts[start as usize])
            .collect();
        found.merge_of_merged(&of_first(&merged.classes)?, &starts);
        last = Some(merged.classes);
    }
    Ok(found)
}

/// Enumerates the qids whose first attribute is one of `first`.
fn enumerate_from(
    classes: &TableClasses,
    first: Range<usize>,
    longest: usize,
    assumed: Assumed,
    cancellation: &Cancellation,
) -> Result<FoundLengths, VerifyError> {
    let found = || FoundLengths::new(longest.max(1), classes.sizes.len());
    let total = Mutex::new(found());
    let start = || QidEnumeration {
        classes,
        assumed,
        first: first.clone(),
        longest,
        most_counted: assumed.length.min(longest.max(1)),
        cancellation,
        total: &total,
        found: found(),
        last_values: LastValues::new(classes),
        divider: Divider::new(classes.grid.most_values(), PartOrder::OfMembers),
        value_records: classes
            .sensitive
            .iter()
            .map(|counts| vec![0; counts.value_count])
            .collect(),
        touched: Vec::new(),
        persons: PersonCounter::new(classes.persons.as_ref().map_or(0, |it| it.count)),
    };
    let all = DividedGroup::whole(0..classes.sizes.len() as u32);
    if longest == 0 {
        // No column varies: every qid matches all records.
        let mut enumeration = start();
        enumeration.note(1, all.members(&all.group(0).range), 0);
        enumeration.finish();
    } else {
        search_in_parallel(start, &all.group(longest))?;
    }
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The combinations of attributes of all sizes, over groups of classes; one for each thread.
struct QidEnumeration<'a> {
    classes: &'a TableClasses,
    assumed: Assumed,
    /// The attributes that a qid begins with.
    first: Range<usize>,
    /// The greatest length.
    longest: usize,
    /// The length up to which qids are counted by size and confidence.
    most_counted: usize,
    cancellation: &'a Cancellation,
    /// What all threads that have finished found.
    total: &'a Mutex<FoundLengths>,
    found: FoundLengths,
    /// `None` where groups are divided by their last value too.
    last_values: Option<LastValues>,
    divider: Divider,
    /// By denominator and sensitive value, number of records; 0 between calls.
    value_records: Vec<Vec<u32>>,
    touched: Vec<u32>,
    persons: PersonCounter,
}

impl Combinations for QidEnumeration<'_> {
    type Known = KnownValue;
    type Parts = DividedGroup;

    fn visit(
        &mut self,
        known: &[KnownValue],
        group: &Group<DividedGroup>,
    ) -> Result<bool, VerifyError> {
        if self.cancellation.is_cancelled() {
            return Err(VerifyError::Stopped);
        }
        let members = group.parts.members(&group.range);
        let is_alone = members.len() == 1;
        let further = self.elements(group).len();
        self.note(known.len(), members, if is_alone { further } else { 0 });
        if is_alone || group.need == 0 {
            return Ok(false);
        }
        Ok(group.need > 1 || !self.count_last(known.len() + 1, members, group.from))
    }

    fn elements(&self, group: &Group<DividedGroup>) -> Range<usize> {
        if group.need == self.longest {
            self.first.clone()
        } else {
            group.from..self.classes.grid.attributes()
        }
    }

    fn divide(
        &mut self,
        group: &Group<DividedGroup>,
        attribute: usize,
        into: &mut DividedGroup,
    ) -> Result<(), VerifyError> {
        let value = |class: u32| once(self.classes.grid.values(class)[attribute]);
        self.divider
            .divide(group.parts.members(&group.range), value, into);
        Ok(())
    }

    fn part(
        &self,
        parts: &DividedGroup,
        attribute: usize,
        number: usize,
    ) -> Option<Part<KnownValue>> {
        Part::of_attribute(parts, attribute, number)
    }

    fn finish(self) {
        let total = self.total.lock();
        total
            .unwrap_or_else(PoisonError::into_inner)
            .merge(&self.found);
    }
}

impl QidEnumeration<'_> {
    /// Notes the group of a qid. A group of one class is that of every longer qid with some of the
    /// `further` attributes too.
    fn note(&mut self, length: usize, group: &[u32], further: usize) {
        let figures = self.measure(group, length);
        if u64::from(figures.size) < self.assumed.k {
            self.found.note_below(length, group.iter().copied());
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
    fn count_last(&mut self, length: usize, group: &[u32], from: usize) -> bool {
        let with_confidence = self.confidence_matters(length);
        let Some(last_values) = &mut self.last_values else {
            return false;
        };
        let (classes, found) = (self.classes, &mut self.found);
        last_values.count(classes, group, from, with_confidence);
        found.note_below(
            length,
            last_values.below(classes, group, from, self.assumed.k),
        );
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
        length <= self.assumed.length || most < of
    }

    /// Measures the group of a qid of this length. A confidence that is of no interest is given as 0.
    fn measure(&mut self, group: &[u32], length: usize) -> QidFigures {
        let classes = self.classes;
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
