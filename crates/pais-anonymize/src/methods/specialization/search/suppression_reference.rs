//! A plain implementation of the choice of a specialization that needs suppression: every candidate
//! is tried, and each round of a trial passes over all groups of all subsets of attributes.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use pais_core::definition::{Objective, SuppressionFor};

use super::super::attribute::ConceptId;
use super::super::partitions::{PartitionId, Partitions, SplitCounts};
use super::super::persons::{PersonCheck, ShareSubjects};
use super::super::requirement::{Requirement, ValueRows, as_rows};
use super::super::score;
use super::super::suppression::Suppression;
use super::{CutCandidate, SearchState};
use crate::observer::Observer;

thread_local! {
    static IS_USED: Cell<bool> = const { Cell::new(false) };
}

/// Runs searches with the reference instead of the search's own choice.
pub(crate) fn with_reference<T>(run: impl FnOnce() -> T) -> T {
    IS_USED.set(true);
    let result = run();
    IS_USED.set(false);
    result
}

/// Whether this thread's searches use the reference.
pub(super) fn is_used() -> bool {
    IS_USED.get()
}

impl SearchState<'_> {
    pub(super) fn reference_best(&mut self) -> Option<(usize, Suppression)> {
        let budget = self.budget - self.suppressed;
        if budget == 0 {
            return None;
        }
        self.partitions.sort();
        self.reset_candidates();
        let mut count_cache = SensitiveCountCache::default();
        let mut best: Option<(f64, usize, Suppression)> = None;
        for candidate in 0..self.candidates.len() {
            if self.observer.must_stop() {
                return None;
            }
            let mut split_counts = self.count_split(candidate);
            let CutCandidate {
                attribute, concept, ..
            } = self.candidates[candidate];
            let subjects = self.list_subjects(candidate, &mut split_counts);
            let trial = ReferenceTrial {
                partitions: &self.partitions,
                requirement: self.requirement,
                suppression_for: self.settings.suppression_for,
                others: &self.others(attribute),
                candidate: (attribute, concept),
                first_child: self.attributes[attribute].concepts.len() as ConceptId,
                budget,
                observer: self.observer,
            };
            let Some(suppression) = trial.cost(&split_counts, subjects.as_ref(), &mut count_cache)
            else {
                continue;
            };
            let score = if score::is_over_partitions(self.settings.objective) {
                split_counts.score as f64
            } else {
                self.candidates[candidate].score
            };
            let rows = suppression.rows as f64;
            let gain = match self.settings.objective {
                Objective::Ncp => score - rows * self.mean_ncp_of_suppression(),
                _ => score,
            };
            if gain <= 0.0 {
                continue;
            }
            let rate = gain / rows.max(1.0);
            if best.as_ref().is_none_or(|(greatest, ..)| rate > *greatest) {
                best = Some((rate, candidate, suppression));
            }
        }
        if best.is_none() {
            self.candidates.clear();
        }
        best.map(|(_, candidate, suppression)| (candidate, suppression))
    }
}

/// Caches the counts of partitions at the first access.
#[derive(Default)]
struct SensitiveCountCache {
    counted: FxHashMap<PartitionId, CountedPartition>,
}

/// The counts of a partition.
struct CountedPartition {
    /// Its rows by counted value.
    sensitive: Box<[ValueRows]>,
    /// The persons, each once; empty where rows are counted or are enough.
    subjects: Box<[u32]>,
}

impl SensitiveCountCache {
    fn get_or_count(
        &mut self,
        partition: PartitionId,
        partitions: &Partitions,
        requirement: &Requirement<'_>,
    ) -> &CountedPartition {
        self.counted.entry(partition).or_insert_with(|| {
            let mut values = Vec::new();
            let rows = partitions.rows(partition);
            for &row in &rows {
                requirement.for_each_counted_value(row as usize, |value| values.push(value as u32));
            }
            values.sort_unstable();
            let runs = values.chunk_by(|a, b| a == b).map(|run| ValueRows {
                value: run[0],
                rows: run.len() as u32,
            });
            let listed = requirement.subjects;
            let listed = listed.filter(|_| !requirement.surely_meets_k(rows.len() as u64));
            let mut subjects = listed.map_or_else(Vec::new, |subjects| subjects.select(&rows));
            subjects.sort_unstable();
            subjects.dedup();
            CountedPartition {
                sensitive: runs.collect(),
                subjects: subjects.into(),
            }
        })
    }
}

