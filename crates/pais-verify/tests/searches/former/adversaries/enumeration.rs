//! Enumerates all qids up to a length, by depth-first division of the classes.
//!
//! A group of one class is not divided further: longer qids with the same values match the same
//! records, so that they are counted without being visited.

use rayon::prelude::*;

use pais_core::cancellation::Cancellation;

use super::buckets::{Buckets, CONFIDENCE_BUCKETS, SIZE_BUCKETS, confidence_bucket, size_bucket};
use super::choose;
use super::classes_of_table::{TableClasses, greater};
use crate::former::verification::VerifyError;

/// Classes in groups; groups of one class are in no range.
#[derive(Clone, Default)]
struct ClassParts {
    classes: Vec<u32>,
    ranges: Vec<(usize, usize)>,
}

/// What was found of all qids up to each length.
pub(super) struct FoundLengths {
    /// By length minus 1.
    smallest: Vec<u32>,
    /// By length minus 1, the greatest confidence as records with the value and all records.
    greatest: Vec<(u32, u32)>,
    /// The least length at which each class is below *K*.
    below_from: Vec<u8>,
    sizes: [u64; SIZE_BUCKETS],
    confidences: [u64; CONFIDENCE_BUCKETS],
}

impl FoundLengths {
    fn new(lengths: usize, classes: usize) -> Self {
        Self {
            smallest: vec![u32::MAX; lengths],
            greatest: vec![(0, 1); lengths],
            below_from: vec![u8::MAX; classes],
            sizes: [0; SIZE_BUCKETS],
            confidences: [0; CONFIDENCE_BUCKETS],
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for (one, other) in self.smallest.iter_mut().zip(other.smallest) {
            *one = (*one).min(other);
        }
        for (one, other) in self.greatest.iter_mut().zip(other.greatest) {
            *one = greater(*one, other);
        }
        for (one, other) in self.below_from.iter_mut().zip(other.below_from) {
            *one = (*one).min(other);
        }
        let counts = self.sizes.iter_mut().zip(other.sizes);
        let confidences = self.confidences.iter_mut().zip(other.confidences);
        for (one, other) in counts.chain(confidences) {
            *one = one.saturating_add(other);
        }
        self
    }

    /// Whether qids of any greater length add nothing to what was found: there is a class, the
    /// group of the longest qids, with the least size and one with the greatest confidence, and none
    /// below *K*.
    fn is_final(&self, classes: &TableClasses, k: u64) -> bool {
        let longest = self.smallest.len();
        let smallest = classes.smallest();
        // Persons of a class are no more than its records, and are not looked up here.
        classes.persons.is_none()
            && u64::from(smallest) >= k
            && self.smallest(longest) == smallest
            && self.greatest(longest)
                == greater(self.greatest(longest), classes.greatest_confidence())
    }

    /// The same, where qids of more lengths add nothing.
    fn up_to(mut self, longest: usize) -> Self {
        self.smallest.resize(longest, u32::MAX);
        self.greatest.resize(longest, (0, 1));
        self
    }

    /// The least size of a qid of at most this length.
    pub(super) fn smallest(&self, length: usize) -> u32 {
        let smallest = self.smallest.iter().take(length.max(1)).min();
        smallest.copied().unwrap_or(0)
    }

    /// The greatest confidence of a qid of at most this length.
    pub(super) fn greatest(&self, length: usize) -> (u32, u32) {
        let greatest = self.greatest.iter().take(length.max(1)).copied();
        greatest.reduce(greater).unwrap_or((0, 1))
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

/// Enumerates the qids up to `longest`; those up to `assumed` are counted by size and confidence.
///
/// Where every class has *K* records, as in a table of local recoding, the assumed lengths come
/// first: mostly longer qids then add nothing.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(super) fn enumerate(
    classes: &TableClasses,
    longest: usize,
    (k, assumed): (u64, usize),
    cancellation: &Cancellation,
) -> Result<FoundLengths, VerifyError> {
    let may_end_early = classes.persons.is_none() && u64::from(classes.smallest()) >= k;
    if may_end_early && (1..longest).contains(&assumed) {
        let found = enumerate_all(classes, assumed, (k, assumed), cancellation)?;
        if found.is_final(classes, k) {
            return Ok(found.up_to(longest));
        }
    }
    enumerate_all(classes, longest, (k, assumed), cancellation)
}

fn enumerate_all(
    classes: &TableClasses,
    longest: usize,
    (k, assumed): (u64, usize),
    cancellation: &Cancellation,
) -> Result<FoundLengths, VerifyError> {
    let count = classes.sizes.len();
    let all = ClassParts {
        classes: (0..count as u32).collect(),
        ranges: vec![(0, count)],
    };
    let start = || QidEnumeration::new(classes, longest, (k, assumed), cancellation);
    let mut first = start();
    if longest == 0 {
        // No column varies: every qid matches all records.
        let figures = first.measure(&all.classes, 1);
        first.found = FoundLengths::new(1, count);
        first.note(1, figures, &all.classes, 0);
        return Ok(first.found);
    }
    let mut tasks = Vec::new();
    for attribute in 0..classes.attributes() {
        let mut parts = ClassParts::default();
        first.divide(&all, attribute, 1, &mut parts);
        if longest > 1 && !parts.ranges.is_empty() {
            let parts = std::sync::Arc::new(parts);
            let further = attribute + 1..classes.attributes();
            tasks.extend(further.map(|next| (std::sync::Arc::clone(&parts), next)));
        }
    }
    let rest = tasks
        .par_iter()
        .fold(start, |mut search, (parts, attribute)| {
            search.descend(parts, *attribute, 2);
            search
        })
        .map(|search| search.found)
        .reduce(|| FoundLengths::new(longest, count), FoundLengths::merge);
    if cancellation.is_cancelled() {
        Err(VerifyError::Stopped)
    } else {
        Ok(first.found.merge(rest))
    }
}

/// Size and greatest confidence of a group.
#[derive(Clone, Copy)]
struct GroupFigures {
    size: u32,
    greatest: (u32, u32),
}

/// The enumeration of a thread, with its working space.
struct QidEnumeration<'a> {
    classes: &'a TableClasses,
    longest: usize,
    k: u64,
    assumed: usize,
    cancellation: &'a Cancellation,
    found: FoundLengths,
    /// By value, number of classes; 0 between calls.
    frequency: Vec<u32>,
    /// By denominator and sensitive value, number of records; 0 between calls.
    value_records: Vec<Vec<u32>>,
    touched: Vec<u32>,
    /// By person, the group in which the person was counted last.
    counted_in: Vec<u32>,
    group: u32,
    spare: Vec<ClassParts>,
}

impl<'a> QidEnumeration<'a> {
    fn new(
        classes: &'a TableClasses,
        longest: usize,
        (k, assumed): (u64, usize),
        cancellation: &'a Cancellation,
    ) -> Self {
        let values = classes.columns.iter().map(|(count, _)| *count);
        let records = classes.sensitive.iter().map(|values| vec![0; values.count]);
        let persons = classes.persons.as_ref().map_or(0, |it| it.count);
        Self {
            classes,
            longest,
            k,
            assumed,
            cancellation,
            found: FoundLengths::new(longest, classes.sizes.len()),
            frequency: vec![0; values.max().unwrap_or(0)],
            value_records: records.collect(),
            touched: Vec::new(),
            counted_in: vec![0; persons],
            group: 0,
            spare: Vec::new(),
        }
    }

