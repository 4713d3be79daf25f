//! A search over frequency sets: it continues with one set as long as the set distinguishes the children of the
//! best candidate, and then requests the next set below its cut.
//!
//! What a set distinguishes decides when rows are counted, not what is valid. So the steps depend neither on
//! the floors nor on the budget.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::frequencies::{Floor, FrequencySet, Rounds};
use super::*;
use crate::row_counter::CountError;

/// Children that a set may distinguish.
#[derive(Default)]
struct Expansion {
    attribute: usize,
    /// First codes of the children, and of all other parts that an interval may have.
    starts: Vec<u32>,
    /// Those that may be specialized further.
    children: Vec<Concept>,
}

impl<'a> SearchState<'a> {
    /// The state at the topmost table, before anything is counted but histograms.
    pub(super) fn over_sets(
        task: SpecializationTask<'a>,
        sensitive: &SensitiveSlots,
        rounds: Rounds<'_>,
    ) -> Result<Self, RunError> {
        let rows = rounds.source.rows();
        let Ok(size) = u32::try_from(rows) else {
            return Err(RunError::limit_exceeded(format!(
                "the table has {rows} rows; at most {} can be anonymized together",
                u32::MAX
            )));
        };
        let by_class = task.settings.objective == Objective::Classification;
        let histograms = rounds.source.histograms(by_class, task.observer)?;
        let columns = task.table.quasi_identifiers.iter().zip(task.node_ncp);
        let attributes: Vec<_> = columns
            .zip(histograms)
            .enumerate()
            .map(|(position, ((column, node_ncp), histogram))| {
                Attribute::with_histogram(column, Codes::Zero(0), histogram, node_ncp)
                    .with_first_cut(task.first_cut(position))
            })
            .collect();
        let greatest = task
            .requirement
            .greatest_share(rows, by_value(&sensitive.rows_by_value));
        let partitions = Partitions::uncounted(size, attributes.len(), greatest);
        let mut state = Self::new(
            task,
            attributes,
            sensitive.without_rows(),
            partitions,
            rows,
            0,
        );
        // Nothing is counted yet, not even one range for all codes.
        state.floors = Some(vec![Floor(Vec::new()); state.attributes.len()]);
        state.reset_candidates();
        Ok(state)
    }

    /// Whether the children of a candidate can be counted.
    pub(super) fn distinguishes(&self, candidate: usize) -> bool {
        let CutCandidate {
            attribute,
            ref split,
            ..
        } = self.candidates[candidate];
        let floors = self.floors.as_ref();
        floors.is_none_or(|floors| floors[attribute].separates(split))
    }

    /// Whether the parts of an interval can be counted for each point that remains to be tried.
    pub(super) fn distinguishes_points(&self, candidate: usize) -> bool {
        let CutCandidate {
            attribute,
            ref splits,
            ..
        } = self.candidates[candidate];
        let points = splits.remaining();
        let Some(floors) = self.floors.as_ref().filter(|_| !points.is_empty()) else {
            return true;
        };
        // The missing cells of the interval are a part of every split.
        self.distinguishes(candidate)
            && points
                .iter()
                .all(|&point| floors[attribute].starts_at(point))
    }

    /// Requests the next set: one that distinguishes the children of the candidate `best`, and as many others
    /// as the budget allows.
    ///
    /// # Errors
    /// When the set is not one of the rows counted so far, and on cancellation.
    pub(super) fn count_next(&mut self, best: usize, rounds: Rounds<'_>) -> Result<(), RunError> {
        let expansions = self.expansions(best, rounds.budget);
        let mut taken = self.expected_to_fit(&expansions, rounds)?;
        // A source may fail once: a set that contradicts earlier counts is requested again.
        for _ in 0..ATTEMPTS {
            let set = loop {
                let floors = self.floors_with(&expansions[..taken]);
                let most = (taken > 1).then_some(rounds.budget);
                match rounds.source.frequency_set(&floors, most, self.observer) {
                    Err(CountError::MoreThan) if taken > 1 => taken /= 2,
                    counted => break counted?,
                }
            };
            if self.go_on_with(set) && self.distinguishes(best) && self.distinguishes_points(best) {
                return Ok(());
            }
        }
        Err(RunError::NotCounted {
            reason: "a frequency set does not fit the rows counted before".to_owned(),
        })
    }

