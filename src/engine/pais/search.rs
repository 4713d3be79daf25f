//! Algorithm 1: perform the best valid specialization until none is left.
//!
//! LKC-privacy is anti-monotone, so the search is lazy: candidates stand in the order of their
//! scores, only the one on top is checked, and one that is invalid is dropped for good. Scores
//! summed over partitions are refreshed in the same way, since they only ever sink.

use std::ops::Range;

use thiserror::Error;

use crate::domain::{Objective, SplitRule};
use crate::engine::observer::{Observer, Phase};
use crate::engine::run::{StepItem, StepRecord};
use crate::table::EncodedTable;

use super::attribute::{Attribute, ConceptId, Split};
use super::partitions::Partitions;
use super::requirement::Requirement;
use super::score::{self, Splits, TIE};
use super::validity::{Scratch, Weights};

/// What a run is led by.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What a specialization is chosen by.
    pub objective: Objective,
    /// How numeric intervals are split.
    pub split: SplitRule,
}

/// Why a search ended without an anonymous table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// The whole table is smaller than *K*.
    #[error(
        "the table has {rows} rows, fewer than k; lower `k` to at most {rows} or send more rows"
    )]
    FewerRowsThanK {
        /// Rows of the table.
        rows: u64,
    },
    /// A sensitive value is more frequent in the whole table than *C*.
    #[error("a sensitive value is more frequent in the whole table than `c` allows")]
    MoreFrequentThanC {
        /// Number of the sensitive value among all of the run.
        value: usize,
        /// Rows that have it.
        holding: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// The observer said stop.
    #[error("the run was cancelled")]
    Cancelled,
}

/// A value of ∪Cut that may still be specialized.
struct Candidate {
    attribute: usize,
    concept: ConceptId,
    splits: Splits,
    split: Split,
    score: f64,
    /// The number of steps performed when a score over partitions was last summed.
    summed_at: Option<usize>,
}

/// Runs PAIS; the steps from the topmost table on.
///
/// # Errors
/// When no generalization meets the requirement, or on cancellation.
pub fn search(
    table: &EncodedTable,
    requirement: &Requirement<'_>,
    settings: Settings,
    observer: &dyn Observer,
) -> Result<Vec<StepRecord>, SearchError> {
    topmost_holds(table, requirement)?;
    let mut run = Run::new(table, requirement, settings);
    let mut steps = vec![run.step(0, None)];
    let mut decided = 0usize;
    while let Some(best) = run.best() {
        if observer.must_stop() {
            return Err(SearchError::Cancelled);
        }
        let weights = run.weigh(best);
        if !run.is_summed(best, steps.len()) {
            let candidate = &mut run.candidates[best];
            candidate.score = weights.score;
            candidate.summed_at = Some(steps.len());
            continue;
        }
        decided += 1;
        if run.is_valid(&weights) {
            let performed = run.perform(best);
            steps.push(run.step(steps.len() as u32, Some(performed)));
        } else {
            run.refuse(best);
        }
        let open = run.candidates.len();
        observer.progress(Phase::Searching, decided as f64 / (decided + open) as f64);
    }
    Ok(steps)
}

fn topmost_holds(table: &EncodedTable, requirement: &Requirement<'_>) -> Result<(), SearchError> {
    let rows = table.rows as u64;
    if rows < requirement.k.get() {
        return Err(SearchError::FewerRowsThanK { rows });
    }
    let mut holding = vec![0u64; requirement.sensitive_values];
    for row in 0..table.rows {
        requirement.sensitive_of(row, |value| holding[value] += 1);
    }
    let most = holding
        .into_iter()
        .enumerate()
        .max_by_key(|&(value, count)| (count, !value));
    match most {
        Some((value, holding)) if !requirement.allows(rows, holding) => {
            Err(SearchError::MoreFrequentThanC {
                value,
                holding,
                rows,
            })
        }
        _ => Ok(()),
    }
}

/// A specialization that was performed.
struct Performed {
    attribute: usize,
    concept: ConceptId,
    children: Range<ConceptId>,
    score: f64,
}

struct Run<'a> {
    table: &'a EncodedTable,
    requirement: &'a Requirement<'a>,
    settings: Settings,
    attributes: Vec<Attribute<'a>>,
    partitions: Partitions,
    candidates: Vec<Candidate>,
    scratch: Scratch,
    /// The attributes of the qid that refused last, to be tried first.
    refused_by: Vec<usize>,
    /// Σ of NCP over rows, by attribute.
    lost: Vec<f64>,
}

