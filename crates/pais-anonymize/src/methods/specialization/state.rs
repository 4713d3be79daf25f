//! A run as it stands: the cut, the partitions under it, and the candidates to go on with.

mod candidates;

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use pais_core::definition::Objective;
use crate::Observer;
use crate::run::{StepItem, StepRecord};
use pais_core::table::EncodedTable;
use pais_core::table::codes::Codes;

use super::attribute::{Attribute, Concept, ConceptId};
use super::partitions::{PartitionId, Partitions};
use super::requirement::Requirement;
use super::scan::{Aim, Scan};
use super::score;
use super::search::Settings;
use super::sensitive::Sensitive;
use super::suppression::{Holdings, Suppression, Trial};
use super::validity::Check;
use super::weights::Weights;
use candidates::Candidate;

/// A specialization that was performed.
pub struct Performed {
    attribute: usize,
    concept: ConceptId,
    children: Range<ConceptId>,
    score: f64,
}

/// A run as it stands.
pub struct Run<'a> {
    table: &'a EncodedTable,
    requirement: &'a Requirement<'a>,
    settings: Settings,
    attributes: Vec<Attribute<'a>>,
    sensitive: Sensitive,
    partitions: Partitions,
    candidates: Vec<Candidate>,
    aim: Aim,
    /// The attributes of the qid that refused last, tried first: often they refuse again.
    refused_by: Vec<usize>,
    /// Σ of NCP over the rows that are left, by attribute.
    lost: Vec<f64>,
    holdings: Holdings,
    /// Rows suppressed so far, and how many may be.
    suppressed: u64,
    budget: u64,
}

impl<'a> Run<'a> {
    /// The topmost table without the rows already `suppressed` (ascending).
    pub fn new(
        table: &'a EncodedTable,
        requirement: &'a Requirement<'a>,
        settings: Settings,
        sensitive: Sensitive,
        suppressed: &[u32],
        budget: u64,
    ) -> Self {
        let class = match settings.objective {
            Objective::Classification => table
                .class
                .as_ref()
                .map(|(count, codes)| (*count, Codes::of(codes, *count))),
            _ => None,
        };
        let class = class.as_ref().map(|(count, codes)| (*count, codes));
        let columns = &table.quasi_identifiers;
        let attributes: Vec<_> = columns
            .par_iter()
            .map(|column| Attribute::new(column, class))
            .collect();
        let left = (table.rows - suppressed.len()) as f64;
        let topmost = |attribute: &Attribute<'_>| left * attribute.ncp(attribute.concept(0));
        let lost = attributes.iter().map(topmost).collect();
        let mut holding = sensitive.holding.clone();
        for &row in suppressed {
            requirement.sensitive_of(row as usize, |value| holding[value] -= 1);
        }
        let most = holding.into_iter().max().unwrap_or(0) as u32;
        let mut run = Self {
            table,
            requirement,
            settings,
            partitions: Partitions::new(table.rows, suppressed, attributes.len(), most),
            attributes,
            sensitive,
            candidates: Vec::new(),
            aim: Aim::default(),
            refused_by: Vec::new(),
            lost,
            holdings: Holdings::default(),
            suppressed: suppressed.len() as u64,
            budget,
        };
        for &row in suppressed {
            run.forget(row);
        }
        run.reconsider();
        run
    }

    /// Takes a suppressed row out of the histograms.
    fn forget(&mut self, row: u32) {
        for attribute in &mut self.attributes {
            let class = self.table.class.as_ref().filter(|_| attribute.classes > 0);
            attribute.forget(row as usize, class.map(|(_, codes)| codes[row as usize]));
        }
    }

    /// Counts the rows that a candidate would split.
    pub fn weigh(&mut self, candidate: usize) -> Weights {
        let Candidate {
            attribute,
            concept,
            split,
            ..
        } = &self.candidates[candidate];
        let column = &self.attributes[*attribute];
        self.aim.at(column, split);
        let objective = self.settings.objective;
        let scan = Scan {
            column,
            aim: &self.aim,
            width: split.children.len(),
            sensitive: &self.sensitive,
            requirement: self.requirement,
        };
        let term = |size, squares| score::discernibility_term(objective, size, squares);
        Weights::new(&mut self.partitions, (*attribute, *concept), &scan, term)
    }

    fn others(&self, attribute: usize) -> Vec<usize> {
        let below_top =
            |other: &usize| *other != attribute && !self.attributes[*other].is_topmost();
        (0..self.attributes.len()).filter(below_top).collect()
    }

    /// Whether a candidate is valid as the table stands.
    pub fn is_valid(&mut self, weights: &Weights, observer: &dyn Observer) -> bool {
        let check = Check {
            weights,
            partitions: &self.partitions,
            requirement: self.requirement,
            observer,
        };
        let others = self.others(weights.attribute);
        let again = |other: &usize| self.refused_by.contains(other);
        let first: Vec<usize> = others.iter().copied().filter(again).collect();
        match check.run(&first).and_then(|()| check.run(&others)) {
            Ok(()) => true,
            Err(attributes) => {
                self.refused_by = attributes;
                false
            }
        }
    }