/// A partition of the table that would result from the specialization.
struct TrialPart {
    partition: PartitionId,
    /// The number of the child; `None` for a partition that is not refined.
    child: Option<u32>,
    /// Its concept on the candidate's attribute.
    concept: ConceptId,
    size: u64,
    sensitive_counts: Vec<ValueRows>,
    /// The persons, each once; empty where rows are counted or are enough.
    subjects: Vec<u32>,
    /// Whether its rows alone have *K* persons.
    has_enough: bool,
    /// Whether its rows alone also are bounded by *C*.
    meets: bool,
    suppressed: bool,
}

/// Determines the rows to suppress with a candidate.
struct ReferenceTrial<'a> {
    /// The partitions of the current table.
    pub partitions: &'a Partitions,
    /// The privacy requirement.
    pub requirement: &'a Requirement<'a>,
    /// What rows may be suppressed for.
    pub suppression_for: SuppressionFor,
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

impl ReferenceTrial<'_> {
    /// The rows to suppress with the specialization. `None` if they exceed the budget, if fewer
    /// than *K* rows would be left, or if a group would exceed *C* that must not be suppressed.
    fn cost(
        &self,
        split_counts: &SplitCounts,
        subjects: Option<&ShareSubjects>,
        count_cache: &mut SensitiveCountCache,
    ) -> Option<Suppression> {
        let mut state = TrialState {
            trial: self,
            parts: self.refined(split_counts, subjects),
            suppressed_rows: 0,
            totals: Vec::new(),
            persons: PersonCheck::new(self.requirement),
        };
        state.totals.resize(self.requirement.counted_values, 0);
        let to_remove = match self.suppression_for {
            SuppressionFor::Size => GroupCheck::RemoveSmall,
            SuppressionFor::SizeAndConfidence => GroupCheck::RemoveViolating,
        };
        self.visit_children(split_counts, &mut state, to_remove)?;
        state.parts.extend(self.untouched(count_cache));
        let mut all = self.others.to_vec();
        all.push(self.candidate.0);
        let depth = all.len().min(self.requirement.l);
        loop {
            let before = state.suppressed_rows;
            state.visit(&state.all_parts(), &all, depth, (to_remove, true))?;
            if state.suppressed_rows == before {
                break;
            }
        }
        if !state.has_enough_persons(&state.all_parts()) {
            return None;
        }
        if to_remove == GroupCheck::RemoveSmall && self.requirement.bounds_confidence() {
            self.visit_children(split_counts, &mut state, GroupCheck::Refuse)?;
            state.visit(&state.all_parts(), &all, depth, (GroupCheck::Refuse, true))?;
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

    /// Checks every qid that contains a child. The parts of the children are the first ones.
    fn visit_children(
        &self,
        split_counts: &SplitCounts,
        state: &mut TrialState<'_>,
        check: GroupCheck,
    ) -> Option<()> {
        let depth = self.others.len().min(self.requirement.l - 1);
        let mut start = 0;
        for shares in &split_counts.children {
            let group: Vec<u32> = (start..start + shares.len() as u32).collect();
            start += shares.len() as u32;
            state.visit(&group, self.others, depth, (check, false))?;
        }
        Some(())
    }

    fn refined(
        &self,
        split_counts: &SplitCounts,
        subjects: Option<&ShareSubjects>,
    ) -> Vec<TrialPart> {
        let children = split_counts.children.iter().enumerate();
        let parts = children.flat_map(|(child, shares)| {
            (0..).zip(shares).map(move |(index, share)| {
                let subjects = subjects.map(|subjects| subjects.child(child).of_share(index));
                let subjects = subjects.unwrap_or_default();
                TrialPart {
                    partition: share.partition,
                    child: Some(child as u32),
                    concept: self.first_child + child as ConceptId,
                    size: u64::from(share.size),
                    sensitive_counts: split_counts.counts_of(share).to_vec(),
                    has_enough: self.has_enough(u64::from(share.size), subjects),
                    subjects: subjects.to_vec(),
                    meets: share.meets,
                    suppressed: false,
                }
            })
        });
        parts.collect()
    }

    /// Whether a part with these persons has *K* of them.
    fn has_enough(&self, size: u64, subjects: &[u32]) -> bool {
        self.requirement.surely_meets_k(size) || subjects.len() as u64 >= self.requirement.k.get()
    }

    fn untouched(&self, count_cache: &mut SensitiveCountCache) -> Vec<TrialPart> {
        let (attribute, concept) = self.candidate;
        let stays =
            |partition: &PartitionId| self.partitions.concept(*partition, attribute) != concept;
        let part = |partition: PartitionId| {
            let size = u64::from(self.partitions.size(partition));
            let counted = count_cache.get_or_count(partition, self.partitions, self.requirement);
            let counts = as_rows(&counted.sensitive);
            let has_enough = self.has_enough(size, &counted.subjects);
            let meets = has_enough && self.requirement.allows_counts(size, counts);
            TrialPart {
                partition,
                child: None,
                concept: self.partitions.concept(partition, attribute),
                size,
                sensitive_counts: counted.sensitive.to_vec(),
                subjects: counted.subjects.to_vec(),
                has_enough,
                meets,
                suppressed: false,
            }
        };
        self.partitions
            .non_empty()
            .filter(stays)
            .map(part)
            .collect()
    }
}

/// How a group is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupCheck {
    /// Suppress it if it has fewer than *K* rows.
    RemoveSmall,
    /// Suppress it if it has fewer than *K* rows or exceeds *C*.
    RemoveViolating,
    /// Give up if it has fewer than *K* rows or exceeds *C*.
    Refuse,
}

