//! Jobs as their holders see them: creation, listing and cancellation. `db::queue` is the side
//! of the workers.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{FromRow, PgConnection, PgExecutor};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{JobId, OrganizationId, ReleaseId, TokenId};
use crate::policy::Policy;
use crate::problem::{Problem, ProblemDocument};
use crate::roles::Caller;
use crate::telemetry::traces::{self, TraceContext};
use pais_core::definition::{DatasetId, JobDefinition, SubmissionId};
use pais_core::warning::Warning;

use super::audit::{self, Action, NewEvent};
use super::dataset_revisions::{DatasetRevision, lock_dataset};
use super::definition_at_rest::DefinitionAtRest;
use super::idempotency::{self, IdempotentAnswer, Reservation};
use super::key_ring::KeyRing;
use super::quotas::Quotas;
use super::seal::{DataKey, SealedItem};
use super::{Store, StoreError, policies, token_validity};

/// States of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum JobStatus {
    /// Waiting for a worker.
    Queued,
    /// A worker holds its lease.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Ended at the holder's request.
    Cancelled,
}

impl JobStatus {
    /// The name in JSON and in the database, as in `openapi/openapi.json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the status is final.
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The counts of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Number of rows read.
    pub rows_read: u64,
    /// Number of specializations performed, over all combinations of a sweep.
    pub steps_done: u64,
}

/// A job in its current state, without its definition.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, ToSchema)]
#[schema(as = JobSummaryDocument)]
pub struct JobSummary {
    /// Its id.
    pub id: JobId,
    /// What it runs on.
    pub dataset_id: DatasetId,
    /// Its state.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1, by the time it takes; never shrinks, 1 when it has succeeded.
    pub progress: f64,
    /// What is being done: `reading`, `searching`, `verifying` or `writing`.
    pub phase: Option<String>,
    /// Rows that it reads: those of its submissions.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Rows read so far, by this attempt.
    #[sqlx(try_from = "i64")]
    pub rows_read: u64,
    /// Specializations performed so far, by this attempt; over all combinations of a sweep. 0 for a
    /// job without steps.
    #[sqlx(try_from = "i64")]
    pub steps_done: u64,
    /// Estimated seconds until its end, from the speed it has shown; null while nothing is known,
    /// and for a job that does not run.
    pub remaining_seconds: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProblemDocument>)]
    pub error: Option<Value>,
    /// What the holder should know about its rows; empty until it has read them.
    #[sqlx(json)]
    pub warnings: Vec<Warning>,
    /// The release that it made at its end, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_id: Option<ReleaseId>,
    /// Number of attempts.
    #[sqlx(try_from = "i32")]
    pub attempt: u32,
    /// When it was requested.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When a worker first began.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
}

/// A job in its current state.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = JobDocument)]
pub struct StoredJob {
    /// Everything except the request.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// The request, as it was sent; when the dataset is deleted, without the sensitive and
    /// pre-generalized values that it lists.
    #[schema(value_type = JobDefinition)]
    pub definition: Value,
    /// The submissions it reads.
    #[serde(skip)]
    pub submissions: Vec<SubmissionId>,
}

impl std::ops::Deref for StoredJob {
    type Target = JobSummary;

    fn deref(&self) -> &JobSummary {
        &self.summary
    }
}

/// A job to be created.
#[derive(Clone, Copy)]
pub struct NewJob<'a> {
    /// The dataset it runs on.
    pub dataset: DatasetId,
    /// The revision of the columns that it was checked with.
    pub columns_revision: DatasetRevision,
    /// The data key of the dataset.
    pub key: &'a DataKey,
    /// The definition as it was sent.
    pub definition: &'a Value,
    /// SHA-256 of the body of the request.
    pub body_sha256: [u8; 32],
    /// The submissions to read; `None` for all current ones of the dataset.
    pub submissions: Option<&'a [SubmissionId]>,
    /// The shares of the organization.
    pub quotas: Quotas,
    /// Checks it against the policy of the organization.
    pub check: &'a (dyn Fn(&Policy) -> Result<(), Problem> + Sync),
}

