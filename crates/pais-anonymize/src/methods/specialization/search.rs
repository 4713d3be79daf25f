//! Algorithm 1: perform the best valid specialization until none is left.
//!
//! LKC-privacy is anti-monotone, so the search is lazy: candidates are ordered by score, only the
//! best one is checked, and an invalid one is dropped for good. Scores summed over partitions are
//! refreshed only when their candidate is the best one, since these scores never increase.

use crate::observer::{Count, Observer, Phase};
use crate::step::StepRecord;
use pais_core::table::EncodedTable;

use super::error::SpecializationError;
use super::requirement::Requirement;
use super::sensitive::SensitiveSlots;
use super::settings::SpecializationSettings;
use super::state::SearchState;
use super::suppression::Suppression;
use super::topmost::{self, Draw};

/// Runs top-down specialization. Returns the steps; step 0 is the topmost table.
///
/// `node_ncp` has, for each quasi-identifier with a taxonomy, the NCP of its nodes. `draw` is given
/// if rows of the topmost table may be suppressed to reach *C*; it returns a random number below
/// the given one.
///
/// # Errors
/// When no generalization meets the requirement, or on cancellation.
pub(super) fn search(
    table: &EncodedTable,
    requirement: &Requirement<'_>,
    settings: SpecializationSettings,
    node_ncp: Vec<Vec<f64>>,
    draw: Option<&mut Draw<'_>>,
    observer: &dyn Observer,
) -> Result<Vec<StepRecord>, SpecializationError> {
    let budget = settings.suppression_limit.floor_of(table.rows as u64);
    let sensitive = SensitiveSlots::new(requirement, table.rows);
    let suppressed = match draw {
        Some(draw) => topmost::suppress(table, requirement, &sensitive, (budget, draw), observer)?,
        None => {
            topmost::check(table, requirement, &sensitive)?;
            Vec::new()
        }
    };
    let topmost = (suppressed.as_slice(), budget);
    let mut state = SearchState::new(table, requirement, settings, sensitive, node_ncp, topmost);
    let mut steps = vec![state.step(0, None, suppressed)];
    let mut decided = 0usize;
    loop {
        observer.counted(Count::StepsDone(steps.len() as u64 - 1));
        if observer.must_stop() {
            return Err(SpecializationError::Cancelled);
        }
        let Some(best) = state.best() else {
            // No candidate is valid: suppress rows within the budget to make one valid.
            let Some((best, suppression)) = state.best_with_suppression(observer) else {
                if observer.must_stop() {
                    return Err(SpecializationError::Cancelled);
                }
                return Ok(steps);
            };
            let split_counts = state.count_split(best);
            let (performed, rows) = state.perform(best, &split_counts, &suppression);
            state.reset_candidates();
            steps.push(state.step(steps.len() as u32, Some(performed), rows));
            continue;
        };
        if state.has_small_child(best) || state.needs_suppression(best) {
            state.reject(best, observer);
        } else {
            let mut split_counts = state.count_split(best);
            if !state.has_current_score(best, steps.len()) {
                state.set_score(best, split_counts.score(), steps.len());
                continue;
            }
            if state.is_valid(best, &mut split_counts, observer) {
                let (performed, rows) = state.perform(best, &split_counts, &Suppression::default());
                steps.push(state.step(steps.len() as u32, Some(performed), rows));
            } else {
                state.reject(best, observer);
            }
        }
        decided += 1;
        let open = state.candidate_count();
        observer.progress(Phase::Searching, decided as f64 / (decided + open) as f64);
    }
}
