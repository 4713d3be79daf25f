//! The durable job queue. A worker claims a job under a lease. Every later write of the worker is
//! conditional on the token of the lease (a fencing token).
//!
//! Leases are measured by the database's clock, which all processes share.

use std::time::Duration;

use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::types::PgInterval;
use sqlx::types::Json;
use uuid::Uuid;

use crate::ids::{JobId, OrganizationId};
use crate::problem::{Code, Problem};
use pais_core::definition::{DatasetId, SubmissionId};
use pais_core::warning::Warning;

use super::job_definition::DefinitionAtRest;
use super::new_release::{self, NewRelease};
use super::runs::{self, SealedStep};
use super::{Store, StoreError};

/// A job, and the lease under which a worker runs it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The dataset it runs on.
    pub dataset: DatasetId,
    /// The definition of the job.
    pub definition: DefinitionAtRest,
    /// The submissions to read.
    pub submissions: Vec<SubmissionId>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The token of the lease. Writes succeed only while it is current.
    pub token: Uuid,
    /// Share of the work done that earlier attempts have reported, 0 to 1.
    pub progress: f64,
}

/// The counts of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Number of rows read.
    pub rows_read: u64,
    /// Number of specializations performed, over all combinations of a sweep.
    pub steps_done: u64,
}

/// The state of an attempt that a heartbeat reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heartbeat {
    /// Share of the work done, 0 to 1.
    pub progress: f64,
    /// The current phase.
    pub phase: Option<&'static str>,
    /// Its counts.
    pub counts: AttemptCounts,
    /// Estimated time until its end; `None` if there is no estimate.
    pub remaining: Option<Duration>,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatReply {
    /// The lease is renewed. Continue.
    Held,
    /// The lease is renewed, but the holder has cancelled the job.
    CancelRequested,
    /// The lease is lost: another worker has the job, or the job has ended.
    Lost,
}

/// The result of a write that ends an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndResult {
    /// The result was written.
    Written,
    /// The holder had cancelled the job: it is now cancelled, and nothing else was written.
    Cancelled,
    /// The lease was lost: nothing was written.
    Lost,
}

