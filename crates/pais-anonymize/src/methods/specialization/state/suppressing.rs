//! The choice of a specialization that needs suppression.
//!
//! The candidates are tried in descending order of a bound of their gain per suppressed row, until
//! no remaining one can be the best. Each trial is given up once its rows are too many for that.

use crate::observer::Observer;
use pais_core::definition::{Objective, SuppressionFor};

use super::super::attribute::ConceptId;
use super::super::candidate::Candidate;
use super::super::score;
use super::super::split_counts::SplitCounts;
use super::super::suppression::{Suppression, SuppressionTrial};
use super::super::suppression_bounds::{SplitKey, SuppressionBounds};
use super::super::suppression_trial::{TrialIndex, TrialTable};
use super::super::violating_groups;
use super::SearchState;
#[cfg(test)]
use super::suppression_reference;

/// Bounds of floating-point numbers are widened by this factor, which exceeds their rounding.
const WIDENED: f64 = 1.0 + 1e-9;

/// A candidate with its rows to suppress, the best one so far.
struct BestTrial {
    rate: f64,
    candidate: usize,
    suppression: Suppression,
}

impl SearchState<'_> {
    /// The invalid specialization with the greatest gain per row that must be suppressed to make it
    /// valid, within the rest of the budget; the first one of equals. `None` when there is none.
    /// Considers every value of ∪Cut.
    ///
    /// A specialization without a gain is skipped. Under [`Objective::Ncp`] a suppressed row counts
    /// with an NCP of 1 in every attribute, and the gain is the score minus that loss.
    pub(crate) fn best_with_suppression(
        &mut self,
        observer: &dyn Observer,
    ) -> Option<(usize, Suppression)> {
        #[cfg(test)]
        if suppression_reference::is_used() {
            return self.reference_best(observer);
        }
        let budget = self.budget - self.suppressed;
        if budget == 0 {
            return None;
        }
        self.partitions.sort();
        self.reset_candidates();
        let bounds = (0..self.candidates.len()).map(|candidate| {
            let (score, least) = self.bounds(candidate);
            (self.rate(score, least), candidate, least)
        });
        let mut order: Vec<(f64, usize, u64)> = bounds
            .filter(|(rate, _, least)| *rate > 0.0 && *least <= budget)
            .collect();
        order.sort_by(|(a, first, _), (b, second, _)| b.total_cmp(a).then(first.cmp(second)));
        let below_top = |other: &usize| !self.attributes[*other].is_topmost();
        let below_top = (0..self.attributes.len()).filter(below_top).collect();
        let mut index = TrialIndex::new(&self.partitions, self.requirement, below_top);
        let mut best: Option<BestTrial> = None;
        for (bound, candidate, _) in order {
            if observer.must_stop() {
                return None;
            }
            if best
                .as_ref()
                .is_some_and(|best| bound * WIDENED < best.rate)
            {
                break;
            }
            let tried = self.tried(candidate, (budget, best.as_ref()), &mut index, observer);
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
    pub(crate) fn needs_suppression(&self, candidate: usize) -> bool {
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

    /// A bound of a candidate's score from above, and one of its rows to suppress from below.
    fn bounds(&self, candidate: usize) -> (f64, u64) {
        let key = self.split_key(candidate);
        let Candidate {
            attribute,
            ref split,
            score,
            ..
        } = self.candidates[candidate];
        let known = self.suppression_bounds.score(key);
        let known = known.filter(|_| score::is_over_partitions(self.settings.objective));
        // The rows of a child that has fewer than K of them must be suppressed.
        let rows = |child| self.attributes[attribute].rows(child);
        let small = split.children.iter().map(rows);
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
        (budget, best): (u64, Option<&BestTrial>),
        index: &mut TrialIndex,
        observer: &dyn Observer,
    ) -> Option<(f64, Suppression)> {
        let mut split_counts = self.count_split(candidate);
        let Candidate {
            attribute,
            concept,
            score,
            ..
        } = self.candidates[candidate];
        let score = match score::is_over_partitions(self.settings.objective) {
            true => split_counts.score(),
            false => score,
        };
        let (suppressed, suppression) = self.run_trial(
            (attribute, concept),
            &mut split_counts,
            self.most_rows(score, budget, best),
            index,
            observer,
        );
        let key = self.split_key(candidate);
        let total = self.suppressed + suppressed;
        self.suppression_bounds.record(key, total, score);
        suppression.map(|suppression| (self.gain(score, suppression.rows), suppression))
    }

    /// The rows to suppress with a candidate, and the least number of rows without which a group
    /// has fewer than *K*.
    fn run_trial(
        &mut self,
        (attribute, concept): (usize, ConceptId),
        split_counts: &mut SplitCounts,
        budget: u64,
        index: &mut TrialIndex,
        observer: &dyn Observer,
    ) -> (u64, Option<Suppression>) {
        let subjects = self.list_subjects(split_counts, concept);
        let split_counts = &*split_counts;
        let trial = SuppressionTrial {
            partitions: &self.partitions,
            requirement: self.requirement,
            others: &self.others(attribute),
            candidate: (attribute, concept),
            first_child: self.attributes[attribute].concepts.len() as ConceptId,
            budget,
            observer,
        };
        let counts = (split_counts, subjects.as_ref());
        let mut table = TrialTable::new(&trial, counts, &mut self.count_cache, index);
        let removed = table.remove_small();
        let least = table.rows();
        let suppression = if removed.is_none() || table.is_empty() {
            None
        } else if !self.requirement.bounds_confidence() {
            Some(table.suppression())
        } else if self.settings.suppression_for == SuppressionFor::Size {
            table.check_confidence().map(|()| table.suppression())
        } else {
            violating_groups::remove(&trial, counts, &mut self.count_cache)
        };
        (least, suppression)
    }

    /// By how much the suppression of a row of average NCP increases the table's mean NCP.
    pub(super) fn mean_ncp_of_suppression(&self) -> f64 {
        let rows = self.table.rows as f64;
        let left = rows - self.suppressed as f64;
        let width = self.attributes.len() as f64;
        (width - self.ncp_sums.iter().sum::<f64>() / left.max(1.0)) / (rows * width)
    }
}
