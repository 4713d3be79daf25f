//! Algorithm 1: perform the best valid specialization until none is left.
//!
//! LKC-privacy is anti-monotone, so the search is lazy: candidates are ordered by score, only the best one is
//! checked, and an invalid one is dropped until rows are suppressed. Scores summed over partitions are
//! refreshed only when their candidate is the best one, since these scores never increase.
//!
//! If no candidate is valid and rows may be suppressed, the candidates are tried in descending order of an
//! upper bound of their gain per suppressed row, until no remaining one can be the best. A trial ends as soon
//! as it suppresses too many rows for that.
//!
//! [`SpecializationSettings`] are the settings of a search. [`SearchState`] is its state: the cut,
//! its partitions, and the remaining candidates, each with its score and the splits that remain to be tried.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashSet;

use pais_core::definition::{Objective, SplitRule, SuppressionFor};
use pais_core::model::Decimal;
use pais_core::parallel;
use pais_core::subsets::choose;
use pais_core::table::EncodedTable;
use pais_core::table::codes::Codes;

use self::candidates::{Candidates, CutCandidate};
use super::attribute::{Attribute, Concept, ConceptId, Meaning};
use super::frequencies::{CollapsedTable, Floor, MAX_CELLS, Rounds};
use super::interval_splits::IntervalSplits;
use super::known_group::KnownGroups;
use super::partitions::{ChildOfCode, PartitionId, Partitions, Scan, SplitCounts};
use super::persons::ShareSubjects;
use super::requirement::{Requirement, by_value};
use super::score::{self, SplitQueue, SplitSelection};
use super::sensitive::SensitiveSlots;
use super::suppression::{
    SensitiveCountCache, SplitKey, Suppression, SuppressionBounds, SuppressionTrial, TrialIndex,
    TrialTable,
};
use super::topmost::{self, Draw};
use super::validity::ValidityCheck;
use crate::error::RunError;
use crate::observer::{Count, Observer, Phase};
use crate::step::{StepItem, StepRecord};

/// How often the same counts are requested from a source before a run fails.
pub(super) const ATTEMPTS: usize = 3;

mod candidates;
mod rounds;
#[cfg(test)]
pub(super) mod suppression_reference;

/// What a search works on.
#[derive(Clone, Copy)]
pub(super) struct SpecializationTask<'a> {
    pub table: &'a EncodedTable,
    pub requirement: &'a Requirement<'a>,
    pub settings: SpecializationSettings,
    /// For each quasi-identifier with a taxonomy, the NCP of its nodes.
    pub node_ncp: &'a [Vec<f64>],
    /// For each quasi-identifier with a taxonomy, whether its nodes are above a cut that the search
    /// reaches before it goes below it; empty without one.
    pub above_first_cut: &'a [Vec<bool>],
    pub observer: &'a dyn Observer,
}

/// Runs top-down specialization. Returns the steps; step 0 is the topmost table.
///
/// `draw` is given if rows of the topmost table may be suppressed to reach *C*; it returns a random
/// number below the given one.
///
/// # Errors
/// When no generalization meets the requirement, or on cancellation.
pub(super) fn search(
    task: SpecializationTask<'_>,
    draw: Option<&mut Draw<'_>>,
) -> Result<Vec<StepRecord>, RunError> {
    let SpecializationTask {
        table,
        requirement,
        settings,
        observer,
        ..
    } = task;
    let budget = settings.suppression_limit.floor_of(table.rows as u64);
    let sensitive = SensitiveSlots::new(requirement, table.rows);
    let suppressed = match draw {
        Some(draw) => topmost::suppress(table, requirement, &sensitive, budget, draw, observer)?,
        None => {
            topmost::check(table.rows as u64, requirement, &sensitive)?;
            Vec::new()
        }
    };
    // A frequency set has neither persons nor rows that could be suppressed.
    if budget == 0
        && requirement.subjects.is_none()
        && let Some(source) = CollapsedTable::new(table, &sensitive)
    {
        let rounds = Rounds {
            source: &source,
            budget: MAX_CELLS,
        };
        return search_over(task, &sensitive, rounds);
    }
    SearchState::over_rows(task, sensitive, &suppressed).run(suppressed, None)
}

