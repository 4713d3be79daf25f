//! Ruin and recreate (Schrimpf et al., J. Comput. Phys. 159, 2000) over valid cuts, with the
//! acceptance of simulated annealing.
//!
//! An iteration of a [`Chain`] generalizes one to three columns, partly or to the top, and specializes again by
//! weighted scores ([`rebuild`]). Every cut on the way is valid, since generalizing keeps a table valid. With
//! all [`Weights`] 1, a rebuild is the greedy search. A random weight for each column changes which columns the
//! adversary's knowledge is spent on, which greedy runs decide too early.
//!
//! The random choices ([`SplitMix64`]) decide which cuts are tried, never what is released. So a fast generator
//! is enough.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use pais_core::split_mix::SplitMix64;

use super::super::attribute::Concept;
use super::cut_state::{AttributeCut, CutState, Refusal, Trial};
use super::space::{Space, ValueSplit};

/// Iterations until the temperature is high again.
const CYCLE: usize = 120;

/// The highest temperature, as a fraction of the loss.
const HIGHEST: f64 = 0.01;

/// One sequence of cuts.
pub(super) struct Chain {
    draws: SplitMix64,
    trial: Trial,
    iterations: usize,
    current: CutState,
    current_loss: f64,
    /// The best cut so far.
    pub(super) best: CutState,
    /// Its loss.
    pub(super) best_loss: f64,
}

impl Chain {
    /// Starts at a valid cut.
    pub(super) fn new(space: &Space<'_>, start: CutState, draws: SplitMix64) -> Self {
        let loss = start.loss(space);
        Self {
            draws,
            trial: Trial::default(),
            iterations: 0,
            best: start.clone(),
            best_loss: loss,
            current: start,
            current_loss: loss,
        }
    }

    /// Continues from another cut if it is better than this chain's best cut.
    pub(super) fn adopt(&mut self, other: &CutState, loss: f64) {
        if loss < self.best_loss {
            self.best = other.clone();
            self.best_loss = loss;
            self.current = other.clone();
            self.current_loss = loss;
        }
    }

    /// Specializes the start as far as it goes, without weights.
    pub(super) fn finish_start(&mut self, space: &Space<'_>) {
        let weights = Weights::equal(space.width());
        self.rebuild(space, self.current.clone(), &weights, 0.0);
    }

    /// Runs a number of iterations, fewer when the observer stops them.
    pub(super) fn run(&mut self, space: &Space<'_>, iterations: usize) {
        for _ in 0..iterations {
            if space.observer.must_stop() {
                return;
            }
            let at = (self.iterations % CYCLE) as f64 / CYCLE as f64;
            self.iterations += 1;
            let mut state = self.current.clone();
            let changes = self.ruin(space);
            if changes.is_empty() {
                // The topmost table can only be specialized.
                self.finish_start(space);
                continue;
            }
            state.generalize(space, changes);
            let weights = Weights::draw(space.width(), &mut self.draws);
            let temperature = HIGHEST * (1.0 - at).powi(2) * self.best_loss;
            self.rebuild(space, state, &weights, temperature);
        }
    }

    /// Specializes a cut as far as it goes, and continues from there unless it is too much worse.
    fn rebuild(
        &mut self,
        space: &Space<'_>,
        mut state: CutState,
        weights: &Weights,
        temperature: f64,
    ) {
        let (trial, draws) = (&mut self.trial, &mut self.draws);
        rebuild(space, &mut state, trial, weights, draws);
        let loss = state.loss(space);
        let worse_by = loss - self.current_loss;
        let chance = -(1.0 - self.draws.fraction()).ln();
        if worse_by > temperature * chance {
            return;
        }
        if loss < self.best_loss - 1e-12 {
            self.best = state.clone();
            self.best_loss = loss;
        }
        self.current = state;
        self.current_loss = loss;
    }

