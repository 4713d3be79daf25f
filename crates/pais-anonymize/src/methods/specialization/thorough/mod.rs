//! A search beyond the greedy path: for a valid cut with the least loss under a time limit.
//!
//! LKC-privacy is anti-monotone: a cut above a valid one is valid. So the search never leaves the
//! valid cuts: it starts from greedy runs under all objectives, generalizes some columns, and
//! specializes again as far as the requirement allows. A split is checked exactly, on the rows and
//! the qids that it changes. Two chains run at a time with random numbers of their own, and
//! exchange the best cut after a fixed number of iterations, so that the result depends on the
//! seed and not on the threads, unless the time limit ends the search.
//!
//! Suppressed rows: where the adversary knows all columns and no confidence is bounded, a cut
//! suppresses the classes below *K*, and the search weighs these rows itself. Otherwise the rows
//! that the best greedy run suppressed are left out from the topmost table on.
//!
//! Memory, in addition to a greedy search: for *n* rows and *m* quasi-identifiers 4 *m* + 16 bytes
//! per distinct row, and for each of the two chains up to 4 cuts of 4 bytes per distinct row and
//! 4 *m* + 21 bytes per class.

use std::time::{Duration, Instant};

use pais_core::definition::Objective;
use pais_core::parallel;

use super::attribute::Attribute;
use super::search::SpecializationTask;
use super::topmost::Draw;
use crate::error::RunError;
use crate::observer::{Count, Deadline, Observer, Phase};
use crate::step::StepRecord;
use chain::{Chain, choices};
use cut_state::Trial;
use space::{Dimension, Measure, Space, Units};
use starts::Start;

mod chain;
mod cut_state;
mod path;
mod space;
mod starts;

#[cfg(test)]
mod tests;

/// Chains; a fixed number, so that a result does not depend on the machine.
const CHAINS: u64 = 2;

/// Iterations of each chain between two exchanges.
const ROUND: usize = 16;

/// Iterations of each chain without a better cut after which the search ends.
const PATIENCE: usize = 768;

/// Maximum number of counters of sensitive values or classes by distinct row.
const MOST_COUNTERS: usize = 1 << 27;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// The time limit, after which the best cut so far is taken.
    pub(super) limit: Duration,
    /// Maximum number of iterations of each chain.
    pub(super) iterations: usize,
    /// The seed of the random numbers.
    pub(super) seed: u64,
}

/// Searches for the valid cut with the least loss. Returns the steps to it; step 0 is the topmost
/// table. The loss is at most that of a greedy run under any objective that ended in time.
///
/// `draw` is as for [`super::search::search`].
///
/// # Errors
/// When no generalization meets the requirement, or on cancellation.
pub(super) fn search(
    task: SpecializationTask<'_>,
    draw: Option<&mut Draw<'_>>,
    effort: Effort,
) -> Result<Vec<StepRecord>, RunError> {
    let SpecializationTask {
        table,
        requirement,
        settings,
        observer,
        ..
    } = task;
    let began = Instant::now();
    let width = table.quasi_identifiers.len();
    let measure = Measure::new(settings.objective, table.rows, width, table.class.as_ref());
    let greedy = starts::GreedyRuns {
        task,
        measure: &measure,
    };
    let mut starts = greedy.run(draw, began, effort.limit)?;
    let best = (0..starts.len()).min_by(|&a, &b| starts[a].loss.total_cmp(&starts[b].loss));
    let Some(best) = best else {
        return Err(RunError::Cancelled);
    };
    let all_known = requirement.l >= width && !requirement.bounds_confidence();
    let budget = settings.suppression_limit.floor_of(table.rows as u64);
    let suppresses = budget > 0 && all_known;
    let removed = if suppresses || budget == 0 {
        starts[best].steps[0].suppressed.clone()
    } else {
        starts[best].suppressed()
    };
    let mut is_removed = vec![false; table.rows];
    removed
        .iter()
        .for_each(|&row| is_removed[row as usize] = true);
    let dimensions = dimensions(task, &starts, &removed);
    let class = table.class.as_ref();
    let class = class.filter(|_| settings.objective == Objective::Classification);
    let units = Units::new(table, &dimensions, requirement, &is_removed, class);
    let counters = requirement.counted_values.max(units.classes);
    let deadline = Deadline::new(observer, began, Some(effort.limit));
    let mut space = Space {
        dimensions,
        units,
        requirement,
        measure,
        budget: if suppresses {
            budget - removed.len() as u64
        } else {
            0
        },
        observer: &deadline,
    };
    let mut found = None;
    let is_searched = counters.saturating_mul(space.units.count()) <= MOST_COUNTERS;
    if is_searched {
        let usable = if suppresses || budget == 0 {
            0..starts.len()
        } else {
            best..best + 1
        };
        found = run_chains(&space, &starts[usable], began, effort, observer);
    }
    observer.check()?;
    space.observer = observer;
    let mut best = starts.swap_remove(best);
    let has_other_scores = best.objective != settings.objective;
    let target = match found {
        Some((target, loss)) if loss < best.loss - 1e-12 => Some(target),
        _ if has_other_scores && is_searched => Some(best.target),
        _ => None,
    };
    let cancellation = observer.cancellation();
    let steps = target.and_then(|target| {
        path::steps_to(
            &space,
            &target,
            removed,
            &mut Trial::default(),
            cancellation,
        )
    });
    let objective = settings.objective;
    if let Some(found) = steps.and_then(|it| Start::new(table, it, objective, &space.measure))
        && found.loss < best.loss + 1e-9
    {
        observer.counted(Count::StepsDone(found.steps.len() as u64 - 1));
        return Ok(found.steps);
    }
    observer.check()?;
    if has_other_scores {
        best.steps.iter_mut().for_each(|it| it.item.score = None);
    }
    Ok(best.steps)
}