/// Runs top-down specialization over frequency sets, without suppression and persons. The topmost
/// table must be valid. `sensitive` describes the slots; its rows are not read.
///
/// # Errors
/// When there are too many rows, when the counts contradict one another, and on cancellation.
pub(super) fn search_over(
    task: SpecializationTask<'_>,
    sensitive: &SensitiveSlots,
    rounds: Rounds<'_>,
) -> Result<Vec<StepRecord>, RunError> {
    SearchState::over_sets(task, sensitive, rounds)?.run(Vec::new(), Some(rounds))
}

impl<'a> SpecializationTask<'a> {
    /// By node of the taxonomy of a quasi-identifier, whether it is above a cut that the search reaches
    /// first; empty without one.
    fn first_cut(&self, position: usize) -> &'a [bool] {
        let is_above = self.above_first_cut.get(position);
        is_above.map_or(&[], Vec::as_slice)
    }
}

/// The settings of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpecializationSettings {
    /// The score that selects the next specialization.
    pub objective: Objective,
    /// How numeric intervals are split.
    pub split: SplitRule,
    /// Largest fraction of rows that may be suppressed.
    pub suppression_limit: Decimal,
    /// What rows may be suppressed for.
    pub suppression_for: SuppressionFor,
}

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
    candidates: Candidates,
    child_of_code: ChildOfCode,
    /// The attributes of the last violating qid. They are checked first, because often they
    /// violate the requirement again.
    last_violation: Vec<usize>,
    /// By attribute, the sum of NCP over the rows that are not suppressed.
    ncp_sums: Vec<f64>,
    count_cache: SensitiveCountCache,
    suppression_bounds: SuppressionBounds,
    known_groups: KnownGroups,
    /// By attribute, which codes the records distinguish; `None` if they are rows.
    floors: Option<Vec<Floor>>,
    /// Number of rows, including suppressed rows.
    rows: u64,
    /// Number of rows suppressed so far.
    suppressed: u64,
    /// Largest number of rows that may be suppressed.
    budget: u64,
    observer: &'a dyn Observer,
}

impl<'a> SearchState<'a> {
    /// The state at the topmost table, without the rows that are already `suppressed` (ascending).
    pub(super) fn over_rows(
        task: SpecializationTask<'a>,
        sensitive: SensitiveSlots,
        suppressed: &[u32],
    ) -> Self {
        let SpecializationTask {
            table,
            requirement,
            settings,
            ..
        } = task;
        let class = table.class.as_ref();
        let class = class.filter(|_| settings.objective == Objective::Classification);
        let columns = &table.quasi_identifiers;
        let columns = columns.iter().zip(task.node_ncp).enumerate();
        let attributes = parallel::map(columns, |(position, (column, node_ncp))| {
            Attribute::new(column, class, node_ncp).with_first_cut(task.first_cut(position))
        });
        let mut rows_by_value = sensitive.rows_by_value.clone();
        for &row in suppressed {
            requirement.for_each_counted_value(row as usize, |value| rows_by_value[value] -= 1);
        }
        let left = (table.rows - suppressed.len()) as u64;
        let greatest = requirement.greatest_share(left, by_value(&rows_by_value));
        let partitions = Partitions::new(
            table.rows,
            suppressed,
            attributes.len(),
            greatest,
            requirement.subjects,
        );
        let mut state = Self::new(
            task,
            attributes,
            sensitive,
            partitions,
            table.rows as u64,
            suppressed.len() as u64,
        );
        for &row in suppressed {
            state.remove_row(row);
        }
        state.reset_candidates();
        state
    }