    /// The cuts that replace those of some attributes.
    fn ruin(&mut self, space: &Space<'_>) -> Vec<AttributeCut> {
        let below_top = |&at: &usize| !self.current.is_topmost(space, at);
        let mut below_top: Vec<usize> = (0..space.width()).filter(below_top).collect();
        let count = 1 + self.draws.below(3);
        let mut changes = Vec::new();
        for _ in 0..count.min(below_top.len()) {
            let attribute = below_top.swap_remove(self.draws.below(below_top.len()));
            let cut = match self.draws.below(3) {
                0 => vec![space.dimensions[attribute].topmost()],
                _ => self.ruin_part(space, attribute),
            };
            changes.push(AttributeCut { attribute, cut });
        }
        changes
    }

    /// Generalizes some values of an attribute.
    fn ruin_part(&mut self, space: &Space<'_>, attribute: usize) -> Vec<Concept> {
        let dimension = &space.dimensions[attribute];
        let cut = &self.current.cuts[attribute];
        let chosen = &cut[self.draws.below(cut.len())];
        if let Some(above) = dimension.ancestor(chosen, 1 + self.draws.below(2)) {
            let is_outside = |concept: &&Concept| {
                concept.codes.end <= above.codes.start || above.codes.end <= concept.codes.start
            };
            let mut new: Vec<Concept> = cut.iter().filter(is_outside).cloned().collect();
            new.push(above);
            return new;
        }
        let mut points: Vec<u32> = cut.iter().map(|concept| concept.codes.start).collect();
        points.sort_unstable();
        points.retain(|point| dimension.points.binary_search(point).is_ok());
        let first = self.draws.below(points.len());
        let count = 1 + self.draws.below(points.len() - first);
        points.drain(first..first + count);
        dimension.intervals(&points)
    }
}

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
    pub(super) fn draw(width: usize, draws: &mut SplitMix64) -> Self {
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
struct SplitCandidate {
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

impl PartialEq for SplitCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SplitCandidate {}

impl PartialOrd for SplitCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SplitCandidate {
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
    draws: &mut SplitMix64,
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
        let SplitCandidate {
            attribute, point, ..
        } = candidate;
        let key = ValueSplit::new(attribute, &candidate.concept, point);
        if state.refused.contains_key(&key) || state.place(attribute, &candidate.concept).is_none()
        {
            continue;
        }
        let dimension = &space.dimensions[attribute];
        let Some(children) = dimension.children(&candidate.concept, point) else {
            continue;
        };
        trial.count(space, state, attribute, &candidate.concept, children);
        if !space.has_fixed_gains() && candidate.scored_at != performed {
            let suppressed = state.tally.kept - trial.tally.kept;
            let gain = state.loss(space) - space.measure.loss(trial.tally);
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
                for child in &trial.children {
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
    heap: BinaryHeap<SplitCandidate>,
    pushed: usize,
}

impl Open<'_, '_> {
    /// Adds the splits of a value.
    fn push(&mut self, attribute: usize, concept: &Concept, draws: &mut SplitMix64) {
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
            let score = if self.space.has_fixed_gains() {
                dimension.ncp_gain(concept, &children) * factor
            } else {
                // Scored when it is the best one.
                f64::INFINITY
            };
            self.pushed += 1;
            self.heap.push(SplitCandidate {
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

/// The choices of one chain.
pub(super) fn choices(seed: u64, chain: u64) -> SplitMix64 {
    let mut draws = SplitMix64(seed ^ chain.wrapping_mul(0xA24B_AED4_963E_E407));
    draws.next_u64();
    draws
}

#[cfg(test)]
mod tests {
    use super::choices;

    #[test]
    fn chains_draw_different_numbers_and_equal_seeds_equal_ones() {
        let drawn = |seed, chain| {
            let mut draws = choices(seed, chain);
            (0..20).map(|_| draws.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7, 0), drawn(7, 0));
        assert_ne!(drawn(7, 0), drawn(7, 1));
        assert_ne!(drawn(7, 0), drawn(8, 0));
        assert!(drawn(7, 0).iter().all(|&drawn| drawn < 1000));
    }
}
