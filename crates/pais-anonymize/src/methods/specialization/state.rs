//! The state of a search: the cut, its partitions, and the remaining candidates.

mod candidates;
mod suppressing;
#[cfg(test)]
pub(super) mod suppression_reference;

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::observer::Observer;
use crate::step::{StepItem, StepRecord};
use pais_core::definition::Objective;
use pais_core::table::EncodedTable;
use pais_core::table::codes::Codes;

use super::attribute::{Attribute, Concept, ConceptId};
use super::candidate::Candidate;
use super::partitions::{PartitionId, Partitions};
use super::requirement::{Requirement, by_value};
use super::scan::{ChildOfCode, Scan};
use super::score;
use super::sensitive::SensitiveSlots;
use super::settings::SpecializationSettings;
use super::share_subjects::ShareSubjects;
use super::split_counts::SplitCounts;
use super::suppression::{SensitiveCountCache, Suppression};
use super::suppression_bounds::SuppressionBounds;
use super::validity::ValidityCheck;

/// A specialization that was performed.
pub(super) struct PerformedSpecialization {
    attribute: usize,
    concept: ConceptId,
    children: Range<ConceptId>,
    score: f64,
}

/// The state of a search after a number of steps.
pub(super) struct SearchState<'a> {
    table: &'a EncodedTable,
    requirement: &'a Requirement<'a>,
    settings: SpecializationSettings,
    attributes: Vec<Attribute<'a>>,
    sensitive: SensitiveSlots,
    partitions: Partitions,
    candidates: Vec<Candidate>,
    child_of_code: ChildOfCode,
    /// The attributes of the last violating qid. They are checked first, because often they
    /// violate the requirement again.
    last_violation: Vec<usize>,
    /// By attribute, the sum of NCP over the rows that are not suppressed.
    ncp_sums: Vec<f64>,
    count_cache: SensitiveCountCache,
    suppression_bounds: SuppressionBounds,
    /// Number of rows suppressed so far.
    suppressed: u64,
    /// Largest number of rows that may be suppressed.
    budget: u64,
}

impl<'a> SearchState<'a> {
    /// The state at the topmost table, without the rows that are already `suppressed` (ascending).
    /// At most `budget` rows may be suppressed. `node_ncp` is as for [`super::search::search`].
    pub(super) fn new(
        table: &'a EncodedTable,
        requirement: &'a Requirement<'a>,
        settings: SpecializationSettings,
        sensitive: SensitiveSlots,
        node_ncp: Vec<Vec<f64>>,
        (suppressed, budget): (&[u32], u64),
    ) -> Self {
        let class = match settings.objective {
            Objective::Classification => table
                .class
                .as_ref()
                .map(|(count, codes)| (*count, Codes::new(codes, *count))),
            _ => None,
        };
        let class = class.as_ref().map(|(count, codes)| (*count, codes));
        let columns = &table.quasi_identifiers;
        let attributes: Vec<_> = columns
            .par_iter()
            .zip(node_ncp)
            .map(|(column, node_ncp)| Attribute::new(column, class, node_ncp))
            .collect();
        let left = (table.rows - suppressed.len()) as f64;
        let topmost = |attribute: &Attribute<'_>| left * attribute.ncp(attribute.concept(0));
        let ncp_sums = attributes.iter().map(topmost).collect();
        let mut rows_by_value = sensitive.rows_by_value.clone();
        for &row in suppressed {
            requirement.for_each_counted_value(row as usize, |value| rows_by_value[value] -= 1);
        }
        let left = (table.rows - suppressed.len()) as u64;
        let greatest = requirement.greatest_share(left, by_value(&rows_by_value));
        let mut state = Self {
            table,
            requirement,
            settings,
            partitions: Partitions::new(
                (table.rows, suppressed),
                attributes.len(),
                greatest,
                requirement.subjects,
            ),
            attributes,
            sensitive,
            candidates: Vec::new(),
            child_of_code: ChildOfCode::default(),
            last_violation: Vec::new(),
            ncp_sums,
            count_cache: SensitiveCountCache::default(),
            suppression_bounds: SuppressionBounds::default(),
            suppressed: suppressed.len() as u64,
            budget,
        };
        for &row in suppressed {
            state.remove_row(row);
        }
        state.reset_candidates();
        state
    }