    /// The state at the topmost table of this many rows, of which some are suppressed, without
    /// candidates.
    fn new(
        task: SpecializationTask<'a>,
        attributes: Vec<Attribute<'a>>,
        sensitive: SensitiveSlots,
        partitions: Partitions,
        rows: u64,
        suppressed: u64,
    ) -> Self {
        let SpecializationTask {
            table,
            requirement,
            settings,
            observer,
            ..
        } = task;
        let left = (rows - suppressed) as f64;
        let topmost = |attribute: &Attribute<'_>| left * attribute.ncp(attribute.concept(0));
        Self {
            table,
            requirement,
            settings,
            partitions,
            ncp_sums: attributes.iter().map(topmost).collect(),
            candidates: Candidates::new(&attributes),
            attributes,
            sensitive,
            child_of_code: ChildOfCode::default(),
            last_violation: Vec::new(),
            count_cache: SensitiveCountCache::default(),
            suppression_bounds: SuppressionBounds::default(),
            known_groups: KnownGroups::new(requirement.l, observer.cancellation()),
            floors: None,
            rows,
            suppressed,
            budget: settings.suppression_limit.floor_of(rows),
            observer,
        }
    }

    /// Performs the best valid specialization until none is left. Returns the steps; the first one
    /// is the topmost table without the rows `suppressed`.
    pub(super) fn run(
        mut self,
        suppressed: Vec<u32>,
        rounds: Option<Rounds<'_>>,
    ) -> Result<Vec<StepRecord>, RunError> {
        let mut steps = vec![self.step(0, None, suppressed)];
        let mut decided = 0usize;
        loop {
            self.observer
                .counted(Count::StepsDone(steps.len() as u64 - 1));
            self.observer.check()?;
            let Some(best) = self.candidates.best() else {
                // No candidate is valid: suppress rows within the budget to make one valid.
                let Some((best, suppression)) = self.best_with_suppression() else {
                    self.observer.check()?;
                    return Ok(steps);
                };
                let split_counts = self.count_split(best);
                steps.push(self.perform(steps.len(), best, &split_counts, &suppression));
                self.reset_candidates();
                continue;
            };
            if self.has_small_child(best) || self.needs_suppression(best) {
                self.reject(best, rounds)?;
            } else {
                if let Some(rounds) = rounds
                    && !self.distinguishes(best)
                {
                    self.count_next(best, rounds)?;
                }
                let mut split_counts = self.count_split(best);
                if score::is_over_partitions(self.settings.objective)
                    && self.candidates[best].scored_at != Some(steps.len())
                {
                    self.candidates.change(best, |candidate| {
                        candidate.score = split_counts.score as f64;
                        candidate.scored_at = Some(steps.len());
                    });
                    continue;
                }
                if self.is_valid(best, &mut split_counts) {
                    let none = Suppression::default();
                    steps.push(self.perform(steps.len(), best, &split_counts, &none));
                } else {
                    self.reject(best, rounds)?;
                }
            }
            decided += 1;
            let open = self.candidates.len();
            self.observer
                .progress(Phase::Searching, decided as f64 / (decided + open) as f64);
        }
    }

    /// Removes a suppressed row from the histograms.
    fn remove_row(&mut self, row: u32) {
        for attribute in &mut self.attributes {
            let class = self.table.class.as_ref().filter(|_| attribute.classes > 0);
            attribute.remove_row(row as usize, class.map(|it| it.codes.at(row as usize)));
        }
    }

    /// Counts the rows that a candidate would split, by partition and child.
    pub(super) fn count_split(&mut self, candidate: usize) -> SplitCounts {
        let CutCandidate {
            attribute,
            concept,
            split,
            ..
        } = &self.candidates[candidate];
        let column = &self.attributes[*attribute];
        self.child_of_code.assign_split(column, split);
        let objective = self.settings.objective;
        let scan = Scan {
            attribute: *attribute,
            concept: *concept,
            column,
            child_of_code: &self.child_of_code,
            width: split.len(),
            sensitive: &self.sensitive,
            requirement: self.requirement,
        };
        let term = |size, squares| score::discernibility_term(objective, size, squares);
        self.partitions.count_split(&scan, term)
    }

