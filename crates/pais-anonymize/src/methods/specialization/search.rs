//! Algorithm 1: perform the best valid specialization until none is left.
//!
//! LKC-privacy is anti-monotone, so the search is lazy: candidates stand in the order of their
//! scores, only the one on top is checked, and one that is invalid is dropped for good. Scores
//! summed over partitions are refreshed in the same way, since they only ever sink.

use thiserror::Error;

use pais_core::model::Fraction;
use pais_core::definition::{Objective, SplitRule};
use crate::observer::{Count, Observer, Phase};
use crate::run::StepRecord;
use pais_core::table::EncodedTable;

use super::requirement::Requirement;
use super::sensitive::Sensitive;
use super::state::Run;
use super::suppression::Suppression;
use super::topmost;

/// What a run is led by.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What a specialization is chosen by.
    pub objective: Objective,
    /// How numeric intervals are split.
    pub split: SplitRule,
    /// Largest fraction of rows that may be suppressed.
    pub suppression_limit: Fraction,
}

/// Why a search ended without an anonymous table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// The whole table is smaller than *K*.
    #[error("the table has {rows} rows, fewer than the {k} that `k` asks for")]
    FewerRowsThanK {
        /// Rows of the table.
        rows: u64,
        /// *K*.
        k: u64,
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
    let budget = settings.suppression_limit.floor_of(table.rows as u64);
    let sensitive = Sensitive::new(requirement, table.rows);
    let suppressed = topmost::suppress(table, requirement, &sensitive, budget, observer)?;
    let mut run = Run::new(table, requirement, settings, sensitive, &suppressed, budget);
    let mut steps = vec![run.step(0, None, suppressed)];
    let mut decided = 0usize;
    loop {
        observer.counted(Count::StepsDone(steps.len() as u64 - 1));
        if observer.must_stop() {
            return Err(SearchError::Cancelled);
        }
        let Some(best) = run.best() else {
            // Nothing is valid as it stands: spend what may be suppressed, then look again.
            let Some((best, suppression)) = run.cheapest(observer) else {
                if observer.must_stop() {
                    return Err(SearchError::Cancelled);
                }
                return Ok(steps);
            };
            let weights = run.weigh(best);
            let (performed, rows) = run.perform(best, &weights, &suppression);
            run.reconsider();
            steps.push(run.step(steps.len() as u32, Some(performed), rows));
            continue;
        };
        if run.is_short(best) {
            run.refuse(best, observer);
        } else {
            let weights = run.weigh(best);
            if !run.is_summed(best, steps.len()) {
                run.sum(best, weights.score(), steps.len());
                continue;
            }
            if run.is_valid(&weights, observer) {
                let (performed, rows) = run.perform(best, &weights, &Suppression::default());
                steps.push(run.step(steps.len() as u32, Some(performed), rows));
            } else {
                run.refuse(best, observer);
            }
        }
        decided += 1;
        let open = run.open();
        observer.progress(Phase::Searching, decided as f64 / (decided + open) as f64);
    }
}
