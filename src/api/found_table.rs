//! The table that a job found, after a step: replayed for a release, and for the report that the release would
//! have.

use pais_anonymize::{AnonymizationRun, JobPlan, SearchOutcome, StepRecord};
use pais_core::definition::{CombinationQuery, JobDefinition, Sweep};

use crate::db::datasets::StoredDataset;
use crate::db::jobs::{self, JobStatus, StoredJob};
use crate::db::runs::{self, SweepRow};
use crate::db::seal::DataKey;
use crate::db::submissions::{self, Which};
use crate::engine::records::{SweepItem, SweepStatus};
use crate::engine::table_work::TableWork;
use crate::engine::{WorkError, attempt, locations};
use crate::problem::{Code, Problem};

use super::datasets::find;
use super::error::ApiError;
use super::raw_rows::RawRows;
use super::state::CallerApp;

/// A table that can be replayed from the recorded steps of a job.
pub(super) struct FoundTable {
    pub(super) job: StoredJob,
    pub(super) dataset: StoredDataset,
    /// The requested job; for a sweep, the one combination.
    pub(super) definition: JobDefinition,
    key: DataKey,
    steps: Vec<StepRecord>,
    /// After which of them; the last when `None`.
    step: Option<u32>,
}

/// A run that has found its table again.
pub(super) struct ReplayedTable {
    pub(super) run: AnonymizationRun,
    pub(super) found: SearchOutcome,
    /// The step of the table; the last when `None`.
    pub(super) step: Option<u32>,
    /// Of the dataset.
    pub(super) key: DataKey,
}

impl FoundTable {
    /// Finds the table of a job that has succeeded.
    ///
    /// # Errors
    /// `job_not_succeeded`; `dataset_deleted`; `conflict` where the columns of the dataset have changed since; `no_such_step`; `invalid_job` for no combination of the sweep.
    pub(super) async fn of(
        app: &CallerApp,
        job: StoredJob,
        combination: CombinationQuery,
        step: Option<i64>,
    ) -> Result<Self, ApiError> {
        if job.status != JobStatus::Succeeded {
            let detail = format!(
                "the job is {}; only a job that has succeeded has a table",
                job.status.as_str()
            );
            return Err(ApiError::new(Code::JobNotSucceeded, detail));
        }
        let dataset = find(app, app.caller.organization, job.dataset_id).await?;
        let dataset = dataset.ok_or_else(dataset_deleted)?;
        if !jobs::has_its_columns(&app.db, job.id).await? {
            let detail = "the columns of the dataset have changed since the job ran; run it again";
            return Err(ApiError::new(Code::Conflict, detail));
        }
        let step = step.map(u32::try_from).transpose();
        let step =
            step.map_err(|_| no_such_step("`step` must be a whole number; the first is 0"))?;
        let stored = attempt::stored_job(&job.definition)?;
        let sweep = Sweep::new(&stored)?;
        let run = sweep.find(combination)?;
        let definition = attempt::combination(&stored, &sweep, run)?;
        let run = run as u32;
        // The one row of a sweep, beginning with this combination; none for a job without lists.
        let combinations = runs::sweep(&app.db, job.id, run, 1).await?;
        let failed =
            |row: &SweepRow<SweepItem>| row.run == run && row.item.status == SweepStatus::Failed;
        if combinations.iter().any(failed) {
            let detail = "no generalization meets this combination; `GET /v1/jobs/{id}/sweep` has the reason";
            return Err(ApiError::new(Code::JobNotSucceeded, detail));
        }
        let key = dataset.open_key(&app.keys)?;
        let steps = runs::step_records(&app.db, &key, job.id, run).await?;
        check_step(&steps, step)?;
        Ok(Self {
            job,
            dataset,
            definition,
            key,
            steps,
            step,
        })
    }

    /// Reads the rows of the job, replays its steps, and runs `work` on the result, on a thread of its own.
    ///
    /// # Errors
    /// `submission_replaced`; `location_changed`; those of the rows and of the run; those of the work.
    pub(super) async fn replay<T: Send + 'static>(
        self,
        app: &CallerApp,
        work: impl FnOnce(ReplayedTable, &TableWork) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Self {
            job,
            dataset,
            definition,
            key,
            steps,
            step,
        } = self;
        let job_to_run = definition.parse()?;
        let plan = JobPlan::new(&dataset.schema, &job_to_run)?;
        // Refused before its rows are read; a release is checked again when it is stored.
        let mut connection = app.db.connection().await?;
        submissions::lock_current(&mut connection, &job.submissions).await?;
        drop(connection);
        let organization = app.caller.organization;
        locations::check_unchanged(&app.db, &app.storage, organization, &dataset).await?;
        let which = Which::Listed(&job.submissions);
        let rows = RawRows {
            which,
            size: submissions::size(&app.db, dataset.id, which).await?,
            plans: &[plan],
            extra_bytes: 0,
        };
        let loaded = rows.load(app, dataset).await?;
        let done = loaded.work(move |schema, table, observer| {
            let run = AnonymizationRun::new(schema, job_to_run, table, observer)?;
            let run = run.with_order_key(key.order_key());
            let found = run.search_recorded(steps, observer)?;
            let replayed = ReplayedTable {
                run,
                found,
                step,
                key,
            };
            work(replayed, observer)
        });
        done.await
    }
}

fn check_step(steps: &[StepRecord], step: Option<u32>) -> Result<(), Problem> {
    let Some(step) = step else { return Ok(()) };
    if steps.iter().any(|record| record.item.step == step) {
        return Ok(());
    }
    Err(match steps.last() {
        Some(last) => no_such_step(&format!(
            "`step` must be one of the job's, 0 to {}",
            last.item.step
        )),
        None => no_such_step("the job has no steps; leave `step` out"),
    })
}

fn no_such_step(detail: &str) -> Problem {
    Problem::at(Code::NoSuchStep, "/step", detail)
}

pub(super) fn dataset_deleted() -> ApiError {
    ApiError::new(
        Code::DatasetDeleted,
        "the job's dataset, or a submission of it, was deleted with its rows; only earlier releases remain",
    )
}