    /// How many of these expansions, from the first one on, are expected to make a set within the budget; at
    /// least one.
    fn expected_to_fit(
        &self,
        expansions: &[Expansion],
        rounds: Rounds<'_>,
    ) -> Result<usize, CountError> {
        let fit = |taken: usize| -> Result<bool, CountError> {
            let floors = self.floors_with(&expansions[..taken]);
            let expected = rounds.source.expected_records(&floors, self.observer)?;
            Ok(expected <= rounds.budget as u64)
        };
        let (mut fitting, mut too_many) = (1, expansions.len());
        if too_many <= 1 || fit(too_many)? {
            return Ok(too_many);
        }
        // Each expansion can only add records.
        while too_many - fitting > 1 {
            let middle = fitting.midpoint(too_many);
            if fit(middle)? {
                fitting = middle;
            } else {
                too_many = middle;
            }
        }
        Ok(fitting)
    }

    /// Replaces the records by those of a set. Returns whether they are the rows counted so far.
    #[must_use]
    fn go_on_with(&mut self, set: FrequencySet) -> bool {
        let shape = (set.floors.len(), set.codes.len(), set.slots.len());
        let columns = self.attributes.len();
        if shape != (columns, columns, self.sensitive.slots.len()) {
            return false;
        }
        for (attribute, codes) in self.attributes.iter_mut().zip(set.codes) {
            attribute.codes = codes;
        }
        for (slots, codes) in self.sensitive.slots.iter_mut().zip(set.slots) {
            slots.codes = codes;
        }
        self.floors = Some(set.floors);
        self.partitions.lay_out(&self.attributes, set.rows)
    }

    /// The floors that distinguish the values of the cut and these children.
    fn floors_with(&self, expansions: &[Expansion]) -> Vec<Floor> {
        let attributes = self.attributes.iter();
        let cut = attributes.map(|attribute| {
            let concepts = attribute.cut.iter().map(|&id| attribute.concept(id));
            concepts.map(|concept| concept.codes.start).collect()
        });
        let mut starts: Vec<Vec<u32>> = cut.collect();
        for expansion in expansions {
            starts[expansion.attribute].extend(&expansion.starts);
        }
        let floors = starts.into_iter().map(|mut starts| {
            starts.sort_unstable();
            starts.dedup();
            Floor(starts)
        });
        floors.collect()
    }

    /// What the next set may distinguish: the children of the candidate `best`, and then those of
    /// all other candidates and of their children, in descending order of the scores, as if every
    /// specialization were valid. Ends where one attribute alone exceeds the budget.
    fn expansions(&self, best: usize, budget: usize) -> Vec<Expansion> {
        let mut queue = ExpansionQueue::default();
        for (number, candidate) in self.candidates.iter().enumerate() {
            let (splits, split) = (&candidate.splits, &candidate.split);
            let score = if number == best {
                f64::INFINITY
            } else {
                candidate.score
            };
            queue.push(score, self.expansion(candidate.attribute, splits, split));
        }
        let mut order = Vec::new();
        let mut parts = vec![0; self.attributes.len()];
        while let Some(mut expansion) = queue.pop() {
            let attribute = expansion.attribute;
            parts[attribute] += expansion.starts.len();
            let is_last = parts[attribute] > budget;
            for child in std::mem::take(&mut expansion.children) {
                if let Some((splits, split)) = self.splits(attribute, &child) {
                    let score = self.score(attribute, &child, &split);
                    queue.push(score, self.expansion(attribute, &splits, &split));
                }
            }
            order.push(expansion);
            if is_last {
                break;
            }
        }
        order
    }

    /// `None` for a split that is not valid, whatever the other attributes are.
    fn expansion(
        &self,
        attribute: usize,
        splits: &SplitQueue,
        split: &[Concept],
    ) -> Option<Expansion> {
        if split.iter().any(|child| self.has_too_few(attribute, child)) {
            return None;
        }
        let starts = split.iter().map(|child| child.codes.start);
        let remaining = splits.remaining();
        Some(Expansion {
            attribute,
            starts: starts.chain(remaining.iter().copied()).collect(),
            // The points of the parts of an interval are among its own.
            children: match remaining {
                [] => split.to_vec(),
                _ => Vec::new(),
            },
        })
    }
}

/// Expansions in descending order of their scores; ties in order of insertion.
#[derive(Default)]
struct ExpansionQueue {
    found: Vec<Expansion>,
    queue: BinaryHeap<(u64, Reverse<usize>)>,
}

impl ExpansionQueue {
    fn push(&mut self, score: f64, expansion: Option<Expansion>) {
        if let Some(expansion) = expansion {
            // Numbers that are not negative are in the order of their bits.
            let rank = score.max(0.0).to_bits();
            self.queue.push((rank, Reverse(self.found.len())));
            self.found.push(expansion);
        }
    }

    fn pop(&mut self) -> Option<Expansion> {
        let (_, Reverse(number)) = self.queue.pop()?;
        Some(std::mem::take(&mut self.found[number]))
    }
}