    /// The persons of the shares of the candidate whose split was counted last; `None` where rows
    /// are counted, or all shares have enough of them.
    fn list_subjects(
        &self,
        candidate: usize,
        split_counts: &mut SplitCounts,
    ) -> Option<ShareSubjects> {
        self.requirement.subjects?;
        let mut shares = split_counts.children.iter().flatten();
        if shares.all(|share| share.meets) {
            return None;
        }
        let CutCandidate {
            attribute, concept, ..
        } = self.candidates[candidate];
        let subjects = ShareSubjects::new(
            &self.partitions,
            self.partitions.link(attribute, concept),
            &self.attributes[attribute].column.codes,
            &self.child_of_code,
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
    pub(super) fn is_valid(&mut self, candidate: usize, split_counts: &mut SplitCounts) -> bool {
        let subjects = self.list_subjects(candidate, split_counts);
        let split_counts = &*split_counts;
        let check = ValidityCheck {
            split_counts,
            partitions: &self.partitions,
            requirement: self.requirement,
            subjects: subjects.as_ref(),
            observer: self.observer,
        };
        let others = self.others(self.candidates[candidate].attribute);
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
    /// rows, and adds the children as candidates. Returns the record of the step, whose number is
    /// `step`.
    fn perform(
        &mut self,
        step: usize,
        candidate: usize,
        split_counts: &SplitCounts,
        suppression: &Suppression,
    ) -> StepRecord {
        let CutCandidate {
            attribute,
            concept,
            split,
            score,
            ..
        } = self.candidates.remove(candidate);
        let column = &mut self.attributes[attribute];
        let children = column.specialize(concept, &split);
        let ncp_sum = |concept: &Concept| column.rows(concept) as f64 * column.ncp(concept);
        self.ncp_sums[attribute] -= ncp_sum(column.concept(concept));
        self.ncp_sums[attribute] += split.iter().map(ncp_sum).sum::<f64>();
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
            attribute,
            concept,
            column,
            child_of_code: &self.child_of_code,
            width: split.len(),
            sensitive: &self.sensitive,
            requirement: self.requirement,
        };
        self.partitions
            .refine(children.clone(), split_counts, &scan, placed);
        let mut rows = Vec::new();
        for partition in to_suppress {
            rows.extend(self.suppress(partition));
        }
        rows.sort_unstable();
        for child in children.clone() {
            self.add_candidate(attribute, child);
        }
        let performed = PerformedSpecialization {
            attribute,
            concept,
            children,
            score,
        };
        self.step(step as u32, Some(performed), rows)
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
        &mut self,
        step: u32,
        performed: Option<PerformedSpecialization>,
        suppressed: Vec<u32>,
    ) -> StepRecord {
        let left = (self.rows as f64 - self.suppressed as f64).max(1.0);
        let suppressed_so_far = self.suppressed as f64;
        let rows = (self.rows as f64).max(1.0);
        let columns = self.attributes.iter().zip(&self.ncp_sums);
        let ncp_by_column = columns.map(|(attribute, ncp_sum)| {
            let name = attribute.column.name.to_string();
            (name, (ncp_sum + suppressed_so_far) / rows)
        });
        let ncp_by_column: BTreeMap<String, f64> = ncp_by_column.collect();
        // Added up in the order of the report: another order is rounded differently.
        let ncp = ncp_by_column.values().sum::<f64>() / ncp_by_column.len().max(1) as f64;
        let (smallest_group, greatest) = self.partitions.extremes();
        let smallest_known_group = self.partitions.smallest_known(&mut self.known_groups);
        let column = performed
            .as_ref()
            .map(|performed| &self.attributes[performed.attribute]);
        let label = |concept: ConceptId| column.map(|column| column.label(column.concept(concept)));
        let children = performed.iter().flat_map(|it| it.children.clone());
        let item = StepItem {
            step,
            attribute: column.map(|column| column.column.name.to_string()),
            value: performed.as_ref().and_then(|it| label(it.concept)),
            children: children.filter_map(label).collect(),
            score: performed.as_ref().map(|performed| performed.score),
            groups: self.partitions.count() as u64,
            smallest_group,
            smallest_known_group,
            greatest_confidence: (self.requirement.counted_values > 0).then(|| greatest.as_f64()),
            dr: self.partitions.squares() as f64 / (left * left),
            ncp,
            ncp_by_column,
            suppressed_rows: self.suppressed,
        };
        StepRecord { item, suppressed }
    }
}

/// Number of split points of an interval from which on all points are checked in one pass instead
/// of one by one. Lower in tests, where intervals are small.
const MIN_POINTS: usize = if cfg!(test) { 2 } else { 6 };

/// Number of subsets of the other attributes up to which that pass is used. With more subsets, one
/// check by bitmaps is faster.
const MAX_SUBSETS: u64 = 10_000;

impl SearchState<'_> {
    /// Makes every value of ∪Cut a candidate again. After rows were suppressed, scores and split
    /// points change, and an invalid specialization may be valid.
    fn reset_candidates(&mut self) {
        self.candidates.clear();
        for attribute in 0..self.attributes.len() {
            for concept in self.attributes[attribute].cut.clone() {
                self.add_candidate(attribute, concept);
            }
        }
    }

    /// Makes a concept a candidate, unless it has no children or no row has it: a specialization
    /// without rows changes nothing.
    pub(super) fn add_candidate(&mut self, attribute: usize, concept: ConceptId) {
        let value = self.attributes[attribute].concept(concept);
        let Some((splits, split)) = self.splits(attribute, value) else {
            return;
        };
        let score = self.score(attribute, value, &split);
        let is_above = self.attributes[attribute].is_above_first_cut(value);
        let start = value.codes.start;
        self.candidates.push(CutCandidate {
            attribute,
            concept,
            start,
            splits,
            split,
            score,
            is_above,
            scored_at: None,
        });
    }

    /// The splits of a value, and the first of them; `None` if there is none, or no row has it.
    fn splits(&self, attribute: usize, value: &Concept) -> Option<(SplitQueue, Vec<Concept>)> {
        let column = &self.attributes[attribute];
        if column.rows(value) == 0 {
            return None;
        }
        let by_gain = self.settings.objective == Objective::Classification;
        let mut splits = SplitQueue::new(column, value, by_gain, self.split_selection());
        let first = splits.next(column, value)?;
        Some((splits, first))
    }

    /// Which splits of an interval are tried. Whether an interval has at least *K* rows is known
    /// without a scan, so smaller ones are excluded. If rows may still be suppressed, they are
    /// kept, because the rows of a small interval may be suppressed.
    fn split_selection(&self) -> SplitSelection {
        match self.settings.split {
            SplitRule::Fixed => SplitSelection::Best,
            SplitRule::BestValid if self.budget > self.suppressed => {
                SplitSelection::All { least: 1 }
            }
            SplitRule::BestValid => SplitSelection::All {
                least: self.requirement.k.get(),
            },
        }
    }

    fn score(&self, attribute: usize, parent: &Concept, split: &[Concept]) -> f64 {
        let cells = self.rows as f64 * self.attributes.len() as f64;
        let column = &self.attributes[attribute];
        score::from_histogram(column, parent, split, self.settings.objective, 1.0 / cells)
    }

    /// Whether a child of a candidate has fewer than *K* rows in total, so that no scan is needed.
    fn has_small_child(&self, candidate: usize) -> bool {
        let CutCandidate {
            attribute,
            ref split,
            ..
        } = self.candidates[candidate];
        split.iter().any(|child| self.has_too_few(attribute, child))
    }

    /// Whether an interval has missing cells in fewer than *K* rows. They are a child of every
    /// split, so no split is valid.
    fn has_few_missing_cells(&self, candidate: usize) -> bool {
        let CutCandidate {
            attribute,
            ref split,
            ..
        } = self.candidates[candidate];
        let is_missing = |child: &&Concept| child.meaning == Meaning::Missing;
        let mut missing = split.iter().filter(is_missing);
        missing.any(|child| self.has_too_few(attribute, child))
    }

    /// Whether a value has at least one row, but fewer than *K*.
    fn has_too_few(&self, attribute: usize, child: &Concept) -> bool {
        let rows = self.attributes[attribute].rows(child);
        (1..self.requirement.k.get()).contains(&rows)
    }

    /// Drops an invalid candidate, or replaces the split of an interval by the next best one that is
    /// valid.
    fn reject(&mut self, candidate: usize, rounds: Option<Rounds<'_>>) -> Result<(), RunError> {
        if self.has_few_missing_cells(candidate) || !self.replace_split(candidate, rounds)? {
            self.candidates.remove(candidate);
        }
        Ok(())
    }

    /// Replaces the split of an interval by the next best one that is valid; false if none is.
    ///
    /// Every point is checked now and none later: the score of a worse split may be the greater one,
    /// so the steps would depend on when a point is found to be invalid.
    fn replace_split(
        &mut self,
        candidate: usize,
        rounds: Option<Rounds<'_>>,
    ) -> Result<bool, RunError> {
        if let Some(rounds) = rounds
            && !self.distinguishes_points(candidate)
        {
            self.count_next(candidate, rounds)?;
        }
        loop {
            let is_valid = self.remove_invalid_points(candidate);
            self.observer.check()?;
            if !self.go_to_next_split(candidate) {
                return Ok(false);
            }
            if is_valid || self.is_valid_without_suppression(candidate) {
                return Ok(true);
            }
        }
    }

    /// Replaces the split of a candidate by the next best one; false if there is none.
    fn go_to_next_split(&mut self, candidate: usize) -> bool {
        let CutCandidate {
            attribute, concept, ..
        } = self.candidates[candidate];
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        let next = |candidate: &mut CutCandidate| candidate.splits.next(column, value);
        let Some(split) = self.candidates.change(candidate, next) else {
            return false;
        };
        let score = self.score(attribute, value, &split);
        self.candidates.change(candidate, |candidate| {
            candidate.split = split;
            candidate.score = score;
            candidate.scored_at = None;
        });
        true
    }

    fn is_valid_without_suppression(&mut self, candidate: usize) -> bool {
        if self.has_small_child(candidate) || self.needs_suppression(candidate) {
            return false;
        }
        let mut split_counts = self.count_split(candidate);
        self.is_valid(candidate, &mut split_counts)
    }

    /// Removes invalid split points from those that remain to be tried. Checks the best points
    /// first, and the next ones only if none of those is valid. A few remaining points are not
    /// checked here: trying them one by one is faster. Returns whether the first one that is left is
    /// known to be valid.
    fn remove_invalid_points(&mut self, candidate: usize) -> bool {
        let CutCandidate {
            attribute,
            concept,
            ref splits,
            ..
        } = self.candidates[candidate];
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        let others = self.others(attribute);
        if choose(others.len(), self.requirement.l - 1) > MAX_SUBSETS {
            return false;
        }
        let mut valid: Vec<u32> = Vec::new();
        let mut remaining = splits.remaining();
        while remaining.len() >= MIN_POINTS && valid.is_empty() && !self.observer.must_stop() {
            let most = remaining.len().min(IntervalSplits::MAX_POINTS);
            let (best, rest) = remaining.split_at(most);
            remaining = rest;
            let mut points = best.to_vec();
            points.sort_unstable();
            let width = self.child_of_code.assign_points(column, value, &points);
            let scan = Scan {
                attribute,
                concept,
                column,
                child_of_code: &self.child_of_code,
                width,
                sensitive: &self.sensitive,
                requirement: self.requirement,
            };
            let mut split_counts = self.partitions.count_split(&scan, |_, _| 0);
            let subjects = self.list_subjects(candidate, &mut split_counts);
            let check = ValidityCheck {
                split_counts: &split_counts,
                partitions: &self.partitions,
                requirement: self.requirement,
                subjects: subjects.as_ref(),
                observer: self.observer,
            };
            let is_valid_at = IntervalSplits::new(&check, points.len() + 1).valid(&others);
            let is_valid =
                |point: &u32| points.binary_search(point).is_ok_and(|at| is_valid_at[at]);
            valid.extend(best.iter().copied().filter(is_valid));
        }
        let is_valid = !valid.is_empty();
        valid.extend(remaining);
        (self.candidates).change(candidate, |candidate| candidate.splits.keep(valid));
        is_valid
    }
}

/// Bounds of floating-point numbers are widened by this factor, which exceeds their rounding.
const WIDENED: f64 = 1.0 + 1e-9;

/// A candidate that may be made valid.
struct OpenTrial {
    /// An upper bound of the gain per suppressed row.
    rate_bound: f64,
    candidate: usize,
}

/// A candidate with its rows to suppress, the best one so far.
struct BestTrial {
    rate: f64,
    candidate: usize,
    suppression: Suppression,
}

impl SearchState<'_> {
    /// The invalid specialization with the greatest gain per row that must be suppressed to make it valid,
    /// within the rest of the budget; ties go to the first. `None` if there is none. Considers every value of
    /// ∪Cut.
    ///
    /// A specialization without a gain is skipped. Under [`Objective::Ncp`] a suppressed row counts
    /// with an NCP of 1 in every attribute, and the gain is the score minus that loss.
    fn best_with_suppression(&mut self) -> Option<(usize, Suppression)> {
        #[cfg(test)]
        if suppression_reference::is_used() {
            return self.reference_best();
        }
        let budget = self.budget - self.suppressed;
        if budget == 0 {
            return None;
        }
        self.partitions.sort();
        self.reset_candidates();
        let open = (0..self.candidates.len()).filter_map(|candidate| {
            let (score, least) = self.bounds(candidate);
            let rate_bound = self.rate(score, least);
            (rate_bound > 0.0 && least <= budget).then_some(OpenTrial {
                rate_bound,
                candidate,
            })
        });
        let mut order: Vec<OpenTrial> = open.collect();
        // Stable: ties go to the first.
        order.sort_by(|one, other| other.rate_bound.total_cmp(&one.rate_bound));
        let below_top = |other: &usize| !self.attributes[*other].is_topmost();
        let below_top = (0..self.attributes.len()).filter(below_top).collect();
        let mut index = TrialIndex::new(&self.partitions, self.requirement, below_top);
        let mut best: Option<BestTrial> = None;
        for OpenTrial {
            rate_bound,
            candidate,
        } in order
        {
            if self.observer.must_stop() {
                return None;
            }
            if best
                .as_ref()
                .is_some_and(|best| rate_bound * WIDENED < best.rate)
            {
                break;
            }
            let tried = self.tried(candidate, budget, best.as_ref(), &mut index);
            let Some((gain, suppression)) = tried.filter(|(gain, _)| *gain > 0.0) else {
                continue;
            };
            let rate = gain / (suppression.rows as f64).max(1.0);
            let is_better = best.as_ref().is_none_or(|best| {
                rate > best.rate || rate == best.rate && candidate < best.candidate
            });
            if is_better {
                best = Some(BestTrial {
                    rate,
                    candidate,
                    suppression,
                });
            }
        }
        if best.is_none() {
            self.candidates.clear();
        }
        best.map(|best| (best.candidate, best.suppression))
    }

