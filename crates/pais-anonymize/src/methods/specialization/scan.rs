//! The scan of a candidate: the child of each row, the counters of a partition, and how counters
//! are turned into shares.

use std::ops::{AddAssign, Range};

use super::attribute::{Attribute, Concept, ConceptSplit};
use super::partitions::PartitionId;
use super::requirement::Requirement;
use super::sensitive::SensitiveSlots;
use super::split_counts::{PartialCounts, PartitionShare};

/// The number of the child for each code of a candidate's attribute; 0 for codes outside the
/// candidate.
#[derive(Default)]
pub(super) struct ChildOfCode {
    child_of: Vec<u32>,
    /// The codes of the candidate. All entries outside this range are 0.
    assigned: Range<usize>,
}

impl ChildOfCode {
    /// Assigns the codes to the children of a split.
    pub(super) fn assign_split(&mut self, attribute: &Attribute<'_>, split: &ConceptSplit) {
        let first = split.children.iter().map(|child| child.codes.start).min();
        let end = split.children.iter().map(|child| child.codes.end).max();
        self.clear(attribute, first.unwrap_or(0)..end.unwrap_or(0));
        for (number, child) in split.children.iter().enumerate() {
            self.child_of[child.codes.start as usize..child.codes.end as usize].fill(number as u32);
        }
    }

    /// Splits an interval at `points` (codes in ascending order) and assigns the codes to the
    /// resulting runs of numbers; missing cells, if the interval has any, are one more child.
    /// Returns the number of children.
    pub(super) fn assign_points(
        &mut self,
        attribute: &Attribute<'_>,
        interval: &Concept,
        points: &[u32],
    ) -> usize {
        self.clear(attribute, interval.codes.clone());
        let numbers = attribute.numbers(interval);
        let mut child = 0;
        for code in numbers.clone() {
            child += usize::from(points.get(child) == Some(&code));
            self.child_of[code as usize] = child as u32;
        }
        let missing = numbers.end..interval.codes.end;
        let width = points.len() + 1;
        self.child_of[missing.start as usize..missing.end as usize].fill(width as u32);
        width + missing.len()
    }

    /// Resets all entries to 0. Only the entries of the previous candidate are written, since a
    /// column may have a million codes.
    fn clear(&mut self, attribute: &Attribute<'_>, codes: Range<u32>) {
        self.child_of[self.assigned.clone()].fill(0);
        let count = attribute.histogram.len().max(self.child_of.len());
        self.child_of.resize(count, 0);
        self.assigned = codes.start as usize..codes.end as usize;
    }

    /// By code, the number of the child.
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.child_of
    }
}

/// A candidate, and what is needed to count its rows.
pub(super) struct Scan<'a> {
    /// The attribute.
    pub column: &'a Attribute<'a>,
    /// The child of each code.
    pub child_of_code: &'a ChildOfCode,
    /// Number of children.
    pub width: usize,
    /// The sensitive values of each row.
    pub sensitive: &'a SensitiveSlots,
    /// The privacy requirement.
    pub requirement: &'a Requirement<'a>,
}

impl Scan<'_> {
    /// Number of counters of a partition: one for each child and slot.
    pub(super) fn counters(&self) -> usize {
        self.width.saturating_mul(self.sensitive.count())
    }

    /// Adds the shares of a partition to `partial_counts`. `rows` gives the number of rows by
    /// counter index, ascending; the index is child × number of slots + slot. Returns the sum of
    /// the squared sizes of the shares.
    pub(super) fn add_shares(
        &self,
        partition: PartitionId,
        rows: impl Iterator<Item = (usize, u32)>,
        partial_counts: &mut PartialCounts,
    ) -> u128 {
        let slots = self.sensitive.count();
        let first_column_count = self.sensitive.first_column_count();
        let mut rows = rows.peekable();
        let mut squares = 0;
        while let Some(&(index, _)) = rows.peek() {
            let child = index / slots;
            let first = partial_counts.sensitive_counts.len();
            let mut size = 0;
            while let Some((index, count)) = rows.next_if(|(index, _)| *index < (child + 1) * slots)
            {
                let slot = index - child * slots;
                if slot < first_column_count {
                    size += count;
                }
                let values = self.sensitive.values(slot).iter();
                partial_counts
                    .sensitive_counts
                    .extend(values.map(|&value| (value, count)));
            }
            if !self.sensitive.is_ascending {
                merge(&mut partial_counts.sensitive_counts, first);
            }
            let sensitive_counts = &partial_counts.sensitive_counts[first..];
            let counts = sensitive_counts
                .iter()
                .map(|&(value, count)| (value, u64::from(count)));
            let greatest = self.requirement.greatest_share(u64::from(size), counts);
            squares += u128::from(size).pow(2);
            partial_counts.children[child].push(PartitionShare {
                partition,
                size,
                sensitive_range: (first as u32, partial_counts.sensitive_counts.len() as u32),
                meets: self.requirement.surely_meets_k(u64::from(size))
                    && self.requirement.allows(u64::from(size), greatest),
            });
        }
        squares
    }
}

/// Merges the entries from `first` on that have the same value, and sorts them by value.
fn merge(sensitive_counts: &mut Vec<(u32, u32)>, first: usize) {
    sensitive_counts[first..].sort_unstable();
    let mut end = first;
    for at in first..sensitive_counts.len() {
        let (value, count) = sensitive_counts[at];
        if end > first && sensitive_counts[end - 1].0 == value {
            sensitive_counts[end - 1].1 += count;
        } else {
            sensitive_counts[end] = (value, count);
            end += 1;
        }
    }
    sensitive_counts.truncate(end);
}

/// The sum of two arrays of counters, element by element.
pub(super) fn add_counters<N: AddAssign>(mut one: Vec<N>, other: Vec<N>) -> Vec<N> {
    let counters = one.iter_mut().zip(other);
    counters.for_each(|(one, other)| *one += other);
    one
}