    /// Removes a suppressed row from the histograms.
    fn remove_row(&mut self, row: u32) {
        for attribute in &mut self.attributes {
            let class = self.table.class.as_ref().filter(|_| attribute.classes > 0);
            attribute.remove_row(row as usize, class.map(|(_, codes)| codes[row as usize]));
        }
    }

    /// Counts the rows that a candidate would split, by partition and child.
    pub(super) fn count_split(&mut self, candidate: usize) -> SplitCounts {
        let Candidate {
            attribute,
            concept,
            split,
            ..
        } = &self.candidates[candidate];
        let column = &self.attributes[*attribute];
        self.child_of_code.assign_split(column, split);
        let objective = self.settings.objective;
        let scan = Scan {
            column,
            child_of_code: &self.child_of_code,
            width: split.children.len(),
            sensitive: &self.sensitive,
            requirement: self.requirement,
        };
        let term = |size, squares| score::discernibility_term(objective, size, squares);
        SplitCounts::new(&mut self.partitions, (*attribute, *concept), &scan, term)
    }

    /// The persons of the shares of the candidate whose split was counted last; `None` where rows
    /// are counted, or all shares have enough of them.
    fn list_subjects(
        &self,
        split_counts: &mut SplitCounts,
        concept: ConceptId,
    ) -> Option<ShareSubjects> {
        self.requirement.subjects?;
        let mut shares = split_counts.children().iter().flatten();
        if shares.all(|share| share.meets) {
            return None;
        }
        let attribute = split_counts.attribute;
        let link = self.partitions.link(attribute, concept);
        let column = &self.attributes[attribute];
        let subjects = ShareSubjects::new(
            (&self.partitions, link),
            (column, &self.child_of_code),
            split_counts,
            self.requirement,
        )?;
        split_counts.mark_shares_with_enough(&subjects, self.requirement);
        Some(subjects)
    }

    fn others(&self, attribute: usize) -> Vec<usize> {
        let below_top =
            |other: &usize| *other != attribute && !self.attributes[*other].is_topmost();
        (0..self.attributes.len()).filter(below_top).collect()
    }

    /// Whether a candidate is valid for the current table.
    ///
    /// `split_counts` are of the candidate whose split was counted last.
    pub(super) fn is_valid(
        &mut self,
        candidate: usize,
        split_counts: &mut SplitCounts,
        observer: &dyn Observer,
    ) -> bool {
        let concept = self.candidates[candidate].concept;
        let subjects = self.list_subjects(split_counts, concept);
        let split_counts = &*split_counts;
        let check = ValidityCheck {
            split_counts,
            partitions: &self.partitions,
            requirement: self.requirement,
            subjects: subjects.as_ref(),
            observer,
        };
        let others = self.others(split_counts.attribute);
        let is_repeated = |other: &usize| self.last_violation.contains(other);
        let first: Vec<usize> = others.iter().copied().filter(is_repeated).collect();
        match check.run(&first).and_then(|()| check.run(&others)) {
            Ok(()) => true,
            Err(attributes) => {
                self.last_violation = attributes;
                false
            }
        }
    }

