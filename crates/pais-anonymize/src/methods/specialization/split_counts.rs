//! Counts of `T[x]`: how many rows of each partition a specialization would send to each child.
//!
//! They are computed by one scan of the table or of `T[x]`, shared among the threads. The bounds of
//! the tasks depend only on the rows, and partial counts are merged in task order. So the counts
//! and the sums do not depend on the number of threads.

use super::attribute::ConceptId;
use super::partitions::{PartitionId, Partitions};
use super::requirement::{Requirement, ValueShare};
use super::scan::Scan;
use super::share_subjects::ShareSubjects;

/// The rows of one partition that would go to one child.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartitionShare {
    /// The partition that the rows are in.
    pub partition: PartitionId,
    /// Number of rows.
    pub size: u32,
    /// Range of its entries in [`PartialCounts::sensitive_counts`].
    pub(super) sensitive_range: (u32, u32),
    /// Whether these rows alone meet *K* and are bounded by *C*.
    pub meets: bool,
}

/// A partition that a refinement will create.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedPartition {
    /// Index of the refined partition in *Link_x*.
    pub link_index: u32,
    /// The number of the child.
    pub child: u32,
    /// Number of rows.
    pub size: u32,
    /// Its most frequent sensitive value.
    pub greatest: ValueShare,
}

/// The counts of `T[x]`: by child, the partitions of *Link_x* that have rows in it.
pub(super) struct SplitCounts {
    /// The attribute of the candidate.
    pub attribute: usize,
    counts: PartialCounts,
}

/// The counts of one task, or the merged counts of several tasks.
pub(super) struct PartialCounts {
    /// By child, the partitions that have rows in it.
    pub children: Vec<Vec<PartitionShare>>,
    /// Sensitive values and the number of rows that have them, share after share.
    pub sensitive_counts: Vec<(u32, u32)>,
    /// Σ over partitions of the objective's term, if the objective needs it.
    pub score: f64,
}

impl SplitCounts {
    /// Makes one scan of the table or of `T[x]`. `term` computes a partition's term of the score
    /// from its size and the sum of its children's squared sizes.
    pub(super) fn new(
        partitions: &mut Partitions,
        (attribute, concept): (usize, ConceptId),
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> Self {
        let counts = partitions.count_split((attribute, concept), scan, term);
        Self { attribute, counts }
    }

    /// Σ over partitions of the objective's term.
    pub(super) fn score(&self) -> f64 {
        self.counts.score
    }

    /// By child, the partitions that have rows in it.
    pub(super) fn children(&self) -> &[Vec<PartitionShare>] {
        &self.counts.children
    }

    /// The sensitive values of a share's rows, each with the number of rows that have it.
    pub(super) fn sensitive_counts(&self, share: &PartitionShare) -> &[(u32, u32)] {
        &self.counts.sensitive_counts
            [share.sensitive_range.0 as usize..share.sensitive_range.1 as usize]
    }

    /// Marks the shares that have *K* persons by their lists, too.
    pub(super) fn mark_shares_with_enough(
        &mut self,
        subjects: &ShareSubjects,
        requirement: &Requirement<'_>,
    ) {
        let PartialCounts {
            children,
            sensitive_counts,
            ..
        } = &mut self.counts;
        for (shares, subjects) in children.iter_mut().zip(subjects.children()) {
            for (index, share) in (0..).zip(shares) {
                if share.meets || (subjects.of_share(index).len() as u64) < requirement.k.get() {
                    continue;
                }
                let range = share.sensitive_range.0 as usize..share.sensitive_range.1 as usize;
                let counts = sensitive_counts[range].iter();
                let counts = counts.map(|&(value, count)| (value, u64::from(count)));
                share.meets = requirement.allows_counts(u64::from(share.size), counts);
            }
        }
    }

    /// The partitions that the partitions of `link` (of `partitions` in total) are split into: in
    /// the order of `link`, and by ascending child.
    pub(super) fn parts(
        &self,
        link: &[PartitionId],
        partitions: usize,
        requirement: &Requirement<'_>,
    ) -> Vec<PlannedPartition> {
        let mut link_index_of = vec![0u32; partitions];
        for (link_index, &partition) in link.iter().enumerate() {
            link_index_of[partition as usize] = link_index as u32;
        }
        let children = self.children().iter().enumerate();
        let parts = children
            .flat_map(|(child, shares)| shares.iter().map(move |share| (child as u32, share)));
        let mut parts: Vec<_> = parts
            .map(|(child, share)| {
                let counts = self.sensitive_counts(share).iter();
                let counts = counts.map(|&(value, count)| (value, u64::from(count)));
                PlannedPartition {
                    link_index: link_index_of[share.partition as usize],
                    child,
                    size: share.size,
                    greatest: requirement.greatest_share(u64::from(share.size), counts),
                }
            })
            .collect();
        parts.sort_unstable_by_key(|part| (part.link_index, part.child));
        parts
    }
}

impl PartialCounts {
    /// Empty counts for `width` children.
    pub(super) fn new(width: usize) -> Self {
        Self {
            children: vec![Vec::new(); width],
            sensitive_counts: Vec::new(),
            score: 0.0,
        }
    }

    /// The shares of these counts followed by those of the next ones.
    pub(super) fn followed_by(mut self, next: Self) -> Self {
        let shift = self.sensitive_counts.len() as u32;
        self.sensitive_counts.extend(next.sensitive_counts);
        for (shares, more) in self.children.iter_mut().zip(next.children) {
            shares.extend(more.into_iter().map(|share| PartitionShare {
                sensitive_range: (
                    share.sensitive_range.0 + shift,
                    share.sensitive_range.1 + shift,
                ),
                ..share
            }));
        }
        self.score += next.score;
        self
    }
}