    /// Whether an earlier trial shows that a candidate is not valid without suppression.
    fn needs_suppression(&self, candidate: usize) -> bool {
        self.budget > 0
            && self
                .suppression_bounds
                .suppressed(self.split_key(candidate))
                > self.suppressed
    }

    fn split_key(&self, candidate: usize) -> SplitKey {
        let candidate = &self.candidates[candidate];
        SuppressionBounds::key(candidate.attribute, candidate.concept, &candidate.split)
    }

    /// An upper bound of a candidate's score, and a lower bound of its rows to suppress.
    fn bounds(&self, candidate: usize) -> (f64, u64) {
        let key = self.split_key(candidate);
        let CutCandidate {
            attribute,
            ref split,
            score,
            ..
        } = self.candidates[candidate];
        let known = self.suppression_bounds.score(key);
        let known = known.filter(|_| score::is_over_partitions(self.settings.objective));
        // The rows of a child that has fewer than K of them must be suppressed.
        let rows = |child| self.attributes[attribute].rows(child);
        let small = split.iter().map(rows);
        let small: u64 = small.filter(|rows| *rows < self.requirement.k.get()).sum();
        let total = self.suppression_bounds.suppressed(key);
        let least = total.saturating_sub(self.suppressed).max(small);
        (known.map_or(score, |known| known.min(score)), least)
    }

