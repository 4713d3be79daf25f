//! The work of an attempt at a job on its thread: one search and its release if the job asks for one,
//! or the searches of a sweep. It writes nothing to the database.

use pais_anonymize::{
    AnonymizationRun, Observer, Phase, RecodingComparison, RunError, StepRecord, run_sweep,
};
use pais_core::definition::{JobDefinition, JobRelease, Sweep};
use pais_core::table::Table;
use pais_core::warning::{Warning, WarningCode};
use pais_seal::SecretKey;
use serde_json::Value;

use super::WorkError;
use super::records::{SweepItem, to_json};
use super::release_packing::{self, PackedRelease, ReleaseOrigin};
use super::rendering::RenderedTables;
use crate::db::StoreError;
use crate::db::datasets::StoredDataset;
use crate::db::editions::DecidedEdition;
use crate::db::releases::NewRelease;
use crate::db::runs::SealedStep;
use crate::db::seal::DataKey;
use crate::ids::JobId;
use crate::storage::Storage;

/// The results of a run.
#[derive(Default)]
pub(crate) struct RunResults {
    /// Steps of every combination.
    pub(crate) steps: Vec<SealedStep>,
    /// The results of the combinations, if the job is a sweep.
    pub(crate) sweep: Vec<Value>,
    /// The release that the job requested.
    pub(crate) release: Option<NewRelease>,
    /// Its rendered tables.
    pub(crate) rendered: RenderedTables,
    /// The decision with it, if the job is that of an edition.
    pub(crate) edition: Option<DecidedEdition>,
    /// Warnings about the results, in addition to those known before the search.
    pub(crate) warnings: Vec<Warning>,
}

/// Parses the definition of a stored job, without its executor: its table can be found again without it.
///
/// # Errors
/// When it is damaged.
pub(crate) fn stored_job(definition: &Value) -> Result<JobDefinition, StoreError> {
    Ok(with_executor(definition)?.0)
}

/// Parses the definition of a stored job, and the name of the executor that counts its rows.
///
/// # Errors
/// When it is damaged.
pub(crate) fn with_executor(
    definition: &Value,
) -> Result<(JobDefinition, Option<String>), StoreError> {
    let damaged = |_| StoreError::Damaged("a job");
    let mut job: JobDefinition = serde_json::from_value(definition.clone()).map_err(damaged)?;
    let executor = job.take_executor();
    Ok((job, executor))
}

/// The definition of a job with the parameters of one of its combinations.
///
/// # Errors
/// When the job has no combination of this number.
pub(crate) fn combination(
    job: &JobDefinition,
    sweep: &Sweep,
    number: usize,
) -> Result<JobDefinition, StoreError> {
    let damaged = StoreError::Damaged("a job");
    let combination = sweep.combinations.get(number).ok_or(damaged)?;
    Ok(combination.apply(job))
}

/// Share of the writing phase that is done when the release is packed. The rest is writing it to the
/// database.
pub(crate) const PACKED: f64 = 0.5;

/// A job whose rows are encoded, ready for its searches.
pub(crate) struct PreparedAttempt {
    definition: JobDefinition,
    sweep: Sweep,
    run: AnonymizationRun,
    /// The comparison with the other recoding; `None` if the job has no choice.
    comparison: Option<RecodingComparison>,
}

/// Encodes the rows of a job. `order_key` is that of its dataset.
pub(crate) fn prepare(
    definition: &Value,
    dataset: &StoredDataset,
    table: Table,
    order_key: SecretKey,
    observer: &dyn Observer,
) -> Result<PreparedAttempt, WorkError> {
    let definition = stored_job(definition)?;
    let sweep = Sweep::new(&definition)?;
    let job = combination(&definition, &sweep, 0)?.parse()?;
    let comparison = if sweep.is_sweep {
        None
    } else {
        RecodingComparison::new(&dataset.schema, &job, &table)
    };
    let run = AnonymizationRun::new(dataset.schema.clone(), job, table, observer)?;
    Ok(PreparedAttempt {
        definition,
        sweep,
        run: run.with_order_key(order_key),
        comparison,
    })
}