/// The result of [`create`].
#[derive(Clone, Debug, PartialEq)]
pub enum JobCreation {
    /// The job is queued.
    Queued(IdempotentAnswer),
    /// The dataset was deleted meanwhile.
    NoDataset,
    /// The columns were changed after the job was checked.
    ColumnsChanged,
    /// The submission at this index of the list is not one of the dataset.
    NoSubmission(usize),
    /// There are no rows to read.
    NoRows,
    /// A later request has taken over the idempotency key.
    KeyTaken,
}

/// The result of [`cancel`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobCancellation {
    /// The job is cancelled, or will be soon.
    Accepted(Box<StoredJob>),
    /// The job has already ended.
    Ended,
    /// The organization has no such job.
    NotFound,
}

/// The columns of a summary.
macro_rules! summary_columns {
    () => {
        "id, dataset_id, status, progress, phase, rows, rows_read, steps_done,
         remaining_seconds, error, warnings, attempt, created_at, started_at, ended_at,
         (SELECT r.id FROM releases r WHERE r.job_id = jobs.id AND r.by_job) AS release_id"
    };
}

/// The columns of a job with its definition.
macro_rules! columns {
    () => {
        concat!(
            summary_columns!(),
            ", definition AS shown, sealed_definition AS sealed, submissions"
        )
    };
}

/// Creates a job on the submissions that are current now, and stores the answer under the idempotency
/// key of the request, whose reservation is taken by the commit.
///
/// # Errors
/// [`StoreError::BelowPolicy`]; when the database fails, or the answer cannot be written as JSON.
pub async fn create(
    store: &Store,
    keys: &KeyRing,
    by: Caller,
    job: &NewJob<'_>,
    reservation: &mut Option<Reservation>,
    answer: impl FnOnce(&StoredJob) -> Result<IdempotentAnswer, serde_json::Error>,
) -> Result<JobCreation, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let queue = job.quotas.check_queue(&mut transaction, by.organization);
    queue.await?;
    policies::check(&mut transaction, by.organization, job.check).await?;
    match lock_dataset(&mut transaction, job.dataset).await? {
        None => return Ok(JobCreation::NoDataset),
        Some(revision) if revision != job.columns_revision => {
            return Ok(JobCreation::ColumnsChanged);
        }
        Some(_) => {}
    }
    let present: Vec<SubmissionId> = sqlx::query_scalar(
        "SELECT id FROM submissions WHERE dataset_id = $1 AND replaced_by IS NULL ORDER BY id",
    )
    .bind(job.dataset)
    .fetch_all(&mut *transaction)
    .await?;
    let chosen = match choose(present, job.submissions) {
        Ok(chosen) if chosen.is_empty() => return Ok(JobCreation::NoRows),
        Ok(chosen) => chosen,
        Err(index) => return Ok(JobCreation::NoSubmission(index)),
    };
    let now = store.now();
    let queued = QueuedJob {
        organization: by.organization,
        dataset: job.dataset,
        key: job.key,
        definition: job.definition,
        submissions: &chosen,
        by: Some(by.token),
        trace: TraceContext::current(),
        at: now,
    };
    let row = insert(&mut transaction, &queued).await?;
    let made = row.open(store, &mut *transaction, keys).await?;
    let mut detail = json!({ "dataset_id": made.dataset_id });
    let reasons = job.definition.get("acknowledge_unchanged");
    if let Some(reasons) = reasons.filter(|reasons| !reasons.is_null()) {
        detail["acknowledge_unchanged"] = reasons.clone();
    }
    let event = NewEvent::by(by, Action::JobCreated, made.id.0, detail);
    audit::record(&mut transaction, now, event).await?;
    let answer = answer(&made)?;
    if idempotency::commit(reservation.take(), transaction, &job.body_sha256, &answer).await? {
        traces::set_on_current("pais.job_id", made.id);
        tracing::info!(job = %made.id, "a job is queued");
        Ok(JobCreation::Queued(answer))
    } else {
        Ok(JobCreation::KeyTaken)
    }
}