    /// Divides groups by an attribute, and their parts by each set of the attributes after it.
    fn descend(&mut self, parts: &ClassParts, attribute: usize, length: usize) {
        if self.cancellation.is_cancelled() {
            return;
        }
        let mut into = self.spare.pop().unwrap_or_default();
        self.divide(parts, attribute, length, &mut into);
        if length < self.longest && !into.ranges.is_empty() {
            for next in attribute + 1..self.classes.attributes() {
                self.descend(&into, next, length + 1);
            }
        }
        self.spare.push(into);
    }

    /// Divides groups by an attribute and notes the parts, the groups of qids of this length.
    fn divide(
        &mut self,
        from: &ClassParts,
        attribute: usize,
        length: usize,
        into: &mut ClassParts,
    ) {
        let classes = self.classes;
        let values = &classes.columns[attribute].1;
        let further = classes.attributes() - attribute - 1;
        into.classes.clear();
        into.ranges.clear();
        let (mut present, mut ends) = (Vec::new(), Vec::new());
        for &(start, end) in &from.ranges {
            let group = &from.classes[start..end];
            present.clear();
            for &class in group {
                let frequency = &mut self.frequency[values[class as usize] as usize];
                if *frequency == 0 {
                    present.push(values[class as usize]);
                }
                *frequency += 1;
            }
            let first = into.classes.len();
            into.classes.resize(first + group.len(), 0);
            let mut at = first;
            for &value in &present {
                let frequency = &mut self.frequency[value as usize];
                let begin = at;
                at += *frequency as usize;
                *frequency = begin as u32;
                ends.push((begin, at));
            }
            for &class in group {
                let next = &mut self.frequency[values[class as usize] as usize];
                into.classes[*next as usize] = class;
                *next += 1;
            }
            for &value in &present {
                self.frequency[value as usize] = 0;
            }
            for (begin, end) in ends.drain(..) {
                let part = &into.classes[begin..end];
                let figures = self.measure(part, length);
                let alone = part.len() == 1;
                self.note(length, figures, part, if alone { further } else { 0 });
                if !alone {
                    into.ranges.push((begin, end));
                }
            }
        }
    }

