//! Ruin and recreate (Schrimpf et al., J. Comput. Phys. 159, 2000) over valid cuts, with the
//! acceptance of simulated annealing.
//!
//! An iteration generalizes one to three columns, in part or to the top, and specializes again
//! with random weights. Every cut on the way is valid, since generalizing keeps a table valid.

use super::super::attribute::Concept;
use super::cut_state::CutState;
use super::draws::Draws;
use super::rebuild::{Weights, rebuild};
use super::space::Space;
use super::trial::Trial;

/// Iterations until the temperature is high again.
const CYCLE: usize = 120;

/// The highest temperature, as a fraction of the loss.
const HIGHEST: f64 = 0.01;

/// One sequence of cuts.
pub(super) struct Chain {
    draws: Draws,
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
    pub(super) fn new(space: &Space<'_>, start: CutState, draws: Draws) -> Self {
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

    /// Continues from another cut if it is better than the best one of this chain.
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
        let mut state = self.current.clone();
        rebuild(
            space,
            &mut state,
            &mut self.trial,
            &weights,
            &mut self.draws,
        );
        self.accept(space, state, 0.0);
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
                // The topmost table: there is only the way down.
                self.finish_start(space);
                continue;
            }
            state.generalize(space, changes);
            let weights = Weights::draw(space.width(), &mut self.draws);
            rebuild(
                space,
                &mut state,
                &mut self.trial,
                &weights,
                &mut self.draws,
            );
            let temperature = HIGHEST * (1.0 - at).powi(2) * self.best_loss;
            self.accept(space, state, temperature);
        }
    }

    fn accept(&mut self, space: &Space<'_>, state: CutState, temperature: f64) {
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
    fn ruin(&mut self, space: &Space<'_>) -> Vec<(usize, Vec<Concept>)> {
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
            changes.push((attribute, cut));
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