/// A job that is checked, to be queued.
#[derive(Clone, Copy)]
pub(super) struct QueuedJob<'a> {
    pub(super) organization: OrganizationId,
    pub(super) dataset: DatasetId,
    /// The data key of the dataset.
    pub(super) key: &'a DataKey,
    pub(super) definition: &'a Value,
    /// The submissions to read.
    pub(super) submissions: &'a [SubmissionId],
    /// The token for which it is made; `None` if the service makes it on its own.
    pub(super) by: Option<TokenId>,
    /// The request that the job belongs to.
    pub(super) trace: Option<TraceContext>,
    pub(super) at: OffsetDateTime,
}

/// Queues a job.
pub(super) async fn insert(
    connection: &mut PgConnection,
    job: &QueuedJob<'_>,
) -> Result<JobRow, StoreError> {
    let id = JobId::new();
    let definition = DefinitionAtRest::seal(job.key, SealedItem::Definition(id), job.definition)?;
    Ok(sqlx::query_as(concat!(
        "INSERT INTO jobs (id, organization_id, dataset_id, definition, submissions, created_by,
                           created_at, sealed_definition, trace_context, rows,
                           dataset_revision)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
                 (SELECT coalesce(sum(s.rows), 0)::bigint FROM submissions s
                  WHERE s.id = ANY ($5)),
                 (SELECT d.columns_revision FROM datasets d WHERE d.id = $3))
         RETURNING ",
        columns!()
    ))
    .bind(id)
    .bind(job.organization)
    .bind(job.dataset)
    .bind(definition.shown)
    .bind(job.submissions)
    .bind(job.by)
    .bind(job.at)
    .bind(definition.sealed)
    .bind(job.trace)
    .fetch_one(connection)
    .await?)
}

/// Whether the columns of a job's dataset are unchanged since it ran.
pub(crate) async fn has_its_columns(store: &Store, id: JobId) -> Result<bool, StoreError> {
    let query = sqlx::query_scalar(
        "SELECT j.dataset_revision = d.columns_revision FROM jobs j JOIN datasets d ON d.id = j.dataset_id
         WHERE j.id = $1",
    );
    let mut connection = store.connection().await?;
    Ok(query.bind(id).fetch_one(&mut *connection).await?)
}

/// The span of the request that made a job; `None` if there was none.
pub(crate) async fn trace(store: &Store, id: JobId) -> Result<Option<TraceContext>, StoreError> {
    let found: Option<Option<TraceContext>> =
        sqlx::query_scalar("SELECT trace_context FROM jobs WHERE id = $1")
            .bind(id)
            .fetch_optional(&mut *store.connection().await?)
            .await?;
    Ok(found.flatten())
}