    /// Notes the group of a qid. A group of one class is that of every longer qid with some of the
    /// `further` attributes too.
    fn note(&mut self, length: usize, figures: GroupFigures, group: &[u32], further: usize) {
        let GroupFigures { size, greatest } = figures;
        let found = &mut self.found;
        let at = length - 1;
        found.smallest[at] = found.smallest[at].min(size);
        found.greatest[at] = greater(found.greatest[at], greatest);
        if u64::from(size) < self.k {
            let length = u8::try_from(length).unwrap_or(u8::MAX - 1);
            for &class in group {
                let below = &mut found.below_from[class as usize];
                *below = (*below).min(length);
            }
        }
        let most = self.assumed.min(self.longest.max(1));
        for more in 0..=further.min(most.saturating_sub(length)) {
            if length + more <= most {
                let qids = choose(further, more);
                let count = &mut found.sizes[size_bucket(size)];
                *count = count.saturating_add(qids);
                let count = &mut found.confidences[confidence_bucket(greatest.0, greatest.1)];
                *count = count.saturating_add(qids);
            }
        }
    }

    /// Measures the group of a qid of this length. Beyond the assumed lengths, whose qids are counted by
    /// their confidence, the confidence is of no interest once a qid that is no longer has 100 %: it is
    /// given as 0 then.
    fn measure(&mut self, group: &[u32], length: usize) -> GroupFigures {
        let classes = self.classes;
        let mut greatest = (0, 1);
        let is_certain = || {
            let (most, of) = self.found.greatest(length);
            most == of
        };
        let sensitive = if length > self.assumed && is_certain() {
            &[]
        } else {
            classes.sensitive.as_slice()
        };
        for (values, records) in sensitive.iter().zip(&mut self.value_records) {
            let mut of = 0;
            for &class in group {
                of += values.records[class as usize];
                for &(value, count) in values.of(class) {
                    let record = &mut records[value as usize];
                    if *record == 0 {
                        self.touched.push(value);
                    }
                    *record += count;
                }
            }
            let mut most = 0;
            for value in self.touched.drain(..) {
                let record = &mut records[value as usize];
                most = most.max(*record);
                *record = 0;
            }
            if of > 0 {
                greatest = greater(greatest, (most, of));
            }
        }
        let size = match &classes.persons {
            None => group
                .iter()
                .map(|&class| classes.sizes[class as usize])
                .sum(),
            Some(persons) => {
                self.group = match self.group.checked_add(1) {
                    Some(next) => next,
                    None => {
                        self.counted_in.fill(0);
                        1
                    }
                };
                let mut size = 0;
                for &person in group.iter().flat_map(|&class| persons.of(class)) {
                    let last = &mut self.counted_in[person as usize];
                    size += u32::from(*last != self.group);
                    *last = self.group;
                }
                size
            }
        };
        GroupFigures { size, greatest }
    }
}
