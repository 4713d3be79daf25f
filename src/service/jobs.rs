//! Jobs: checks, creation, listing and cancellation.

use pais_anonymize::JobPlan;
use pais_core::definition::{JobDefinition, Sweep, first_list, json};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::api::idempotency::{KeyedRequest, RequestKey, abandon, key_in_use};
use crate::api::page::{Page, PageRequest};
use crate::db::audit::Action;
use crate::db::datasets::{self, StoredDataset};
use crate::db::idempotency::{IdempotentAnswer, Reservation};
use crate::db::jobs::{self, JobCancellation, JobCreation, JobSummary, NewJob, StoredJob};
use crate::db::{policies, submissions};
use crate::engine::load_rows;
use crate::ids::JobId;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App};

/// A job as it was sent, parsed but not yet checked against its dataset.
pub struct JobRequest {
    definition: JobDefinition,
    sweep: Sweep,
    sent: Value,
    sha256: [u8; 32],
}

impl JobRequest {
    /// Parses a JSON body.
    ///
    /// # Errors
    /// A body that is not JSON or not a job definition, and lists of privacy parameters that are
    /// invalid.
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        let sent: Value = json::parse(body)?;
        let definition: JobDefinition = json::parse(body)?;
        Ok(Self {
            sweep: Sweep::new(&definition)?,
            definition,
            sent,
            sha256: Sha256::digest(body).into(),
        })
    }
}

impl App {
    /// Creates a job and wakes a worker. `answer` writes the answer, which is stored under the key
    /// of the request. A repeated request gets the stored answer.
    ///
    /// # Errors
    /// `storage_full`; a job that does not fit its dataset; an idempotency key that is in use or was used with
    /// another body; when the database fails.
    pub(crate) async fn create_job(
        &self,
        caller: Caller,
        request: &JobRequest,
        key: Option<&RequestKey>,
        answer: impl FnOnce(&StoredJob) -> Result<IdempotentAnswer, serde_json::Error>,
    ) -> Result<IdempotentAnswer, ApiError> {
        self.storage.check()?;
        let reservation = match self.reserve(caller, key).await? {
            KeyedRequest::New(reservation) => reservation,
            KeyedRequest::Repeated(stored) => return Ok(stored.replay(&request.sha256)?),
        };
        let checked = self.check_job(caller, request).await;
        let subject = request.definition.dataset_id.map_or(Uuid::nil(), |id| id.0);
        let job = (Action::JobCreated, subject);
        let dataset = match self.recorded(caller, job, checked).await {
            Ok(dataset) => dataset,
            Err(error) => {
                abandon(reservation).await?;
                return Err(error);
            }
        };
        self.insert_job(caller, dataset, request, reservation, answer)
            .await
    }

    /// Checks everything about a job that can be checked without its rows. Returns its dataset.
    async fn check_job(
        &self,
        caller: Caller,
        request: &JobRequest,
    ) -> Result<StoredDataset, ApiError> {
        let job = &request.definition;
        let id = job.dataset_id.ok_or_else(|| {
            Problem::at(
                Code::InvalidShape,
                "/dataset_id",
                "`dataset_id` is missing; give the id of the dataset to anonymize",
            )
        })?;
        let store = self.db.clone();
        let load = async move || datasets::load(&store, caller.organization, id).await;
        let dataset = self.documents.load(load).await??;
        let dataset = dataset.ok_or_else(no_dataset)?;
        let combinations = request.sweep.combinations.iter();
        let plans = combinations
            .map(|combination| JobPlan::new(&dataset.schema, &combination.apply(job)))
            .collect::<Result<Vec<_>, _>>()?;
        if request.sweep.is_sweep {
            check_sweep(&plans, job)?;
        }
        let policy = policies::load(&self.db, caller.organization).await?;
        policy.check_job(job, &dataset.schema)?;
        let submissions = job.submissions.as_deref();
        let size = submissions::size(&self.db, id, submissions).await?;
        let limits = &self.limits;
        limits.table_bytes(&self.memory, &dataset.schema, &plans, size)?;
        for plan in &plans {
            plan.check_work(size.rows)?;
        }
        Ok(dataset)
    }

    async fn insert_job(
        &self,
        caller: Caller,
        dataset: StoredDataset,
        request: &JobRequest,
        reservation: Option<Reservation>,
        answer: impl FnOnce(&StoredJob) -> Result<IdempotentAnswer, serde_json::Error>,
    ) -> Result<IdempotentAnswer, ApiError> {
        let key = load_rows::open_key(&self.keys, &dataset)?;
        let new = NewJob {
            dataset: dataset.id,
            key: &key,
            definition: &request.sent,
            body_sha256: request.sha256,
            submissions: request.definition.submissions.as_deref(),
            quotas: self.limits.quotas,
        };
        match jobs::create(&self.db, &self.keys, caller, &new, reservation, answer).await? {
            JobCreation::Queued(answer) => {
                self.wake.notify_one();
                Ok(answer)
            }
            JobCreation::NoDataset => Err(no_dataset()),
            JobCreation::NoSubmission(index) => Err(Problem::at(
                Code::NotFound,
                format!("/submissions/{index}"),
                "the dataset has no such submission",
            )
            .into()),
            JobCreation::NoRows => Err(Problem::at(
                Code::InvalidJob,
                match new.submissions {
                    Some(_) => "/submissions",
                    None => "/dataset_id",
                },
                "there are no rows to anonymize; send a submission first",
            )
            .into()),
            JobCreation::KeyTaken => Err(key_in_use()),
            JobCreation::Refused(exceeded) => Err(exceeded.into()),
        }
    }

    /// The jobs of the caller's organization without their definitions, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_jobs(
        &self,
        caller: Caller,
        page: PageRequest,
    ) -> Result<Page<JobSummary>, ApiError> {
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = jobs::list(&self.db, organization, page.after, limit).await?;
        Ok(Page::new(rows, page, |job| job.id.0))
    }

    /// A job of the caller's organization.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_job(&self, caller: Caller, id: JobId) -> Result<StoredJob, ApiError> {
        let job = jobs::load(&self.db, &self.keys, caller.organization, id).await?;
        job.ok_or_else(ApiError::not_found)
    }

    /// Cancels a job: a queued one at once, a running one through its worker.
    ///
    /// # Errors
    /// `not_found`; `job_ended`; when the database fails.
    pub async fn cancel_job(&self, caller: Caller, id: JobId) -> Result<StoredJob, ApiError> {
        match jobs::cancel(&self.db, &self.keys, caller, id).await? {
            JobCancellation::Accepted(job) => Ok(*job),
            JobCancellation::Ended => Err(ApiError::new(
                Code::JobEnded,
                "the job has ended; there is nothing to cancel",
            )),
            JobCancellation::NotFound => Err(ApiError::not_found()),
        }
    }
}

fn check_sweep(plans: &[JobPlan], job: &JobDefinition) -> Result<(), Problem> {
    if !plans.iter().all(JobPlan::takes_sweeps) {
        return Err(Problem::at(
            Code::InvalidJob,
            first_list(job).unwrap_or_default(),
            "lists of values are possible only for `lkc` and its special cases, and for groups \
             that are generalized; give one value",
        ));
    }
    if job.release == Some(true) {
        return Err(Problem::at(
            Code::InvalidJob,
            "/release",
            "a job with lists has a table for each combination; leave `release` out, and create \
             releases of the combinations you choose",
        ));
    }
    Ok(())
}

fn no_dataset() -> ApiError {
    ApiError::not_found_at("/dataset_id")
}
