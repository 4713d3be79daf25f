//! Suppression of every group that violates *K* or *C*.
//!
//! Unlike *K*, *C* can be met again after some rows of a group were suppressed, so the result
//! depends on the order of the checks. The order is fixed: the children one after the other, then
//! rounds over all groups, each time by attributes and then by values.

use super::attribute::ConceptId;
use super::partitions::PartitionId;
use super::requirement::Requirement;
use super::share_subjects::{PersonCheck, ShareSubjects};
use super::split_counts::SplitCounts;
use super::suppression::{SensitiveCountCache, Suppression, SuppressionTrial};

/// A partition of the table that would result from the specialization.
struct TrialPart<'a> {
    partition: PartitionId,
    /// The number of the child; `None` for a partition that is not refined.
    child: Option<u32>,
    /// Its concept on the candidate's attribute.
    concept: ConceptId,
    size: u64,
    sensitive_counts: &'a [(u32, u32)],
    /// The persons, each once; empty where rows are counted or are enough.
    subjects: &'a [u32],
    /// Whether its rows alone meet *K* and *C*.
    meets: bool,
    suppressed: bool,
}

/// Suppresses groups in rounds until none violates the requirement. Each round but the last
/// suppresses at least one part of a partition for good, so the rounds end. `None` if the rows
/// exceed the budget, if fewer than *K* would be left, or if the run is stopped.
pub(super) fn remove(
    trial: &SuppressionTrial<'_>,
    (split_counts, subjects): (&SplitCounts, Option<&ShareSubjects>),
    count_cache: &mut SensitiveCountCache,
) -> Option<Suppression> {
    let mut state = TrialState {
        trial,
        parts: refined(trial, split_counts, subjects),
        suppressed_rows: 0,
        totals: vec![0; trial.requirement.counted_values],
        persons: PersonCheck::new(trial.requirement),
    };
    state.visit_children(split_counts)?;
    state.parts.extend(untouched(trial, count_cache));
    let mut all = trial.others.to_vec();
    all.push(trial.candidate.0);
    let depth = all.len().min(trial.requirement.l);
    let every: Vec<u32> = (0..state.parts.len() as u32).collect();
    loop {
        let before = state.suppressed_rows;
        state.visit(&every, &all, depth, true)?;
        if state.suppressed_rows == before {
            break;
        }
    }
    if !state.has_enough_persons(&every) {
        return None;
    }
    let suppressed = || state.parts.iter().filter(|part| part.suppressed);
    Some(Suppression {
        parts: suppressed()
            .filter_map(|part| Some((part.partition, part.child?)))
            .collect(),
        partitions: suppressed()
            .filter(|part| part.child.is_none())
            .map(|part| part.partition)
            .collect(),
        rows: state.suppressed_rows,
    })
}

fn refined<'a>(
    trial: &SuppressionTrial<'_>,
    split_counts: &'a SplitCounts,
    subjects: Option<&'a ShareSubjects>,
) -> Vec<TrialPart<'a>> {
    let children = split_counts.children().iter().enumerate();
    let parts = children.flat_map(|(child, shares)| {
        (0..).zip(shares).map(move |(index, share)| {
            let subjects = subjects.map(|subjects| subjects.child(child).of_share(index));
            TrialPart {
                partition: share.partition,
                child: Some(child as u32),
                concept: trial.first_child + child as ConceptId,
                size: u64::from(share.size),
                sensitive_counts: split_counts.sensitive_counts(share),
                subjects: subjects.unwrap_or_default(),
                meets: share.meets,
                suppressed: false,
            }
        })
    });
    parts.collect()
}

fn untouched<'a>(
    trial: &SuppressionTrial<'_>,
    count_cache: &'a mut SensitiveCountCache,
) -> Vec<TrialPart<'a>> {
    let (attribute, concept) = trial.candidate;
    let (partitions, requirement) = (trial.partitions, trial.requirement);
    let stays = |partition: &PartitionId| partitions.concept(*partition, attribute) != concept;
    let untouched: Vec<PartitionId> = partitions.non_empty().filter(stays).collect();
    for &partition in &untouched {
        count_cache.count(partition, partitions, requirement);
    }
    let count_cache = &*count_cache;
    let part = |partition: PartitionId| {
        let size = u64::from(partitions.size(partition));
        let sensitive_counts = count_cache.sensitive(partition);
        let subjects = count_cache.subjects(partition);
        TrialPart {
            partition,
            child: None,
            concept: partitions.concept(partition, attribute),
            size,
            sensitive_counts,
            subjects,
            meets: has_enough(requirement, size, subjects)
                && requirement.allows_counts(size, counts(sensitive_counts)),
            suppressed: false,
        }
    };
    untouched.into_iter().map(part).collect()
}