    /// Performs a specialization: updates the cut, refines the partitions, suppresses the given
    /// rows, and adds the children as candidates. Returns the suppressed rows in ascending order.
    pub(super) fn perform(
        &mut self,
        candidate: usize,
        split_counts: &SplitCounts,
        suppression: &Suppression,
    ) -> (PerformedSpecialization, Vec<u32>) {
        let Candidate {
            attribute,
            concept,
            split,
            score,
            ..
        } = self.candidates.swap_remove(candidate);
        let column = &mut self.attributes[attribute];
        let children = column.specialize(concept, &split);
        let ncp_sum = |concept: &Concept| column.rows(concept) as f64 * column.ncp(concept);
        self.ncp_sums[attribute] -= ncp_sum(column.concept(concept));
        self.ncp_sums[attribute] += split.children.iter().map(ncp_sum).sum::<f64>();
        self.child_of_code.assign_split(column, &split);
        self.count_cache
            .invalidate(self.partitions.link(attribute, concept));
        let mut to_suppress: Vec<PartitionId> = suppression.partitions.clone();
        let parts: FxHashSet<(PartitionId, u32)> = suppression.parts.iter().copied().collect();
        let placed = |partition, child, child_partition| {
            if parts.contains(&(partition, child)) {
                to_suppress.push(child_partition);
            }
        };
        let scan = Scan {
            column,
            child_of_code: &self.child_of_code,
            width: split.children.len(),
            sensitive: &self.sensitive,
            requirement: self.requirement,
        };
        self.partitions
            .refine(concept, children.clone(), split_counts, &scan, placed);
        let mut rows = Vec::new();
        for partition in to_suppress {
            rows.extend(self.suppress(partition));
        }
        rows.sort_unstable();
        for child in children.clone() {
            self.add_candidate(attribute, child);
        }
        (
            PerformedSpecialization {
                attribute,
                concept,
                children,
                score,
            },
            rows,
        )
    }

    fn suppress(&mut self, partition: PartitionId) -> Vec<u32> {
        let rows = self.partitions.suppress(partition);
        for (at, attribute) in self.attributes.iter().enumerate() {
            let concept = attribute.concept(self.partitions.concept(partition, at));
            self.ncp_sums[at] -= rows.len() as f64 * attribute.ncp(concept);
        }
        for &row in &rows {
            self.remove_row(row);
        }
        self.suppressed += rows.len() as u64;
        self.count_cache.invalidate(&[partition]);
        rows
    }

    /// The record of the step that led to this state.
    pub(super) fn step(
        &self,
        step: u32,
        performed: Option<PerformedSpecialization>,
        suppressed: Vec<u32>,
    ) -> StepRecord {
        let width = self.attributes.len() as f64;
        let cells = (width * self.table.rows as f64).max(1.0);
        let left = (self.table.rows as f64 - self.suppressed as f64).max(1.0);
        let ncp_total = self.ncp_sums.iter().sum::<f64>() + width * self.suppressed as f64;
        let suppressed_so_far = self.suppressed as f64;
        let rows = (self.table.rows as f64).max(1.0);
        let columns = self.attributes.iter().zip(&self.ncp_sums);
        let ncp_by_column = columns.map(|(attribute, ncp_sum)| {
            let name = attribute.column.name.to_string();
            (name, (ncp_sum + suppressed_so_far) / rows)
        });
        let (smallest_group, greatest) = self.partitions.extremes();
        let label = |attribute: usize, concept: ConceptId| {
            let column = &self.attributes[attribute];
            column.label(column.concept(concept))
        };
        let item = StepItem {
            step,
            attribute: performed
                .as_ref()
                .map(|performed| self.attributes[performed.attribute].column.name.to_string()),
            value: performed
                .as_ref()
                .map(|performed| label(performed.attribute, performed.concept)),
            children: performed
                .iter()
                .flat_map(|performed| {
                    performed
                        .children
                        .clone()
                        .map(|child| label(performed.attribute, child))
                })
                .collect(),
            score: performed.as_ref().map(|performed| performed.score),
            groups: self.partitions.count() as u64,
            smallest_group,
            greatest_confidence: (self.requirement.counted_values > 0).then(|| greatest.as_f64()),
            dr: self.partitions.squares() as f64 / (left * left),
            ncp: ncp_total / cells,
            ncp_by_column: ncp_by_column.collect(),
            suppressed_rows: self.suppressed,
        };
        StepRecord { item, suppressed }
    }
}