/// The submissions that a job reads.
///
/// # Errors
/// The index in `requested` of the first submission that is not in `present`.
fn choose(
    present: Vec<SubmissionId>,
    requested: Option<&[SubmissionId]>,
) -> Result<Vec<SubmissionId>, usize> {
    let Some(requested) = requested else {
        return Ok(present);
    };
    let present: HashSet<SubmissionId> = present.into_iter().collect();
    if let Some(index) = requested.iter().position(|id| !present.contains(id)) {
        return Err(index);
    }
    let mut chosen = requested.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// A job of the organization; `None` if there is none.
///
/// # Errors
/// When the database fails, or the definition cannot be decrypted.
pub(crate) async fn load(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    id: JobId,
) -> Result<Option<StoredJob>, StoreError> {
    let row: Option<JobRow> = sqlx::query_as(concat!(
        "SELECT ",
        columns!(),
        " FROM jobs WHERE id = $1 AND organization_id = $2"
    ))
    .bind(id)
    .bind(organization)
    .fetch_optional(&mut *store.connection().await?)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let mut connection = store.connection().await?;
    row.open(store, &mut *connection, keys).await.map(Some)
}

/// The jobs of the organization after `after`, oldest first, at most `limit`. Opens nothing that is
/// sealed.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<JobSummary>, StoreError> {
    Ok(sqlx::query_as(concat!(
        "SELECT ",
        summary_columns!(),
        " FROM jobs WHERE organization_id = $1 AND ($2::uuid IS NULL OR id > $2)
          ORDER BY id LIMIT $3"
    ))
    .bind(organization)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// Cancels jobs at the time `$1`, those of the condition that follows: a queued one at once, a running one by its
/// worker.
macro_rules! cancel_jobs {
    () => {
        "UPDATE jobs SET cancel_requested = true,
             ended_at = CASE status WHEN 'queued' THEN $1::timestamptz END,
             status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
         WHERE status IN ('queued', 'running') AND "
    };
}

pub(super) use cancel_jobs;

/// Cancels a job. A queued job is cancelled at once. A running one is cancelled by its worker.
///
/// # Errors
/// When the database fails, or the definition cannot be decrypted.
pub(crate) async fn cancel(
    store: &Store,
    keys: &KeyRing,
    by: Caller,
    id: JobId,
) -> Result<JobCancellation, StoreError> {
    let now = store.now();
    let mut transaction = token_validity::begin(store, by).await?;
    let row: Option<JobRow> = sqlx::query_as(concat!(
        cancel_jobs!(),
        "id = $2 AND organization_id = $3 RETURNING ",
        columns!()
    ))
    .bind(now)
    .bind(id)
    .bind(by.organization)
    .fetch_optional(&mut *transaction)
    .await?;
    if let Some(row) = row {
        let job = row.open(store, &mut *transaction, keys).await?;
        let event = NewEvent::by(by, Action::JobCancelled, id.0, json!({}));
        audit::record(&mut transaction, now, event).await?;
        transaction.commit().await?;
        return Ok(JobCancellation::Accepted(Box::new(job)));
    }
    drop(transaction);
    let job = load(store, keys, by.organization, id).await?;
    Ok(match job {
        Some(_) => JobCancellation::Ended,
        None => JobCancellation::NotFound,
    })
}

/// A job as it is stored.
#[derive(FromRow)]
pub(super) struct JobRow {
    #[sqlx(flatten)]
    summary: JobSummary,
    #[sqlx(flatten)]
    definition: DefinitionAtRest,
    submissions: Vec<SubmissionId>,
}

impl JobRow {
    /// Its id.
    pub(super) fn id(&self) -> JobId {
        self.summary.id
    }

    /// The job, with the values that it lists, unless its dataset was deleted.
    async fn open(
        self,
        store: &Store,
        executor: impl PgExecutor<'_>,
        keys: &KeyRing,
    ) -> Result<StoredJob, StoreError> {
        let item = SealedItem::Definition(self.summary.id);
        let (definition, dataset) = (self.definition, self.summary.dataset_id);
        let definition = definition.open_if_kept(store, executor, keys, dataset, item);
        Ok(StoredJob {
            definition: definition.await?,
            submissions: self.submissions,
            summary: self.summary,
        })
    }
}

/// The data of a `progress` event.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, ToSchema)]
#[schema(as = ProgressDocument)]
pub(crate) struct JobProgress {
    /// The job.
    pub id: JobId,
    /// Its state.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1; never shrinks.
    pub progress: f64,
    /// What is being done.
    pub phase: Option<String>,
    /// Rows that the job reads.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Rows read so far.
    #[sqlx(try_from = "i64")]
    pub rows_read: u64,
    /// Specializations performed so far.
    #[sqlx(try_from = "i64")]
    pub steps_done: u64,
    /// Estimated seconds until the end; null while nothing is known.
    pub remaining_seconds: Option<f64>,
}

/// The progress of a job of the organization; `None` if there is none.
pub(crate) async fn progress(
    store: &Store,
    organization: OrganizationId,
    id: JobId,
) -> Result<Option<JobProgress>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT id, status, progress, phase, rows, rows_read, steps_done, remaining_seconds
         FROM jobs WHERE id = $1 AND organization_id = $2",
    )
    .bind(id)
    .bind(organization)
    .fetch_optional(&mut *store.connection().await?)
    .await?)
}
