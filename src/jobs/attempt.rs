//! What an attempt at a job does on its thread: one search and perhaps its release, or the
//! searches of a sweep.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use pais_core::definition::sweep::Sweep;
use crate::problem::Code;
use pais_core::definition::JobDefinition;
use crate::ids::JobId;
use pais_anonymize::sweep::Searches;
use pais_anonymize::{Observer, Phase, Prepared, StepRecord, SweepItem};
use crate::store::StoreError;
use crate::store::datasets::StoredDataset;
use crate::store::jobs::SealedStep;
use crate::store::releases::NewRelease;
use crate::store::seal::DataKey;
use pais_core::table::Table;

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

/// Fraction of the writing phase that packing is; the other one is the database's.
pub(super) const PACKED: f64 = 0.5;

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
    observer.progress(Phase::Writing, 0.0);
    let steps = seal(key, id, 0, &steps)?;
    let release = finished.map(|finished| finished::pack(finished, origin));
    let release = release.transpose()?;
    observer.progress(Phase::Writing, PACKED);
    Ok(Results {
        steps,
        sweep: Vec::new(),
        release,
    })
}

/// Searches of a sweep at a time: where one has nothing to share out among the threads, the other
/// has. A sweep makes no release, whose memory the second search takes.
pub const SEARCHES: usize = 2;

/// What a combination came to, and its steps where it has a table.
type Outcome = (SweepItem, Vec<StepRecord>);

/// The searches of all combinations over the same encoded rows.
fn run_sweep(
    definition: &Value,
    sweep: &Sweep,
    prepared: &Prepared,
    key: &DataKey,
    id: JobId,
    observer: &dyn Observer,
) -> Result<Results, Failure> {
    let count = sweep.combinations.len();
    let next = AtomicUsize::new(0);
    let searches = Searches::new(observer, count);
    let search = |number: usize| -> Result<Outcome, Failure> {
        let prepared = prepared.under(under(definition, sweep, number)?)?;
        let part = searches.part(number);
        let began = Instant::now();
        let outcome = prepared.run(&part);
        let seconds = began.elapsed().as_secs_f64();
        // One that failed is over too.
        part.progress(Phase::Searching, 1.0);
        let outcome = match outcome {
            Err(problem) if problem.code != Code::NotAnonymizable => return Err(problem.into()),
            outcome => outcome,
        };
        let item = SweepItem::of(&sweep.combinations[number], outcome.as_deref(), seconds);
        Ok((item, outcome.unwrap_or_default()))
    };
    let lane = || {
        let numbers = std::iter::from_fn(|| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            (number < count).then_some(number)
        });
        let searched = numbers.map(|number| Ok((number, search(number)?)));
        let searched = searched.collect::<Result<Vec<_>, Failure>>();
        if searched.is_err() {
            // The job has failed: the other lane takes nothing more.
            next.store(count, Ordering::Relaxed);
        }
        searched
    };
    let lanes = thread::scope(|scope| {
        let lanes: Vec<_> = (0..SEARCHES.min(count))
            .map(|_| scope.spawn(lane))
            .collect();
        let joined = lanes.into_iter().map(|lane| lane.join());
        joined
            .map(|lane| lane.unwrap_or(Err(Failure::Panicked)))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut outcomes: Vec<_> = lanes.into_iter().flatten().collect();
    outcomes.sort_unstable_by_key(|(number, _)| *number);
    let mut results = Results::default();
    for (number, (item, steps)) in outcomes {
        results.sweep.push(item);
        results.steps.extend(seal(key, id, number as u32, &steps)?);
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