impl PreparedAttempt {
    /// What the holder should know about the job and its rows.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        self.run.warnings()
    }

    /// Searches, verifies and packs. For a sweep, searches each combination.
    pub(crate) fn run(
        self,
        key: &DataKey,
        origin: ReleaseOrigin,
        storage: &Storage,
        observer: &dyn Observer,
    ) -> Result<RunResults, WorkError> {
        let Self {
            definition,
            sweep,
            run,
            comparison,
        } = self;
        let id = origin.job;
        if sweep.is_sweep {
            return sweep_results(&run, &definition, &sweep, key, id, observer);
        }
        let found = run.search(observer)?;
        let is_wanted = definition
            .release
            .as_ref()
            .is_some_and(JobRelease::is_wanted);
        // The release is packed on this thread, which has the trace of the job.
        let mut compared = Ok(None);
        let release = rayon::in_place_scope(|scope| {
            if let Some(comparison) = comparison {
                scope.spawn(|_| compared = comparison.warning(&run, &found, observer));
            }
            is_wanted
                .then(|| PackedRelease::new(&run, &found, None, storage, observer))
                .transpose()
        });
        let (mut release, compared) = (release?, compared?);
        let rendered = release.as_mut().map(PackedRelease::take_rendered);
        let mut warnings = match &release {
            Some(release) => of_job(release.warnings()),
            None => run.warnings_after(&found),
        };
        warnings.extend(compared);
        drop(run);
        observer.progress(Phase::Writing, 0.0);
        if observer.must_stop() {
            return Err(RunError::Cancelled.into());
        }
        let steps = seal(key, id, 0, found.into_steps(), observer)?;
        let pack = |packed: PackedRelease| {
            let files = match &origin.folder {
                Some(folder) => folder.write(packed.tables(), observer)?,
                None => Vec::new(),
            };
            let release = release_packing::pack(packed, origin, &definition, key)?;
            Ok::<_, WorkError>(NewRelease { files, ..release })
        };
        let release = release.map(pack).transpose()?;
        observer.progress(Phase::Writing, PACKED);
        Ok(RunResults {
            steps,
            sweep: Vec::new(),
            release,
            rendered: rendered.unwrap_or_default(),
            edition: None,
            warnings,
        })
    }
}

/// The warnings of a release that its job gets too. The others are about released rows, and the job
/// has its own about the raw ones.
pub(super) fn of_job(warnings: &[Warning]) -> Vec<Warning> {
    const OF_RUN: [WarningCode; 4] = [
        WarningCode::ColumnAtTop,
        WarningCode::NothingGeneralized,
        WarningCode::ManyRowsSuppressed,
        WarningCode::SuppressedForConfidence,
    ];
    let of_run = warnings.iter().filter(|it| OF_RUN.contains(&it.code));
    of_run.cloned().collect()
}

fn sweep_results(
    run: &AnonymizationRun,
    definition: &JobDefinition,
    sweep: &Sweep,
    key: &DataKey,
    id: JobId,
    observer: &dyn Observer,
) -> Result<RunResults, WorkError> {
    let outcomes = run_sweep(run, definition, sweep, observer)?;
    let mut results = RunResults::default();
    for (number, outcome) in outcomes.into_iter().enumerate() {
        results.sweep.push(to_json(&SweepItem::from(&outcome))?);
        let steps = outcome.steps.unwrap_or_default();
        results
            .steps
            .extend(seal(key, id, number as u32, steps, observer)?);
    }
    Ok(results)
}

pub(super) fn seal(
    key: &DataKey,
    job: JobId,
    run: u32,
    steps: Vec<StepRecord>,
    observer: &dyn Observer,
) -> Result<Vec<SealedStep>, WorkError> {
    let sealed = steps.iter().map(|step| {
        if observer.must_stop() {
            return Err(RunError::Cancelled.into());
        }
        Ok(SealedStep::seal(key, job, run, step)?)
    });
    sealed.collect()
}

#[cfg(test)]
mod tests;