/// The columns at the rows that are not removed.
fn dimensions<'a>(
    task: SpecializationTask<'a>,
    starts: &[Start],
    removed: &[u32],
) -> Vec<Dimension<'a>> {
    let columns = task.table.quasi_identifiers.iter();
    let columns = columns.zip(task.node_ncp).enumerate();
    let dimension = |(at, (column, node_ncp)): (usize, (_, &'a Vec<f64>))| {
        let mut attribute = Attribute::new(column, None, node_ncp);
        for &row in removed {
            attribute.remove_row(row as usize, None);
        }
        let points = starts.iter().flat_map(|start| &start.target.points()[at]);
        let mut points: Vec<u32> = points.copied().collect();
        points.sort_unstable();
        points.dedup();
        Dimension::new(attribute, &points)
    };
    parallel::map(columns, dimension)
}

/// Runs the chains until none finds a better cut, or the effort ends. The best cut and its loss.
fn run_chains(
    space: &Space<'_>,
    starts: &[Start],
    began: Instant,
    effort: Effort,
    observer: &dyn Observer,
) -> Option<(path::Target, f64)> {
    let states = parallel::map(starts, |start| {
        let state = path::state_at(space, &start.target, &mut Trial::default())?;
        Some((state.loss(space), state))
    });
    let mut states: Vec<_> = states.into_iter().flatten().collect();
    states.sort_by(|one, other| one.0.total_cmp(&other.0));
    let chain = |number: u64| {
        let at = (number as usize).min(states.len().checked_sub(1)?);
        let state = states[at].1.clone();
        Some(Chain::new(space, state, choices(effort.seed, number)))
    };
    let mut chains: Vec<Chain> = (0..CHAINS).filter_map(chain).collect();
    drop(states);
    parallel::map(&mut chains, |chain| chain.finish_start(space));
    let mut done = 0;
    let mut improved_at = 0;
    let mut least = f64::INFINITY;
    while done < effort.iterations && done - improved_at < PATIENCE && !space.observer.must_stop() {
        let round = ROUND.min(effort.iterations - done);
        parallel::map(&mut chains, |chain| chain.run(space, round));
        done += round;
        let best = best_chain(&chains)?;
        let (state, loss) = (chains[best].best.clone(), chains[best].best_loss);
        if loss < least {
            least = loss;
            improved_at = done;
        }
        for chain in &mut chains {
            chain.adopt(&state, loss);
        }
        let of_time = began.elapsed().as_secs_f64() / effort.limit.as_secs_f64().max(1e-3);
        let of_patience = (done - improved_at) as f64 / PATIENCE as f64;
        let fraction = of_time
            .max(done as f64 / effort.iterations as f64)
            .max(of_patience / 2.0);
        observer.progress(Phase::Searching, fraction.min(1.0));
    }
    let best = best_chain(&chains)?;
    let target = path::Target::of_state(space, &chains[best].best);
    Some((target, chains[best].best_loss))
}

fn best_chain(chains: &[Chain]) -> Option<usize> {
    (0..chains.len()).min_by(|&a, &b| chains[a].best_loss.total_cmp(&chains[b].best_loss))
}
