//! The persons of the parts of partitions that a specialization would send to its children, where
//! *K* counts persons.
//!
//! Distinct persons cannot be added up like rows, so the groups that are not decided by their
//! numbers of rows are counted exactly, from the lists of persons of their shares. A share that
//! has *K* persons by its number of rows alone needs no list, and neither does a group that contains it.

use pais_core::table::SubjectCounter;
use pais_core::table::codes::Codes;

use super::partitions::{ChildOfCode, PartitionId, PartitionShare, Partitions, SplitCounts};
use super::requirement::{Requirement, as_rows};

/// The distinct persons of each share of a specialization.
pub(super) struct ShareSubjects {
    children: Vec<ChildSubjects>,
}

/// The distinct persons of each share of one child.
#[derive(Default)]
pub(super) struct ChildSubjects {
    /// By share, the end of its list.
    ends: Vec<u32>,
    subjects: Vec<u32>,
}

impl ChildSubjects {
    /// The persons of a share, each once; empty for a share that has enough by its rows.
    #[inline]
    pub(super) fn of_share(&self, share: u32) -> &[u32] {
        let share = share as usize;
        let start = share.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.subjects[start as usize..self.ends[share] as usize]
    }
}

impl SplitCounts {
    /// Also marks the shares that have *K* persons by their lists.
    pub(super) fn mark_shares_with_enough(
        &mut self,
        subjects: &ShareSubjects,
        requirement: &Requirement<'_>,
    ) {
        for (shares, subjects) in self.children.iter_mut().zip(&subjects.children) {
            for (index, share) in (0..).zip(shares) {
                if share.meets || (subjects.of_share(index).len() as u64) < requirement.k.get() {
                    continue;
                }
                let range = share.sensitive_range.0 as usize..share.sensitive_range.1 as usize;
                let counts = as_rows(&self.sensitive_counts[range]);
                share.meets = requirement.allows_counts(u64::from(share.size), counts);
            }
        }
    }
}

impl ShareSubjects {
    /// Lists the persons of the shares of `link`, the partitions that the specialization splits.
    /// `codes` are the codes of its attribute by row.
    /// `None` where rows are counted. Makes one pass over the rows of the partitions that have a
    /// share with too few rows.
    pub(super) fn new(
        partitions: &Partitions,
        link: &[PartitionId],
        codes: &Codes<'_>,
        child_of_code: &ChildOfCode,
        split_counts: &SplitCounts,
        requirement: &Requirement<'_>,
    ) -> Option<Self> {
        let subjects = requirement.subjects?;
        let child_of = child_of_code.as_slice();
        let shares = &split_counts.children;
        let mut children: Vec<ChildSubjects> = Vec::new();
        children.resize_with(shares.len(), ChildSubjects::default);
        let is_listed = |share: &PartitionShare| !requirement.surely_meets_k(u64::from(share.size));
        // By child: its share of the current partition is the next one without an end, since
        // shares are in the order of the partitions.
        let mut listed = vec![false; shares.len()];
        let mut counter = SubjectCounter::new(subjects.codes());
        for &partition in link {
            let mut any = false;
            for ((child, shares), listed) in children.iter().zip(shares).zip(&mut listed) {
                let share = shares.get(child.ends.len());
                let share = share.filter(|share| share.partition == partition);
                *listed = share.is_some_and(is_listed);
                any |= *listed;
            }
            if any {
                for row in partitions.rows(partition) {
                    let child = child_of[codes.at(row as usize) as usize] as usize;
                    if listed[child] {
                        let subject = subjects.of_row()[row as usize];
                        children[child].subjects.push(subject);
                    }
                }
            }
            for (child, shares) in children.iter_mut().zip(shares) {
                let share = shares.get(child.ends.len());
                if share.is_some_and(|share| share.partition == partition) {
                    let start = child.ends.last().copied().unwrap_or(0);
                    counter.begin();
                    dedup_from(&mut child.subjects, start as usize, &mut counter);
                    child.ends.push(child.subjects.len() as u32);
                }
            }
        }
        Some(Self { children })
    }

    /// The persons of the shares of a child.
    pub(super) fn child(&self, child: usize) -> &ChildSubjects {
        &self.children[child]
    }
}

/// Removes repeated persons from a list, from `start` on.
fn dedup_from(subjects: &mut Vec<u32>, start: usize, counter: &mut SubjectCounter) {
    let mut kept = start;
    for at in start..subjects.len() {
        let subject = subjects[at];
        if counter.add(subject) {
            subjects[kept] = subject;
            kept += 1;
        }
    }
    subjects.truncate(kept);
}

/// Decides whether groups have *K* persons. Each thread has its own, because it holds working
/// space.
pub(super) struct PersonCheck<'a> {
    requirement: &'a Requirement<'a>,
    counter: Option<SubjectCounter>,
}

impl<'a> PersonCheck<'a> {
    pub(super) fn new(requirement: &'a Requirement<'a>) -> Self {
        Self {
            requirement,
            counter: None,
        }
    }

    /// Whether a group of `size` rows has *K* persons. `lists` are those of its shares, and need
    /// not be complete where the rows are enough.
    pub(super) fn has_enough<'s>(
        &mut self,
        size: u64,
        lists: impl Iterator<Item = &'s [u32]> + Clone,
    ) -> bool {
        let requirement = self.requirement;
        if !requirement.meets_k(size) || requirement.surely_meets_k(size) {
            return requirement.meets_k(size);
        }
        let Some(subjects) = requirement.subjects else {
            return true;
        };
        let k = requirement.k.get();
        let (mut sum, mut longest) = (0, 0);
        for list in lists.clone() {
            sum += list.len() as u64;
            longest = longest.max(list.len() as u64);
        }
        // No list names a person twice, and two lists can name the same persons.
        if longest >= k || sum < k {
            return longest >= k;
        }
        let counter = self
            .counter
            .get_or_insert_with(|| SubjectCounter::new(subjects.codes()));
        counter.count_up_to(k, lists.flatten().copied()) >= k
    }
}