impl<'a> Run<'a> {
    fn new(table: &'a EncodedTable, requirement: &'a Requirement<'a>, settings: Settings) -> Self {
        let class = match settings.objective {
            Objective::Classification => table
                .class
                .as_ref()
                .map(|(count, codes)| (*count, codes.as_slice())),
            _ => None,
        };
        let columns = &table.quasi_identifiers;
        let attributes: Vec<_> = columns
            .iter()
            .map(|column| Attribute::new(column, class))
            .collect();
        let lost = attributes
            .iter()
            .map(|attribute| table.rows as f64 * attribute.ncp(attribute.concept(0)))
            .collect();
        let mut run = Self {
            table,
            requirement,
            settings,
            partitions: Partitions::new(table.rows, attributes.len()),
            attributes,
            candidates: Vec::new(),
            scratch: Scratch::default(),
            refused_by: Vec::new(),
            lost,
        };
        for attribute in 0..run.attributes.len() {
            run.consider(attribute, 0);
        }
        run
    }

    /// Makes a concept a candidate, unless nothing is below it.
    fn consider(&mut self, attribute: usize, concept: ConceptId) {
        let column = &self.attributes[attribute];
        let value = column.concept(concept);
        let by_gain = self.settings.objective == Objective::Classification;
        let all = self.settings.split == SplitRule::BestValid;
        let mut splits = Splits::new(column, value, by_gain, all);
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

    fn score(&self, attribute: usize, concept: ConceptId, split: &Split) -> f64 {
        let cells = self.table.rows as f64 * self.attributes.len() as f64;
        let column = &self.attributes[attribute];
        let parent = column.concept(concept);
        score::from_histogram(column, parent, split, self.settings.objective, 1.0 / cells)
    }

    /// The candidate of the greatest score; ties go to attribute order, then cut order.
    fn best(&self) -> Option<usize> {
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
    fn is_summed(&self, candidate: usize, steps: usize) -> bool {
        !score::is_over_partitions(self.settings.objective)
            || self.candidates[candidate].summed_at == Some(steps)
    }

    fn weigh(&mut self, candidate: usize) -> Weights {
        let Candidate {
            attribute,
            concept,
            split,
            ..
        } = &self.candidates[candidate];
        let column = &self.attributes[*attribute];
        self.scratch.aim(column, split);
        let objective = self.settings.objective;
        Weights::new(
            &self.partitions,
            column,
            (*attribute, *concept),
            split.children.len(),
            self.requirement,
            &mut self.scratch,
            |size, squares| score::discernibility_term(objective, size, squares),
        )
    }

    fn is_valid(&mut self, weights: &Weights) -> bool {
        let below_top = |&attribute: &usize| {
            attribute != weights.attribute && !self.attributes[attribute].is_topmost()
        };
        let mut others: Vec<usize> = (0..self.attributes.len()).filter(below_top).collect();
        others.sort_by_key(|attribute| (!self.refused_by.contains(attribute), *attribute));
        match weights.check(&self.partitions, self.requirement, &others) {
            Ok(()) => true,
            Err(attributes) => {
                self.refused_by = attributes;
                false
            }
        }
    }

    /// Drops an invalid candidate, or gives an interval its next best split.
    fn refuse(&mut self, candidate: usize) {
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

    /// Specializes: refines the partitions, cuts the cut, considers the children.
    fn perform(&mut self, candidate: usize) -> Performed {
        let Candidate {
            attribute,
            concept,
            split,
            score,
            ..
        } = self.candidates.swap_remove(candidate);
        let column = &mut self.attributes[attribute];
        let children = column.specialize(concept, &split);
        let rows_lost =
            |concept: &super::attribute::Concept| column.rows(concept) as f64 * column.ncp(concept);
        self.lost[attribute] -= rows_lost(column.concept(concept));
        self.lost[attribute] += split.children.iter().map(rows_lost).sum::<f64>();
        self.scratch.aim(column, &split);
        let child_of = &self.scratch.child_of;
        self.partitions
            .refine(column, attribute, concept, children.clone(), child_of);
        for child in children.clone() {
            self.consider(attribute, child);
        }
        Performed {
            attribute,
            concept,
            children,
            score,
        }
    }

    fn step(&self, step: u32, performed: Option<Performed>) -> StepRecord {
        let rows = self.table.rows as f64;
        let cells = (self.attributes.len() as f64 * rows).max(1.0);
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
            smallest_group: self.partitions.smallest(),
            dr: self.partitions.squares() as f64 / (rows * rows),
            ncp: self.lost.iter().sum::<f64>() / cells,
            suppressed_rows: 0,
        };
        StepRecord {
            item,
            suppressed: Vec::new(),
        }
    }
}
