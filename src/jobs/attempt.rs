//! What an attempt at a job does on its thread: one search and perhaps its release, or the
//! searches of a sweep.

use std::time::Instant;

use serde_json::Value;

use crate::domain::sweep::Sweep;
use crate::domain::{Code, JobDefinition, JobId};
use crate::engine::sweep::Part;
use crate::engine::{Observer, Phase, Prepared, StepRecord, SweepItem};
use crate::store::StoreError;
use crate::store::datasets::StoredDataset;
use crate::store::jobs::SealedStep;
use crate::store::releases::NewRelease;
use crate::store::seal::DataKey;
use crate::table::Table;

use super::Failure;
use super::finished::{self, Origin};

/// What a run leaves behind.
#[derive(Default)]
pub(super) struct Results {
    /// Steps of every run.
    pub(super) steps: Vec<SealedStep>,
    /// What the combinations came to, where the job is a sweep.
    pub(super) sweep: Vec<SweepItem>,
    /// The release that was asked for.
    pub(super) release: Option<NewRelease>,
}

/// A job under one of its combinations.
///
/// # Errors
/// When what is stored is no job.
pub fn under(definition: &Value, sweep: &Sweep, run: usize) -> Result<JobDefinition, StoreError> {
    let damaged = || StoreError::Damaged { what: "a job" };
    let combination = sweep.combinations.get(run).ok_or_else(damaged)?;
    serde_json::from_value(combination.apply(definition)).map_err(|_| damaged())
}

/// Searches, verifies and packs; writes nothing.
pub(super) fn run(
    definition: &Value,
    dataset: &StoredDataset,
    table: Table,
    key: &DataKey,
    origin: Origin,
    observer: &dyn Observer,
) -> Result<Results, Failure> {
    let sweep = Sweep::of(definition)?;
    let job = under(definition, &sweep, 0)?;
    let id = origin.job;
    let wants_release = job.release.unwrap_or(false);
    let prepared = Prepared::new(dataset.schema.clone(), job, table, observer)?;
    if sweep.is_sweep {
        return run_sweep(definition, &sweep, &prepared, key, id, observer);
    }
    let steps = prepared.run(observer)?;
    let finished = match wants_release {
        true => Some(prepared.release(&steps, None, observer)?),
        false => None,
    };
    drop(prepared);
    let steps = seal(key, id, 0, &steps)?;
    observer.progress(Phase::Writing, 0.5);
    let release = finished.map(|finished| finished::pack(finished, origin));
    Ok(Results {
        steps,
        sweep: Vec::new(),
        release: release.transpose()?,
    })
}

/// One search after another over the same encoded rows: each has all threads, and the memory of
/// one is enough for all.
fn run_sweep(
    definition: &Value,
    sweep: &Sweep,
    prepared: &Prepared,
    key: &DataKey,
    id: JobId,
    observer: &dyn Observer,
) -> Result<Results, Failure> {
    let mut results = Results::default();
    let count = sweep.combinations.len();
    for (number, combination) in sweep.combinations.iter().enumerate() {
        let prepared = prepared.under(under(definition, sweep, number)?)?;
        let part = Part {
            whole: observer,
            number,
            count,
        };
        let began = Instant::now();
        let outcome = prepared.run(&part);
        let seconds = began.elapsed().as_secs_f64();
        let outcome = match outcome {
            Err(problem) if problem.code != Code::NotAnonymizable => return Err(problem.into()),
            outcome => outcome,
        };
        let item = SweepItem::of(combination, outcome.as_deref(), seconds);
        results.sweep.push(item);
        if let Ok(steps) = &outcome {
            results.steps.extend(seal(key, id, number as u32, steps)?);
        }
    }
    Ok(results)
}

fn seal(
    key: &DataKey,
    job: JobId,
    run: u32,
    steps: &[StepRecord],
) -> Result<Vec<SealedStep>, Failure> {
    let steps = steps
        .iter()
        .map(|step| SealedStep::seal(key, job, run, step));
    let sealed = steps.collect::<Result<_, _>>().map_err(StoreError::from)?;
    Ok(sealed)
}