/// Claims the oldest job that is queued or whose lease has expired; `None` if there is none.
/// `lease` is the duration of the lease.
///
/// # Errors
/// When the database fails.
pub async fn claim(
    store: &Store,
    lease: Duration,
    max_attempts: u32,
) -> Result<Option<Claim>, StoreError> {
    end_exhausted(store, max_attempts).await?;
    let row = sqlx::query(
        "UPDATE jobs SET status = 'running', attempt = attempt + 1, lease_token = $1,
                         lease_expires_at = clock_timestamp() + $2,
                         started_at = coalesce(started_at, $3),
                         rows_read = 0, steps_done = 0, remaining_seconds = NULL,
                         warnings = '[]'
         WHERE id = (
             SELECT id FROM jobs
             WHERE status = 'queued'
                OR (status = 'running' AND lease_expires_at < clock_timestamp()
                    AND attempt < $4 AND NOT cancel_requested)
             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, organization_id, dataset_id, definition, sealed_definition, submissions,
                   attempt, lease_token, progress",
    )
    .bind(Uuid::new_v4())
    .bind(interval(lease))
    .bind(store.now())
    .bind(max_attempts.cast_signed())
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let submissions: Vec<Uuid> = row.try_get("submissions")?;
    Ok(Some(Claim {
        job: JobId(row.try_get("id")?),
        organization: OrganizationId(row.try_get("organization_id")?),
        dataset: DatasetId(row.try_get("dataset_id")?),
        definition: DefinitionAtRest {
            shown: row.try_get("definition")?,
            sealed: row.try_get("sealed_definition")?,
        },
        submissions: submissions.into_iter().map(SubmissionId).collect(),
        attempt: row.try_get::<i32, _>("attempt")?.cast_unsigned(),
        token: row.try_get("lease_token")?,
        progress: row.try_get("progress")?,
    }))
}

/// Ends jobs whose lease has expired and that have no attempt left or are cancelled.
async fn end_exhausted(store: &Store, max_attempts: u32) -> Result<(), StoreError> {
    let problem = Problem::new(
        Code::AttemptsExhausted,
        format!(
            "the worker of the job died in each of {max_attempts} attempts; check the service's \
             log and its memory limit"
        ),
    );
    sqlx::query(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'failed' END,
             error = CASE WHEN cancel_requested THEN NULL ELSE $1 END,
             phase = NULL, remaining_seconds = NULL, lease_token = NULL,
             lease_expires_at = NULL, ended_at = $2
         WHERE id IN (
             SELECT id FROM jobs
             WHERE status = 'running' AND lease_expires_at < clock_timestamp()
               AND (attempt >= $3 OR cancel_requested)
             FOR UPDATE SKIP LOCKED)",
    )
    .bind(document(&problem)?)
    .bind(store.now())
    .bind(max_attempts.cast_signed())
    .execute(store.pool())
    .await?;
    Ok(())
}

/// Renews the lease, writes the state of the attempt, and returns whether it must stop. The share
/// of the work done never decreases. The counts are those of this attempt.
///
/// # Errors
/// When the database fails.
pub async fn heartbeat(
    store: &Store,
    claim: &Claim,
    lease: Duration,
    state: &Heartbeat,
) -> Result<HeartbeatReply, StoreError> {
    let cancel: Option<bool> = sqlx::query_scalar(
        "UPDATE jobs SET lease_expires_at = clock_timestamp() + $3,
                         progress = greatest(progress, $4), phase = $5, rows_read = $6,
                         steps_done = $7, remaining_seconds = $8
         WHERE id = $1 AND lease_token = $2
         RETURNING cancel_requested",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(interval(lease))
    .bind(state.progress)
    .bind(state.phase)
    .bind(state.counts.rows_read.cast_signed())
    .bind(state.counts.steps_done.cast_signed())
    .bind(state.remaining.map(rounded_seconds))
    .fetch_optional(store.pool())
    .await?;
    Ok(match cancel {
        None => HeartbeatReply::Lost,
        Some(true) => HeartbeatReply::CancelRequested,
        Some(false) => HeartbeatReply::Held,
    })
}

/// Writes what the holder should know about the rows of a job, as soon as an attempt has read them.
/// Writes nothing if the lease is lost.
///
/// # Errors
/// When the database fails.
pub async fn record_warnings(
    store: &Store,
    claim: &Claim,
    warnings: &[Warning],
) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET warnings = $3 WHERE id = $1 AND lease_token = $2")
        .bind(claim.job.0)
        .bind(claim.token)
        .bind(Json(warnings))
        .execute(store.pool())
        .await?;
    Ok(())
}

/// The results of a successful run.
#[derive(Clone, Copy)]
pub struct NewRunResults<'a> {
    /// The steps of all runs.
    pub steps: &'a [SealedStep],
    /// The results of the combinations of a sweep; empty for other jobs.
    pub sweep: &'a [Value],
    /// The release, if the job asks for one.
    pub release: Option<&'a NewRelease>,
    /// Called after each chunk of the release, with its number of rows. The rows are written but
    /// not yet committed.
    pub written: &'a (dyn Fn(u64) + Sync),
}

impl Default for NewRunResults<'_> {
    fn default() -> Self {
        Self {
            steps: &[],
            sweep: &[],
            release: None,
            written: &|_| {},
        }
    }
}

