//! The rows that must be suppressed to make a specialization valid.
//!
//! A group that has fewer than *K* rows (or persons, where it counts these) is removed by suppressing
//! all its rows. That removes rows from other groups too, which may then violate the requirement
//! themselves, until no violating group remains. The trial is given up as soon as the suppressed
//! rows exceed the budget.
//!
//! A group with at least *K* rows that exceeds *C* is suppressed only if the job asks for it: its
//! absence discloses that its rows had the same sensitive value. Otherwise the specialization is
//! invalid. Which rows are suppressed for *K* does not depend on the order in which groups are
//! checked, so *C* is checked on the table that remains.

use crate::observer::Observer;

use super::attribute::ConceptId;
use super::partitions::{PartitionId, Partitions};
use super::requirement::Requirement;

/// The rows to suppress with a specialization.
#[derive(Clone, Debug, Default)]
pub(super) struct Suppression {
    /// Parts of refined partitions: the partition and the number of the child.
    pub parts: Vec<(PartitionId, u32)>,
    /// Partitions that are not refined.
    pub partitions: Vec<PartitionId>,
    /// Total number of rows.
    pub rows: u64,
}

/// Caches what is counted of partitions, at the first access.
#[derive(Default)]
pub(super) struct SensitiveCountCache {
    /// By partition.
    counted: Vec<Option<CountedPartition>>,
}

/// What is counted of a partition.
struct CountedPartition {
    /// The counted values, each with the number of rows that have it.
    sensitive: Box<[(u32, u32)]>,
    /// The persons, each once; empty where rows are counted or are enough.
    subjects: Box<[u32]>,
}

impl SensitiveCountCache {
    /// Removes the counts of partitions that change.
    pub(super) fn invalidate(&mut self, partitions: &[PartitionId]) {
        for &partition in partitions {
            if let Some(counted) = self.counted.get_mut(partition as usize) {
                *counted = None;
            }
        }
    }

    /// Counts a partition unless it was counted before.
    pub(super) fn count(
        &mut self,
        partition: PartitionId,
        partitions: &Partitions,
        requirement: &Requirement<'_>,
    ) {
        let at = partition as usize;
        if at >= self.counted.len() {
            self.counted.resize_with(at + 1, || None);
        }
        self.counted[at]
            .get_or_insert_with(|| CountedPartition::new(partition, partitions, requirement));
    }

    /// The sensitive values of a partition that was counted; empty for another one.
    pub(super) fn sensitive(&self, partition: PartitionId) -> &[(u32, u32)] {
        self.get(partition)
            .map_or(&[], |counted| &counted.sensitive)
    }

    /// The persons of a partition that was counted; empty for another one.
    pub(super) fn subjects(&self, partition: PartitionId) -> &[u32] {
        self.get(partition).map_or(&[], |counted| &counted.subjects)
    }

    fn get(&self, partition: PartitionId) -> Option<&CountedPartition> {
        self.counted.get(partition as usize)?.as_ref()
    }
}

impl CountedPartition {
    fn new(partition: PartitionId, partitions: &Partitions, requirement: &Requirement<'_>) -> Self {
        let mut values = Vec::new();
        let rows = partitions.rows(partition);
        for &row in &rows {
            requirement.for_each_counted_value(row as usize, |value| values.push(value as u32));
        }
        values.sort_unstable();
        let runs = values.chunk_by(|a, b| a == b);
        let listed = requirement.subjects;
        let listed = listed.filter(|_| !requirement.surely_meets_k(rows.len() as u64));
        let mut subjects = listed.map_or_else(Vec::new, |subjects| subjects.select(&rows));
        subjects.sort_unstable();
        subjects.dedup();
        Self {
            sensitive: runs.map(|run| (run[0], run.len() as u32)).collect(),
            subjects: subjects.into(),
        }
    }
}

/// Determines the rows to suppress with a candidate.
pub(super) struct SuppressionTrial<'a> {
    /// The partitions of the current table.
    pub partitions: &'a Partitions,
    /// The privacy requirement.
    pub requirement: &'a Requirement<'a>,
    /// The attributes below their topmost value, without the candidate's own.
    pub others: &'a [usize],
    /// The candidate's attribute and concept.
    pub candidate: (usize, ConceptId),
    /// The id that its first child would have.
    pub first_child: ConceptId,
    /// Largest number of rows that may be suppressed.
    pub budget: u64,
    /// Checked at every attribute. A stopped trial returns `None`.
    pub observer: &'a dyn Observer,
}