struct TrialState<'a> {
    trial: &'a ReferenceTrial<'a>,
    parts: Vec<TrialPart>,
    suppressed_rows: u64,
    totals: Vec<u64>,
    persons: PersonCheck<'a>,
}

impl TrialState<'_> {
    /// Checks every group that results from splitting `group` by `depth` of the attributes. `None`
    /// if the budget is exceeded or a group is refused. With `changed`, only groups that have lost
    /// a part are checked, since the others were valid before.
    fn visit(
        &mut self,
        group: &[u32],
        attributes: &[usize],
        depth: usize,
        (check, changed): (GroupCheck, bool),
    ) -> Option<()> {
        let may_violate = group.iter().any(|&part| {
            let part = &self.parts[part as usize];
            let meets = match check {
                GroupCheck::RemoveSmall => part.has_enough,
                GroupCheck::RemoveViolating | GroupCheck::Refuse => part.meets,
            };
            !part.suppressed && !meets
        });
        let touched = !changed
            || group
                .iter()
                .any(|&part| self.parts[part as usize].suppressed);
        if !may_violate || !touched {
            return Some(());
        }
        if depth == 0 {
            if self.allows(group, check) {
                return Some(());
            }
            if check == GroupCheck::Refuse {
                return None;
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
            for run in sorted.chunk_by(|(a, _), (b, _)| a == b) {
                let run: Vec<u32> = run.iter().map(|&(_, part)| part).collect();
                self.visit(
                    &run,
                    &attributes[position + 1..],
                    depth - 1,
                    (check, changed),
                )?;
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

    fn all_parts(&self) -> Vec<u32> {
        (0..self.parts.len() as u32).collect()
    }

    /// Whether what is left of a group has *K* persons.
    fn has_enough_persons(&mut self, group: &[u32]) -> bool {
        let parts = &self.parts;
        let remaining = group.iter().map(|&part| &parts[part as usize]);
        let remaining = remaining.filter(|part| !part.suppressed);
        let size = remaining.clone().map(|part| part.size).sum();
        let lists = remaining.map(|part| part.subjects.as_slice());
        self.persons.has_enough(size, lists)
    }

    /// Whether what is left of a group passes a check.
    fn allows(&mut self, group: &[u32], check: GroupCheck) -> bool {
        let requirement = self.trial.requirement;
        let parts = &self.parts;
        let remaining = || {
            group
                .iter()
                .map(|&part| &parts[part as usize])
                .filter(|part| !part.suppressed)
        };
        let size: u64 = remaining().map(|part| part.size).sum();
        if size == 0 {
            return true;
        }
        if !self.has_enough_persons(group) {
            return false;
        }
        if check == GroupCheck::RemoveSmall {
            return true;
        }
        let parts = &self.parts;
        let remaining = group.iter().map(|&part| &parts[part as usize]);
        let remaining = remaining.filter(|part| !part.suppressed);
        let mut values = Vec::new();
        for &ValueRows { value, rows } in remaining.flat_map(|part| &part.sensitive_counts) {
            let total = &mut self.totals[value as usize];
            if *total == 0 {
                values.push(value);
            }
            *total += u64::from(rows);
        }
        values.sort_unstable();
        let totals = &mut self.totals;
        let counts: Vec<_> = values
            .into_iter()
            .map(|value| (value, std::mem::take(&mut totals[value as usize])))
            .collect();
        requirement.allows_counts(size, counts.into_iter())
    }
}
