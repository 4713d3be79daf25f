//! The candidates of a search, each with its score and the splits that remain to be tried.

use crate::observer::Observer;
use pais_core::definition::{Objective, SplitRule};

use super::super::attribute::{Concept, ConceptId, ConceptSplit, Meaning};
use super::super::candidate::Candidate;
use super::super::interval_splits::IntervalSplits;
use super::super::scan::Scan;
use super::super::score::{self, SplitQueue, SplitSelection, TIE};
use super::super::split_counts::SplitCounts;
use super::super::validity::subsets;
use super::SearchState;

/// Number of split points of an interval from which on all points are checked in one pass instead
/// of one by one. Lower in tests, where intervals are small.
const MIN_POINTS: usize = if cfg!(test) { 2 } else { 6 };

/// Number of subsets of the other attributes up to which that pass is used. With more subsets, one
/// check by bitmaps is faster.
const MAX_SUBSETS: u128 = 10_000;

impl SearchState<'_> {
    /// Makes every value of ∪Cut a candidate again. After rows were suppressed, scores and split
    /// points change, and an invalid specialization may be valid.
    pub(crate) fn reset_candidates(&mut self) {
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
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        if column.rows(value) == 0 {
            return;
        }
        let by_gain = self.settings.objective == Objective::Classification;
        let mut splits = SplitQueue::new(column, value, by_gain, self.split_selection());
        let Some(split) = splits.next(column, value) else {
            return;
        };
        let score = self.score(attribute, concept, &split);
        self.candidates.push(Candidate {
            attribute,
            concept,
            splits,
            split,
            score,
            scored_at: None,
        });
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

    fn score(&self, attribute: usize, concept: ConceptId, split: &ConceptSplit) -> f64 {
        let cells = self.table.rows as f64 * self.attributes.len() as f64;
        let column = &self.attributes[attribute];
        let parent = column.concept(concept);
        score::from_histogram(column, parent, split, self.settings.objective, 1.0 / cells)
    }

    /// The candidate with the greatest score. Ties are broken by attribute order, then cut order.
    pub(crate) fn best(&self) -> Option<usize> {
        let greatest = self
            .candidates
            .iter()
            .map(|candidate| candidate.score)
            .reduce(f64::max)?;
        let position = |candidate: &Candidate| {
            let concept = self.attributes[candidate.attribute].concept(candidate.concept);
            (candidate.attribute, concept.codes.start)
        };
        let tied = self.candidates.iter().enumerate();
        tied.filter(|(_, candidate)| candidate.score >= greatest - TIE)
            .min_by_key(|(_, candidate)| position(candidate))
            .map(|(index, _)| index)
    }

    /// Whether a candidate's score is exact for the table after `steps` steps.
    pub(crate) fn has_current_score(&self, candidate: usize, steps: usize) -> bool {
        !score::is_over_partitions(self.settings.objective)
            || self.candidates[candidate].scored_at == Some(steps)
    }

    /// Whether a child of a candidate has fewer than *K* rows in total, so that no scan is needed.
    pub(crate) fn has_small_child(&self, candidate: usize) -> bool {
        let mut children = self.candidates[candidate].split.children.iter();
        children.any(|child| self.has_too_few(candidate, child))
    }

    /// Whether an interval has missing cells in fewer than *K* rows. They are a child of every
    /// split, so no split is valid.
    fn has_few_missing_cells(&self, candidate: usize) -> bool {
        let children = self.candidates[candidate].split.children.iter();
        let mut missing = children.filter(|child| child.meaning == Meaning::Missing);
        missing.any(|child| self.has_too_few(candidate, child))
    }

    /// Whether a child of a candidate has at least one row, but fewer than *K*.
    fn has_too_few(&self, candidate: usize, child: &Concept) -> bool {
        let attribute = self.candidates[candidate].attribute;
        let rows = self.attributes[attribute].rows(child);
        (1..self.requirement.k.get()).contains(&rows)
    }

    /// Sets the score of a candidate, as computed after `steps` steps.
    pub(crate) fn set_score(&mut self, candidate: usize, score: f64, steps: usize) {
        let candidate = &mut self.candidates[candidate];
        candidate.score = score;
        candidate.scored_at = Some(steps);
    }

    /// Number of remaining candidates.
    pub(crate) fn candidate_count(&self) -> usize {
        self.candidates.len()
    }

    /// Drops an invalid candidate, or replaces the split of an interval by the next best one.
    pub(crate) fn reject(&mut self, candidate: usize, observer: &dyn Observer) {
        if self.has_few_missing_cells(candidate) {
            self.candidates.swap_remove(candidate);
            return;
        }
        self.remove_invalid_points(candidate, observer);
        let Candidate {
            attribute,
            concept,
            splits,
            ..
        } = &mut self.candidates[candidate];
        let (attribute, concept) = (*attribute, *concept);
        let column = &self.attributes[attribute];
        let Some(split) = splits.next(column, column.concept(concept)) else {
            self.candidates.swap_remove(candidate);
            return;
        };
        let score = self.score(attribute, concept, &split);
        let candidate = &mut self.candidates[candidate];
        candidate.split = split;
        candidate.score = score;
        candidate.scored_at = None;
    }

    /// Removes invalid split points from those that remain to be tried. Checks the best points
    /// first, and the next ones only if none of those is valid. A few remaining points are not
    /// checked here: trying them one by one is faster.
    fn remove_invalid_points(&mut self, candidate: usize, observer: &dyn Observer) {
        let Candidate {
            attribute,
            concept,
            ref splits,
            ..
        } = self.candidates[candidate];
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        let others = self.others(attribute);
        if subsets(others.len(), self.requirement.l - 1) > MAX_SUBSETS {
            return;
        }
        let mut valid: Vec<u32> = Vec::new();
        let mut remaining = splits.remaining();
        while remaining.len() >= MIN_POINTS && valid.is_empty() && !observer.must_stop() {
            let (best, rest) = remaining.split_at(remaining.len().min(IntervalSplits::MAX_POINTS));
            remaining = rest;
            let mut points = best.to_vec();
            points.sort_unstable();
            let width = self.child_of_code.assign_points(column, value, &points);
            let scan = Scan {
                column,
                child_of_code: &self.child_of_code,
                width,
                sensitive: &self.sensitive,
                requirement: self.requirement,
            };
            let mut split_counts =
                SplitCounts::new(&mut self.partitions, (attribute, concept), &scan, |_, _| {
                    0.0
                });
            let subjects = self.list_subjects(&mut split_counts, concept);
            let parts = points.len() + 1;
            let counts = (&split_counts, subjects.as_ref());
            let interval = IntervalSplits::new(&self.partitions, self.requirement, counts, parts);
            let is_valid_at = interval.valid(&others, observer);
            let is_valid =
                |point: &u32| points.binary_search(point).is_ok_and(|at| is_valid_at[at]);
            valid.extend(best.iter().copied().filter(is_valid));
        }
        valid.extend(remaining);
        self.candidates[candidate].splits.keep(valid);
    }
}
