//! Top-down specialization from any valid cut, by weighted scores.
//!
//! With all weights 1 this is the greedy search. A random weight for each column changes which
//! column the adversary's knowledge is spent on, which is what greedy runs decide too early.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::super::attribute::Concept;
use super::cut_state::CutState;
use super::dimension::SplitKey;
use super::draws::Draws;
use super::space::Space;
use super::trial::{Refusal, Trial};

/// Gains from here on are rounding errors.
const LEAST_GAIN: f64 = -1e-12;

/// Points of an interval that are tried.
const POINTS_TRIED: usize = 10;

/// How splits are scored.
pub(super) struct Weights {
    /// By attribute, the factor of the gain.
    attributes: Vec<f64>,
    /// The spread of a random factor of each split.
    noise: f64,
    /// The power of the suppressed rows by which the gain is divided.
    suppression: f64,
}

impl Weights {
    /// All 1.
    pub(super) fn equal(width: usize) -> Self {
        Self {
            attributes: vec![1.0; width],
            noise: 0.0,
            suppression: 1.0,
        }
    }

    /// Drawn at random.
    pub(super) fn draw(width: usize, draws: &mut Draws) -> Self {
        let spread = [0.3, 0.8, 1.5][draws.below(3)];
        Self {
            attributes: (0..width)
                .map(|_| (spread * draws.normal()).exp())
                .collect(),
            noise: [0.0, 0.2, 0.5][draws.below(3)],
            suppression: [0.0, 0.5, 1.0, 1.0][draws.below(4)],
        }
    }
}

/// A split that may be performed.
struct Candidate {
    score: f64,
    factor: f64,
    /// Splits performed when the score was computed.
    scored_at: usize,
    /// The order of candidates with equal scores.
    number: usize,
    attribute: usize,
    concept: Concept,
    point: Option<u32>,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(other.number.cmp(&self.number))
    }
}

/// Splits values of the cut, best score first, until no tried split is valid.
pub(super) fn rebuild(
    space: &Space<'_>,
    state: &mut CutState,
    trial: &mut Trial,
    weights: &Weights,
    draws: &mut Draws,
) {
    let mut open = Open {
        space,
        weights,
        heap: BinaryHeap::new(),
        pushed: 0,
    };
    for attribute in 0..space.width() {
        for concept in state.cuts[attribute].clone() {
            open.push(attribute, &concept, draws);
        }
    }
    let mut performed = 0;
    while let Some(mut candidate) = open.heap.pop() {
        if space.observer.must_stop() {
            return;
        }
        let Candidate {
            attribute, point, ..
        } = candidate;
        let key = SplitKey::new(attribute, &candidate.concept, point);
        if state.refused.contains_key(&key) || state.place(attribute, &candidate.concept).is_none()
        {
            continue;
        }
        let dimension = &space.dimensions[attribute];
        let Some(children) = dimension.children(&candidate.concept, point) else {
            continue;
        };
        trial.count(space, state, attribute, (&candidate.concept, children));
        if !space.has_fixed_gains() && candidate.scored_at != performed {
            let suppressed = state.tally.kept - trial.tally().kept;
            let gain = state.loss(space) - space.measure.loss(trial.tally());
            if gain < LEAST_GAIN || (suppressed > 0 && gain <= 0.0) {
                continue;
            }
            let rows = 1.0 + suppressed as f64;
            candidate.score = gain * candidate.factor / rows.powf(weights.suppression);
            candidate.scored_at = performed;
            if open
                .heap
                .peek()
                .is_some_and(|next| next.score > candidate.score)
            {
                open.heap.push(candidate);
                continue;
            }
        }
        match trial.check(space, state) {
            Ok(()) => {
                state.perform(space, trial);
                performed += 1;
                for child in trial.children() {
                    open.push(attribute, child, draws);
                }
            }
            Err(Refusal::Invalid(attributes)) => {
                state.refused.insert(key, attributes);
            }
            Err(Refusal::Stopped) => return,
        }
    }
}

/// The candidates, best first.
struct Open<'s, 'a> {
    space: &'s Space<'a>,
    weights: &'s Weights,
    heap: BinaryHeap<Candidate>,
    pushed: usize,
}

impl Open<'_, '_> {
    /// Adds the splits of a value.
    fn push(&mut self, attribute: usize, concept: &Concept, draws: &mut Draws) {
        let dimension = &self.space.dimensions[attribute];
        let points = dimension.points_in(concept);
        let tried: Vec<Option<u32>> = if points.is_empty() {
            vec![None]
        } else if points.len() <= POINTS_TRIED {
            points.iter().map(|&point| Some(point)).collect()
        } else {
            let best = points.iter().filter_map(|&point| {
                let children = dimension.children(concept, Some(point))?;
                Some((dimension.ncp_gain(concept, &children), point))
            });
            let best = best.max_by(|one, other| one.0.total_cmp(&other.0));
            let mut tried: Vec<u32> = best.into_iter().map(|(_, point)| point).collect();
            tried.push(points[points.len() / 2]);
            tried.extend((2..POINTS_TRIED).map(|_| points[draws.below(points.len())]));
            tried.sort_unstable();
            tried.dedup();
            tried.into_iter().map(Some).collect()
        };
        for point in tried {
            let Some(children) = dimension.children(concept, point) else {
                continue;
            };
            let noise = match self.weights.noise {
                0.0 => 1.0,
                spread => (spread * draws.normal()).exp(),
            };
            let factor = self.weights.attributes[attribute] * noise;
            let score = match self.space.has_fixed_gains() {
                true => dimension.ncp_gain(concept, &children) * factor,
                // Scored when it is the best one.
                false => f64::INFINITY,
            };
            self.pushed += 1;
            self.heap.push(Candidate {
                score,
                factor,
                scored_at: usize::MAX,
                number: self.pushed,
                attribute,
                concept: concept.clone(),
                point,
            });
        }
    }
}