/// Ends a job as succeeded. Writes its steps, its sweep, its release and its status in one
/// transaction.
///
/// # Errors
/// When the database fails.
pub async fn succeed(
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
    outcome: NewRunResults<'_>,
) -> Result<EndResult, StoreError> {
    let NewRunResults {
        steps,
        sweep,
        release,
        written,
    } = outcome;
    let mut transaction = store.begin().await?;
    runs::insert_runs(&mut transaction, claim.job, steps, sweep).await?;
    if let Some(release) = release
        && new_release::insert(&mut transaction, release, written)
            .await?
            .is_none()
    {
        transaction.rollback().await?;
        return lost_or_cancelled(store, claim, counts).await;
    }
    let done = sqlx::query(
        "UPDATE jobs SET status = 'succeeded', progress = 1, phase = NULL, remaining_seconds = NULL,
                         rows_read = $4, steps_done = $5, lease_token = NULL,
                         lease_expires_at = NULL, ended_at = $3
         WHERE id = $1 AND lease_token = $2 AND NOT cancel_requested",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(store.now())
    .bind(counts.rows_read.cast_signed())
    .bind(counts.steps_done.cast_signed())
    .execute(&mut *transaction)
    .await?;
    if done.rows_affected() == 0 {
        transaction.rollback().await?;
        return lost_or_cancelled(store, claim, counts).await;
    }
    transaction.commit().await?;
    Ok(EndResult::Written)
}

async fn lost_or_cancelled(
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
) -> Result<EndResult, StoreError> {
    Ok(match cancelled(store, claim, counts).await? {
        EndResult::Written => EndResult::Cancelled,
        other => other,
    })
}

/// Ends a job as failed with a problem, or as cancelled if its holder had cancelled it.
///
/// # Errors
/// When the database fails.
pub async fn fail(
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
    problem: &Problem,
) -> Result<EndResult, StoreError> {
    let status: Option<String> = sqlx::query_scalar(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'failed' END,
             error = CASE WHEN cancel_requested THEN NULL ELSE $3 END,
             phase = NULL, remaining_seconds = NULL, rows_read = $5, steps_done = $6,
             lease_token = NULL, lease_expires_at = NULL, ended_at = $4
         WHERE id = $1 AND lease_token = $2
         RETURNING status",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(document(problem)?)
    .bind(store.now())
    .bind(counts.rows_read.cast_signed())
    .bind(counts.steps_done.cast_signed())
    .fetch_optional(store.pool())
    .await?;
    Ok(match status.as_deref() {
        None => EndResult::Lost,
        Some("cancelled") => EndResult::Cancelled,
        Some(_) => EndResult::Written,
    })
}

/// Ends a job as cancelled.
///
/// # Errors
/// When the database fails.
pub async fn cancelled(
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
) -> Result<EndResult, StoreError> {
    let done = sqlx::query(
        "UPDATE jobs SET status = 'cancelled', phase = NULL, remaining_seconds = NULL,
                         rows_read = $4, steps_done = $5, lease_token = NULL,
                         lease_expires_at = NULL, ended_at = $3
         WHERE id = $1 AND lease_token = $2",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(store.now())
    .bind(counts.rows_read.cast_signed())
    .bind(counts.steps_done.cast_signed())
    .execute(store.pool())
    .await?;
    Ok(match done.rows_affected() {
        0 => EndResult::Lost,
        _ => EndResult::Written,
    })
}

/// Returns a job to the queue because the service is stopping. The attempt is not counted.
///
/// # Errors
/// When the database fails.
pub async fn requeue(store: &Store, claim: &Claim) -> Result<EndResult, StoreError> {
    let done = sqlx::query(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END,
             ended_at = CASE WHEN cancel_requested THEN $3::timestamptz END,
             attempt = attempt - 1, phase = NULL, remaining_seconds = NULL,
             lease_token = NULL, lease_expires_at = NULL
         WHERE id = $1 AND lease_token = $2",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(store.now())
    .execute(store.pool())
    .await?;
    Ok(match done.rows_affected() {
        0 => EndResult::Lost,
        _ => EndResult::Written,
    })
}

fn document(problem: &Problem) -> Result<Value, serde_json::Error> {
    serde_json::to_value(problem.document())
}

/// A duration in seconds, rounded to tenths. An estimate is not more precise than that.
fn rounded_seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
