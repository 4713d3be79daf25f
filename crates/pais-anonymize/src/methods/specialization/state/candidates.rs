//! The candidates of a run: in the order of their scores, each with the splits it may still try.

use pais_core::definition::{Objective, SplitRule};
use crate::Observer;

use super::super::attribute::{Concept, ConceptId, Meaning, Split};
use super::super::points::Interval;
use super::super::scan::Scan;
use super::super::score::{self, Choice, Splits, TIE};
use super::super::validity::subsets;
use super::super::weights::Weights;
use super::Run;

/// Points of an interval from which on it pays to find out which of them are valid before one is
/// tried; few in tests, where intervals are small.
const POINTS: usize = if cfg!(test) { 2 } else { 6 };

/// Subsets of the other attributes up to which that pays: beyond, one check by bitmaps is faster.
const SUBSETS: u128 = 10_000;

/// A value of ∪Cut that may still be specialized.
pub(super) struct Candidate {
    pub(super) attribute: usize,
    pub(super) concept: ConceptId,
    pub(super) splits: Splits,
    pub(super) split: Split,
    pub(super) score: f64,
    /// The number of steps performed when a score over partitions was last summed.
    pub(super) summed_at: Option<usize>,
}

impl Run<'_> {
    /// Makes every value of ∪Cut a candidate again: after rows were suppressed, scores and
    /// split points are others, and what was invalid may be valid.
    pub fn reconsider(&mut self) {
        self.candidates.clear();
        for attribute in 0..self.attributes.len() {
            for concept in self.attributes[attribute].cut.clone() {
                self.consider(attribute, concept);
            }
        }
    }

    /// Makes a concept a candidate, unless nothing is below it.
    pub(super) fn consider(&mut self, attribute: usize, concept: ConceptId) {
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        let by_gain = self.settings.objective == Objective::Classification;
        let mut splits = Splits::new(column, value, by_gain, self.choice());
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
            summed_at: None,
        });
    }

    /// Which splits of an interval are tried. A part by itself is known to be shared by *K* rows
    /// or not without a scan; where rows may still be suppressed, a small part may go.
    fn choice(&self) -> Choice {
        match self.settings.split {
            SplitRule::Fixed => Choice::Best,
            SplitRule::BestValid if self.budget > self.suppressed => Choice::All { least: 1 },
            SplitRule::BestValid => Choice::All {
                least: self.requirement.k.get(),
            },
        }
    }

    fn score(&self, attribute: usize, concept: ConceptId, split: &Split) -> f64 {
        let cells = self.table.rows as f64 * self.attributes.len() as f64;
        let column = &self.attributes[attribute];
        let parent = column.concept(concept);
        score::from_histogram(column, parent, split, self.settings.objective, 1.0 / cells)
    }

    /// The candidate of the greatest score; ties go to attribute order, then cut order.
    pub fn best(&self) -> Option<usize> {
        let greatest = self
            .candidates
            .iter()
            .map(|candidate| candidate.score)
            .reduce(f64::max)?;
        let place = |candidate: &Candidate| {
            let concept = self.attributes[candidate.attribute].concept(candidate.concept);
            (candidate.attribute, concept.codes.start)
        };
        let tied = self.candidates.iter().enumerate();
        tied.filter(|(_, candidate)| candidate.score >= greatest - TIE)
            .min_by_key(|(_, candidate)| place(candidate))
            .map(|(index, _)| index)
    }

    /// Whether a candidate's score is that of the table as it stands after `steps`.
    pub fn is_summed(&self, candidate: usize, steps: usize) -> bool {
        !score::is_over_partitions(self.settings.objective)
            || self.candidates[candidate].summed_at == Some(steps)
    }

    /// Whether a child of a candidate has fewer than *K* rows in all, so that no scan is needed.
    pub fn is_short(&self, candidate: usize) -> bool {
        let mut children = self.candidates[candidate].split.children.iter();
        children.any(|child| self.has_too_few(candidate, child))
    }

    /// Whether an interval has missing cells in fewer than *K* rows: those are a child of every
    /// split, so that none is valid.
    fn lacks_missing_cells(&self, candidate: usize) -> bool {
        let children = self.candidates[candidate].split.children.iter();
        let mut missing = children.filter(|child| child.meaning == Meaning::Missing);
        missing.any(|child| self.has_too_few(candidate, child))
    }

    /// Whether a child of a candidate has rows, but fewer than *K*.
    fn has_too_few(&self, candidate: usize, child: &Concept) -> bool {
        let attribute = self.candidates[candidate].attribute;
        let rows = self.attributes[attribute].rows(child);
        (1..self.requirement.k.get()).contains(&rows)
    }

    /// Sets the score of a candidate as summed after `steps`.
    pub fn sum(&mut self, candidate: usize, score: f64, steps: usize) {
        let candidate = &mut self.candidates[candidate];
        candidate.score = score;
        candidate.summed_at = Some(steps);
    }

    /// Candidates still undecided.
    pub fn open(&self) -> usize {
        self.candidates.len()
    }

    /// Drops an invalid candidate, or gives an interval its next best split.
    pub fn refuse(&mut self, candidate: usize, observer: &dyn Observer) {
        if self.lacks_missing_cells(candidate) {
            self.candidates.swap_remove(candidate);
            return;
        }
        self.strike_points(candidate, observer);
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
        candidate.summed_at = None;
    }

    /// Strikes the points at which an interval cannot be split off those still to be tried, for
    /// good: off the best ones, and where none of those is valid, off the next. A few are sooner
    /// tried.
    fn strike_points(&mut self, candidate: usize, observer: &dyn Observer) {
        let Candidate {
            attribute,
            concept,
            ref splits,
            ..
        } = self.candidates[candidate];
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        let others = self.others(attribute);
        if subsets(others.len(), self.requirement.l - 1) > SUBSETS {
            return;
        }
        let mut valid: Vec<u32> = Vec::new();
        let mut open = splits.open();
        while open.len() >= POINTS && valid.is_empty() && !observer.must_stop() {
            let (best, rest) = open.split_at(open.len().min(Interval::POINTS));
            open = rest;
            let mut points = best.to_vec();
            points.sort_unstable();
            let width = self.aim.at_points(column, value, &points);
            let scan = Scan {
                column,
                aim: &self.aim,
                width,
                sensitive: &self.sensitive,
                requirement: self.requirement,
            };
            let weights =
                Weights::new(&mut self.partitions, (attribute, concept), &scan, |_, _| {
                    0.0
                });
            let parts = points.len() + 1;
            let interval = Interval::new(&self.partitions, self.requirement, &weights, parts);
            let stands = interval.valid(&others, observer);
            let is_valid = |point: &u32| points.binary_search(point).is_ok_and(|at| stands[at]);
            valid.extend(best.iter().copied().filter(is_valid));
        }
        valid.extend(open);
        self.candidates[candidate].splits.keep(valid);
    }
}