    /// The gain per suppressed row.
    fn rate(&self, score: f64, rows: u64) -> f64 {
        self.gain(score, rows) / (rows as f64).max(1.0)
    }

    fn gain(&self, score: f64, rows: u64) -> f64 {
        match self.settings.objective {
            Objective::Ncp => score - rows as f64 * self.mean_ncp_of_suppression(),
            _ => score,
        }
    }

    /// The largest number of rows with which a candidate of this score can be the best.
    fn most_rows(&self, score: f64, budget: u64, best: Option<&BestTrial>) -> u64 {
        let Some(best) = best else {
            return budget;
        };
        let lost = match self.settings.objective {
            Objective::Ncp => self.mean_ncp_of_suppression(),
            _ => 0.0,
        };
        budget.min(((score / (best.rate + lost) * WIDENED) as u64).saturating_add(1))
    }

    /// Tries a candidate: its gain and the rows to suppress. `None` if it needs too many rows or
    /// cannot be made valid.
    fn tried(
        &mut self,
        candidate: usize,
        budget: u64,
        best: Option<&BestTrial>,
        index: &mut TrialIndex,
    ) -> Option<(f64, Suppression)> {
        let mut split_counts = self.count_split(candidate);
        let score = self.candidates[candidate].score;
        let score = if score::is_over_partitions(self.settings.objective) {
            split_counts.score as f64
        } else {
            score
        };
        let (suppressed, suppression) = self.run_trial(
            candidate,
            &mut split_counts,
            self.most_rows(score, budget, best),
            index,
        );
        let key = self.split_key(candidate);
        let total = self.suppressed + suppressed;
        self.suppression_bounds.record(key, total, score);
        suppression.map(|suppression| (self.gain(score, suppression.rows), suppression))
    }

