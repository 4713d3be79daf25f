//! Releases: the release of a job's table after a step, listing, and access by recipients.

use pais_anonymize::{AnonymizationRun, JobPlan, StepRecord};
use pais_core::definition::{CombinationQuery, JobDefinition, Sweep};
use serde_json::Value;

use crate::api::page::{Page, PageRequest};
use crate::db::audit::Action;
use crate::db::datasets::{self, DatasetState, StoredDataset};
use crate::db::jobs::{self, StoredJob};
use crate::db::releases::{self, NewRelease, ReleaseCreation, StoredRelease, StoredTable, Viewer};
use crate::db::{JobStatus, StoreError, policies, runs, submissions, token_validity};
use crate::engine::records::{self, SweepStatus};
use crate::engine::release_packing::{self, ReleaseOrigin};
use crate::engine::{attempt, load_rows, on_thread};
use crate::ids::{JobId, OrganizationId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::{Caller, Role};

use super::{ApiError, App, report_view, text};
use crate::engine::table_work::TableKind;

/// A release to be made.
#[derive(Clone, Debug)]
pub struct ReleaseRequest {
    /// A job that has succeeded.
    pub job: JobId,
    /// The combination, if the job is a sweep.
    pub combination: CombinationQuery,
    /// The number of a step of the job; `None` for the last.
    pub step: Option<i64>,
    /// A display name.
    pub name: Option<String>,
}

/// The table of a job that is to be released.
struct TableToRelease {
    /// The job with the parameters of the combination.
    definition: JobDefinition,
    /// The number of the combination.
    run: u32,
    step: Option<u32>,
    name: Option<String>,
}

impl App {
    /// Makes a release of a job's table.
    ///
    /// # Errors
    /// `not_found`; `job_not_succeeded`; `dataset_deleted`; `no_such_step`; `invalid_job` if the
    /// request names no combination of the sweep; `invalid_name`; `busy`; when the database fails.
    pub async fn create_release(
        &self,
        caller: Caller,
        request: ReleaseRequest,
    ) -> Result<StoredRelease, ApiError> {
        self.storage.check()?;
        let name = request.name.as_deref().map(text::name).transpose()?;
        let job = jobs::load(&self.db, &self.keys, caller.organization, request.job).await?;
        let job = job.ok_or_else(|| ApiError::not_found_at("/job_id"))?;
        if job.status != JobStatus::Succeeded {
            let detail = format!(
                "the job is {}; only a job that has succeeded has a table to release",
                job.status.as_str()
            );
            return Err(ApiError::new(Code::JobNotSucceeded, detail));
        }
        let organization = caller.organization;
        let dataset = match datasets::find_any(&self.db, organization, job.dataset).await? {
            Some(DatasetState::Live(dataset)) => *dataset,
            Some(DatasetState::Deleted) | None => return Err(dataset_deleted()),
        };
        let step = request.step.map(u32::try_from).transpose();
        let step = step.map_err(|_| {
            Problem::at(
                Code::NoSuchStep,
                "/step",
                "expected the number of a step; the first is 0",
            )
        })?;
        let stored = attempt::stored_job(&job.definition)?;
        let sweep = Sweep::new(&stored)?;
        let run = sweep.find(request.combination)?;
        // The policy may be stricter than when the job was created.
        let policy = policies::load(&self.db, caller.organization).await?;
        let allowed = policy.check_job(
            &attempt::combination(&stored, &sweep, run)?,
            &dataset.schema,
        );
        let allowed =
            allowed.map_err(|problem| Problem::at(problem.code, "/job_id", problem.detail).into());
        let release = (Action::ReleaseCreated, request.job.0);
        self.recorded(caller, release, allowed).await?;
        let table = TableToRelease {
            definition: attempt::combination(&stored, &sweep, run)?,
            run: run as u32,
            step,
            name,
        };
        let release = self.prepare_release(caller, &job, dataset, table).await?;
        match releases::create(&self.db, &release).await? {
            ReleaseCreation::Stored => {}
            ReleaseCreation::NoDataset => return Err(dataset_deleted()),
            ReleaseCreation::TokenEnded => return Err(ApiError::unauthenticated()),
        }
        self.get_release(caller, release.id).await
    }

    /// Replays the recorded steps up to the requested one, verifies the table, and packs it.
    async fn prepare_release(
        &self,
        caller: Caller,
        job: &StoredJob,
        dataset: StoredDataset,
        table: TableToRelease,
    ) -> Result<NewRelease, ApiError> {
        let TableToRelease {
            definition,
            run,
            step,
            name,
        } = table;
        let store = &self.db;
        let key = load_rows::open_key(&self.keys, &dataset)?;
        let steps = runs::step_records(store, &key, job.id, run).await?;
        let steps = steps.into_iter().map(records::step_record);
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let plan = JobPlan::new(&dataset.schema, &definition)?;
        // The one row of a sweep from this combination on; none for a job without lists.
        let combination = runs::sweep(store, job.id, run, 1).await?;
        let combination = combination.into_iter().find(|(number, _)| *number == run);
        let combination = combination.map(|(_, item)| records::sweep_item(item));
        let failed = combination
            .transpose()?
            .is_some_and(|item| item.status == SweepStatus::Failed);
        if failed || (steps.is_empty() && plan.has_steps()) {
            let detail = "no generalization meets this combination; `GET /v1/jobs/{id}/sweep` has the reason";
            return Err(ApiError::new(Code::JobNotSucceeded, detail));
        }
        check_step(&steps, step)?;
        let origin = ReleaseOrigin {
            organization: caller.organization,
            holder: load_rows::holder(store, caller.organization).await?,
            job: job.id,
            dataset: dataset.id,
            definition: dataset.definition.clone(),
            name,
            by: caller.into(),
            created_at: store.now(),
        };
        let ids = Some(job.submissions.as_slice());
        let size = submissions::size(store, dataset.id, ids).await?;
        let plans = [plan];
        let needed = self
            .limits
            .table_bytes(&self.memory, &dataset.schema, &plans, size)?;
        let organization = caller.organization;
        let guard = self.tables.begin(TableKind::Raw, organization, needed);
        let guard = guard.await?;
        let work = guard.share();
        let table = load_rows::load(store, &self.keys, &dataset, ids, work.clone()).await;
        let table = table?;
        let schema = dataset.schema;
        let order_key = key.order_key();
        let release = on_thread(move || {
            let run = AnonymizationRun::new(schema, definition.clone(), table, &*work)?;
            let run = run.with_order_key(order_key);
            let release = run.release(&steps, step, &*work)?;
            let schema = run.schema();
            drop(run);
            release_packing::pack(release, origin, &definition, &schema, &key)
        });
        let release = release.await?;
        drop(guard);
        Ok(release)
    }

    /// The releases that the caller may see, oldest first: a holder's own, or those granted to a
    /// recipient.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_releases(
        &self,
        caller: Caller,
        page: PageRequest,
    ) -> Result<Page<StoredRelease>, ApiError> {
        let limit = page.rows_to_query();
        let rows = releases::list(&self.db, viewer(caller), page.after, limit).await?;
        Ok(Page::new(rows, page, |release| release.id.0))
    }

    /// A release that the caller may see.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_release(
        &self,
        caller: Caller,
        id: ReleaseId,
    ) -> Result<StoredRelease, ApiError> {
        let release = releases::load(&self.db, viewer(caller), id).await?;
        release.ok_or_else(ApiError::not_found)
    }

    /// The holder and the report of a release that the caller may see. What needs raw rows is for
    /// the holder only.
    ///
    /// # Errors
    /// `not_found`; `withdrawn`; when the database fails.
    pub async fn get_report(
        &self,
        caller: Caller,
        id: ReleaseId,
    ) -> Result<(OrganizationId, Value), ApiError> {
        let viewer = viewer(caller);
        let stored = releases::report(&self.db, viewer, id).await?;
        let stored = stored.ok_or_else(ApiError::not_found)?;
        if stored.is_withdrawn {
            return Err(ApiError::withdrawn());
        }
        let owner = stored.owner;
        Ok((owner, report_view::shown(stored, viewer)?))
    }

    /// A table of a release that the caller may see, without its rows.
    ///
    /// # Errors
    /// `not_found`; `withdrawn`; when the database fails.
    pub async fn get_table(
        &self,
        caller: Caller,
        id: ReleaseId,
        name: &str,
    ) -> Result<StoredTable, ApiError> {
        // PostgreSQL rejects NUL in text, and no table's name contains it.
        if name.contains('\0') {
            return Err(ApiError::not_found());
        }
        let table = releases::table(&self.db, viewer(caller), id, name).await?;
        let table = table.ok_or_else(ApiError::not_found)?;
        if table.is_withdrawn {
            Err(ApiError::withdrawn())
        } else {
            Ok(table)
        }
    }

    /// Whether a caller who has begun to read a table of a release may still read it: its token works,
    /// a recipient still has a grant, and the release is not withdrawn. `false` if the database fails.
    pub async fn may_still_read(&self, caller: Caller, id: ReleaseId, name: &str) -> bool {
        let permitted = async {
            let is_valid = token_validity::is_valid(&self.db, caller.token).await?;
            let table = releases::table(&self.db, viewer(caller), id, name).await?;
            Ok::<_, StoreError>(is_valid && table.is_some_and(|table| !table.is_withdrawn))
        };
        permitted.await.unwrap_or_else(|error| {
            tracing::warn!(
                release = %id,
                error = &error as &dyn std::error::Error,
                "a download ends because its permission could not be checked"
            );
            false
        })
    }

    /// Records in the audit logs of the caller and of the holder that a part of a release was
    /// fetched: a table, `report` or `package`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn record_fetch(
        &self,
        caller: Caller,
        owner: OrganizationId,
        id: ReleaseId,
        part: &str,
    ) -> Result<(), ApiError> {
        Ok(releases::record_fetch(&self.db, caller, owner, id, part).await?)
    }
}

/// As whom a caller reads releases.
fn viewer(caller: Caller) -> Viewer {
    match caller.role {
        Role::Holder => Viewer::Holder(caller.organization),
        Role::Admin | Role::Recipient | Role::Auditor => Viewer::Recipient(caller.organization),
    }
}

fn check_step(steps: &[StepRecord], step: Option<u32>) -> Result<(), Problem> {
    let Some(step) = step else { return Ok(()) };
    if steps.iter().any(|record| record.item.step == step) {
        return Ok(());
    }
    let detail = match steps.last() {
        Some(last) => format!("the job has steps 0 to {}", last.item.step),
        None => "the job has no steps; leave `step` out".to_owned(),
    };
    Err(Problem::at(Code::NoSuchStep, "/step", detail))
}

fn dataset_deleted() -> ApiError {
    ApiError::new(
        Code::DatasetDeleted,
        "the job's dataset was deleted with its rows; only earlier releases remain",
    )
}