/// Whether a part with these persons has *K* of them.
fn has_enough(requirement: &Requirement<'_>, size: u64, subjects: &[u32]) -> bool {
    requirement.surely_meets_k(size) || subjects.len() as u64 >= requirement.k.get()
}

fn counts(counts: &[(u32, u32)]) -> impl DoubleEndedIterator<Item = (u32, u64)> {
    counts
        .iter()
        .map(|&(value, count)| (value, u64::from(count)))
}

struct TrialState<'a> {
    trial: &'a SuppressionTrial<'a>,
    parts: Vec<TrialPart<'a>>,
    suppressed_rows: u64,
    totals: Vec<u64>,
    persons: PersonCheck<'a>,
}

impl TrialState<'_> {
    /// Checks every qid that contains a child. The parts of the children are the first ones.
    fn visit_children(&mut self, split_counts: &SplitCounts) -> Option<()> {
        let depth = self.trial.others.len().min(self.trial.requirement.l - 1);
        let mut start = 0;
        for shares in split_counts.children() {
            let group: Vec<u32> = (start..start + shares.len() as u32).collect();
            start += shares.len() as u32;
            self.visit(&group, self.trial.others, depth, false)?;
        }
        Some(())
    }

    /// Checks every group that results from splitting `group` by `depth` of the attributes. `None`
    /// if the budget is exceeded. With `changed`, only groups that have lost a part are checked,
    /// since the others were valid before.
    fn visit(
        &mut self,
        group: &[u32],
        attributes: &[usize],
        depth: usize,
        changed: bool,
    ) -> Option<()> {
        let parts = || group.iter().map(|&part| &self.parts[part as usize]);
        let may_violate = parts().any(|part| !part.suppressed && !part.meets);
        let touched = !changed || parts().any(|part| part.suppressed);
        if !may_violate || !touched {
            return Some(());
        }
        if depth == 0 {
            if self.allows(group) {
                return Some(());
            }
            for &part in group {
                let part = &mut self.parts[part as usize];
                if !part.suppressed {
                    part.suppressed = true;
                    self.suppressed_rows += part.size;
                }
            }
            return (self.suppressed_rows <= self.trial.budget).then_some(());
        }
        for (position, &attribute) in attributes[..=attributes.len() - depth].iter().enumerate() {
            if self.trial.observer.must_stop() {
                return None;
            }
            let mut sorted: Vec<(ConceptId, u32)> = group
                .iter()
                .map(|&part| (self.concept(part, attribute), part))
                .collect();
            sorted.sort_unstable();
            let mut run: Vec<u32> = Vec::new();
            for members in sorted.chunk_by(|(a, _), (b, _)| a == b) {
                run.clear();
                run.extend(members.iter().map(|&(_, part)| part));
                self.visit(&run, &attributes[position + 1..], depth - 1, changed)?;
            }
        }
        Some(())
    }

    fn concept(&self, part: u32, attribute: usize) -> ConceptId {
        let part = &self.parts[part as usize];
        if attribute == self.trial.candidate.0 {
            return part.concept;
        }
        self.trial.partitions.concept(part.partition, attribute)
    }

    /// Whether what is left of a group has *K* persons.
    fn has_enough_persons(&mut self, group: &[u32]) -> bool {
        let parts = &self.parts;
        let remaining = group.iter().map(|&part| &parts[part as usize]);
        let remaining = remaining.filter(|part| !part.suppressed);
        let size = remaining.clone().map(|part| part.size).sum();
        let lists = remaining.map(|part| part.subjects);
        self.persons.has_enough(size, lists)
    }

    /// Whether what is left of a group is empty or meets the requirement.
    fn allows(&mut self, group: &[u32]) -> bool {
        let parts = &self.parts;
        let remaining = group.iter().map(|&part| &parts[part as usize]);
        let remaining = || remaining.clone().filter(|part| !part.suppressed);
        let size: u64 = remaining().map(|part| part.size).sum();
        if size == 0 {
            return true;
        }
        let lists = remaining().map(|part| part.subjects);
        if !self.persons.has_enough(size, lists) {
            return false;
        }
        let mut values = Vec::new();
        for &(value, count) in remaining().flat_map(|part| part.sensitive_counts) {
            let total = &mut self.totals[value as usize];
            if *total == 0 {
                values.push(value);
            }
            *total += u64::from(count);
        }
        values.sort_unstable();
        let totals = &mut self.totals;
        let counts: Vec<_> = values
            .into_iter()
            .map(|value| (value, std::mem::take(&mut totals[value as usize])))
            .collect();
        self.trial
            .requirement
            .allows_counts(size, counts.into_iter())
    }
}