    /// A lower bound of the number of rows that a candidate must suppress because of *K*, and the rows to
    /// suppress; `None` if it cannot be made valid.
    fn run_trial(
        &mut self,
        candidate: usize,
        split_counts: &mut SplitCounts,
        budget: u64,
        index: &mut TrialIndex,
    ) -> (u64, Option<Suppression>) {
        let subjects = self.list_subjects(candidate, split_counts);
        let split_counts = &*split_counts;
        let CutCandidate {
            attribute, concept, ..
        } = self.candidates[candidate];
        let trial = SuppressionTrial {
            partitions: &self.partitions,
            requirement: self.requirement,
            others: &self.others(attribute),
            attribute,
            concept,
            first_child: self.attributes[attribute].concepts.len() as ConceptId,
            budget,
            observer: self.observer,
        };
        let (subjects, cache) = (subjects.as_ref(), &mut self.count_cache);
        let mut table = TrialTable::new(&trial, split_counts, subjects, cache, index);
        let removed = table.remove_small();
        let least = table.rows();
        let suppression = if removed.is_none() || table.is_empty() {
            None
        } else if !self.requirement.bounds_confidence() {
            Some(table.suppression())
        } else if self.settings.suppression_for == SuppressionFor::Size {
            table.check_confidence().map(|()| table.suppression())
        } else {
            let cache = &mut self.count_cache;
            TrialTable::new(&trial, split_counts, subjects, cache, index).remove_violating()
        };
        (least, suppression)
    }

    /// By how much the suppression of a row of average NCP increases the table's mean NCP.
    pub(super) fn mean_ncp_of_suppression(&self) -> f64 {
        let rows = self.rows as f64;
        let left = rows - self.suppressed as f64;
        let width = self.attributes.len() as f64;
        (width - self.ncp_sums.iter().sum::<f64>() / left.max(1.0)) / (rows * width)
    }
}
