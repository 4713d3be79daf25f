//! Releases: the release of a job's table after a step, listing, and access by recipients.

use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, JobPlan, StepRecord, Unobserved};
use pais_core::definition::{CombinationQuery, JobDefinition, Sweep};
use serde_json::Value;

use crate::ids::{JobId, OrganizationId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::{Caller, Role};
use crate::store::JobStatus;
use crate::store::datasets::{self, DatasetState, StoredDataset};
use crate::store::jobs::{self, StoredJob};
use crate::store::releases::{
    self, NewRelease, ReleaseCreation, StoredRelease, StoredTable, Viewer,
};
use crate::store::runs;
use crate::worker::release_packing::{self, ReleaseOrigin};
use crate::worker::{attempt, load_rows, on_thread, records};

use super::page::{Listing, PageRequest};
use super::table_permits::TableKind;
use super::{Service, ServiceError, report_view, text};

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

impl Service {
    /// Makes a release of a job's table.
    ///
    /// # Errors
    /// `storage_full`; `not_found`; `job_not_succeeded`; `dataset_deleted`; `no_such_step`; `invalid_job` if the
    /// request names no combination of the sweep; `invalid_name`; `unauthenticated` if the caller's
    /// token has expired or was revoked meanwhile; when the database fails.
    pub async fn create_release(
        &self,
        caller: Caller,
        request: ReleaseRequest,
    ) -> Result<StoredRelease, ServiceError> {
        self.storage.check()?;
        let name = request.name.as_deref().map(text::name).transpose()?;
        let job = jobs::load(&self.store, &self.keys, caller.organization, request.job).await?;
        let job = job.ok_or_else(|| ServiceError::not_found_at("/job_id"))?;
        if job.status != JobStatus::Succeeded {
            let detail = format!(
                "the job is {}; only a job that has succeeded has a table to release",
                job.status.as_str()
            );
            return Err(ServiceError::new(Code::JobNotSucceeded, detail));
        }
        let organization = caller.organization;
        let dataset = match datasets::find_any(&self.store, organization, job.dataset).await? {
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
        let table = TableToRelease {
            definition: attempt::combination(&stored, &sweep, run)?,
            run: run as u32,
            step,
            name,
        };
        let release = self.prepare_release(caller, &job, dataset, table).await?;
        match releases::create(&self.store, &release).await? {
            ReleaseCreation::Stored => {}
            ReleaseCreation::NoDataset => return Err(dataset_deleted()),
            ReleaseCreation::NoToken => return Err(ServiceError::unauthenticated()),
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
    ) -> Result<NewRelease, ServiceError> {
        let TableToRelease {
            definition,
            run,
            step,
            name,
        } = table;
        let store = &self.store;
        let key = load_rows::open_key(&self.keys, &dataset)?;
        let steps = runs::step_records(store, &key, job.id, run).await?;
        let steps = steps.into_iter().map(records::step_record);
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        if steps.is_empty() && JobPlan::new(&dataset.schema, &definition)?.has_steps() {
            let detail = "no generalization meets this combination; `GET /v1/jobs/{id}/sweep` has the reason";
            return Err(ServiceError::new(Code::JobNotSucceeded, detail));
        }
        check_step(&steps, step)?;
        let origin = ReleaseOrigin {
            organization: caller.organization,
            job: job.id,
            dataset: dataset.id,
            name,
            by: Some(caller.token),
            created_at: store.now(),
        };
        let permit = self.permits.acquire(TableKind::Raw).await?;
        let unobserved = Arc::new(Unobserved::default());
        let ids = Some(job.submissions.as_slice());
        let table = load_rows::load(store, &self.keys, &dataset, ids, unobserved).await?;
        let schema = dataset.schema;
        let order_key = key.order_key();
        let release = on_thread(move || {
            let _permit = permit;
            let unobserved = Unobserved::default();
            let run = AnonymizationRun::new(schema, definition.clone(), table, &unobserved)?;
            let run = run.with_order_key(order_key);
            let release = run.release(&steps, step, &unobserved)?;
            drop(run);
            release_packing::pack(release, origin, &definition)
        });
        Ok(release.await?)
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
    ) -> Result<Listing<StoredRelease>, ServiceError> {
        let limit = page.rows_to_query();
        let rows = releases::list(&self.store, viewer(caller), page.after, limit).await?;
        Ok(Listing::new(rows, page, |release| release.id.0))
    }

    /// A release that the caller may see.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_release(
        &self,
        caller: Caller,
        id: ReleaseId,
    ) -> Result<StoredRelease, ServiceError> {
        let release = releases::load(&self.store, viewer(caller), id).await?;
        release.ok_or_else(ServiceError::not_found)
    }

    /// The holder and the report of a release that the caller may see. What needs raw rows is for
    /// the holder only.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_report(
        &self,
        caller: Caller,
        id: ReleaseId,
    ) -> Result<(OrganizationId, Value), ServiceError> {
        let viewer = viewer(caller);
        let stored = releases::report(&self.store, viewer, id).await?;
        let stored = stored.ok_or_else(ServiceError::not_found)?;
        let owner = stored.owner;
        Ok((owner, report_view::shown(stored, viewer)?))
    }

    /// A table of a release that the caller may see, without its rows.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_table(
        &self,
        caller: Caller,
        id: ReleaseId,
        name: &str,
    ) -> Result<StoredTable, ServiceError> {
        // PostgreSQL rejects NUL in text, and no table's name contains it.
        if name.contains('\0') {
            return Err(ServiceError::not_found());
        }
        let table = releases::table(&self.store, viewer(caller), id, name).await?;
        table.ok_or_else(ServiceError::not_found)
    }

    /// Whether the caller may still read a release: the token works, and a recipient has a grant. For
    /// downloads under way.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn may_read(&self, caller: Caller, id: ReleaseId) -> Result<bool, ServiceError> {
        let viewer = viewer(caller);
        Ok(releases::is_readable(&self.store, viewer, caller.token, id).await?)
    }

    /// Records in the audit logs that a recipient has fetched a part of a release: a table or
    /// `report`. A holder's own fetches are not recorded.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn record_fetch(
        &self,
        caller: Caller,
        owner: OrganizationId,
        id: ReleaseId,
        part: &str,
    ) -> Result<(), ServiceError> {
        if caller.role == Role::Recipient {
            releases::record_fetch(&self.store, caller, owner, id, part).await?;
        }
        Ok(())
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

fn dataset_deleted() -> ServiceError {
    ServiceError::new(
        Code::DatasetDeleted,
        "the job's dataset was deleted with its rows; only earlier releases remain",
    )
}