    /// The invalid specialization that gains most for each row to be suppressed with it, within
    /// what may still be; `None` when there is none. Looks at every value of ∪Cut.
    ///
    /// What gains nothing is worth no row. Under [`Objective::Ncp`] a suppressed row counts as
    /// lost altogether, and the gain is what remains after that.
    pub fn cheapest(&mut self, observer: &dyn Observer) -> Option<(usize, Suppression)> {
        let budget = self.budget - self.suppressed;
        if budget == 0 {
            return None;
        }
        self.partitions.sort();
        self.reconsider();
        let mut best: Option<(f64, usize, Suppression)> = None;
        for candidate in 0..self.candidates.len() {
            if observer.must_stop() {
                return None;
            }
            let weights = self.weigh(candidate);
            let Candidate {
                attribute, concept, ..
            } = self.candidates[candidate];
            let trial = Trial {
                partitions: &self.partitions,
                requirement: self.requirement,
                others: &self.others(attribute),
                candidate: (attribute, concept),
                first_child: self.attributes[attribute].concepts.len() as ConceptId,
                budget,
                left: self.table.rows as u64 - self.suppressed,
                observer,
            };
            let Some(suppression) = trial.cost(&weights, &mut self.holdings) else {
                continue;
            };
            let score = if score::is_over_partitions(self.settings.objective) {
                weights.score()
            } else {
                self.candidates[candidate].score
            };
            let rows = suppression.rows as f64;
            let gain = match self.settings.objective {
                Objective::Ncp => score - rows * self.mean_kept(),
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

    /// What the loss of a row adds to the table's mean NCP, for a row of the average loss.
    fn mean_kept(&self) -> f64 {
        let rows = self.table.rows as f64;
        let left = rows - self.suppressed as f64;
        let width = self.attributes.len() as f64;
        (width - self.lost.iter().sum::<f64>() / left.max(1.0)) / (rows * width)
    }

    /// Specializes: refines the partitions, cuts the cut, suppresses what goes with it, and
    /// considers the children. The rows suppressed come back ascending.
    pub fn perform(
        &mut self,
        candidate: usize,
        weights: &Weights,
        suppression: &Suppression,
    ) -> (Performed, Vec<u32>) {
        let Candidate {
            attribute,
            concept,
            split,
            score,
            ..
        } = self.candidates.swap_remove(candidate);
        let column = &mut self.attributes[attribute];
        let children = column.specialize(concept, &split);
        let rows_lost = |concept: &Concept| column.rows(concept) as f64 * column.ncp(concept);
        self.lost[attribute] -= rows_lost(column.concept(concept));
        self.lost[attribute] += split.children.iter().map(rows_lost).sum::<f64>();
        self.aim.at(column, &split);
        self.holdings
            .forget(self.partitions.link(attribute, concept));
        let mut gone: Vec<PartitionId> = suppression.partitions.clone();
        let parts: FxHashSet<(PartitionId, u32)> = suppression.parts.iter().copied().collect();
        let placed = |partition, child, made| {
            if parts.contains(&(partition, child)) {
                gone.push(made);
            }
        };
        let scan = Scan {
            column,
            aim: &self.aim,
            width: split.children.len(),
            sensitive: &self.sensitive,
            requirement: self.requirement,
        };
        self.partitions
            .refine(concept, children.clone(), weights, &scan, placed);
        let mut rows = Vec::new();
        for partition in gone {
            rows.extend(self.suppress(partition));
        }
        rows.sort_unstable();
        for child in children.clone() {
            self.consider(attribute, child);
        }
        (
            Performed {
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
            self.lost[at] -= rows.len() as f64 * attribute.ncp(concept);
        }
        for &row in &rows {
            self.forget(row);
        }
        self.suppressed += rows.len() as u64;
        self.holdings.forget(&[partition]);
        rows
    }

    /// The record of the step that led here.
    pub fn step(
        &self,
        step: u32,
        performed: Option<Performed>,
        suppressed: Vec<u32>,
    ) -> StepRecord {
        let width = self.attributes.len() as f64;
        let cells = (width * self.table.rows as f64).max(1.0);
        let left = (self.table.rows as f64 - self.suppressed as f64).max(1.0);
        let lost = self.lost.iter().sum::<f64>() + width * self.suppressed as f64;
        let suppressed_so_far = self.suppressed as f64;
        let rows = (self.table.rows as f64).max(1.0);
        let columns = self.attributes.iter().zip(&self.lost);
        let ncp_by_column = columns.map(|(attribute, lost)| {
            let name = attribute.column.name.to_string();
            (name, (lost + suppressed_so_far) / rows)
        });
        let (smallest_group, confidence) = self.partitions.extremes();
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
            greatest_confidence: (self.requirement.sensitive_values > 0).then_some(confidence),
            dr: self.partitions.squares() as f64 / (left * left),
            ncp: lost / cells,
            ncp_by_column: ncp_by_column.collect(),
            suppressed_rows: self.suppressed,
        };
        StepRecord { item, suppressed }
    }
}
