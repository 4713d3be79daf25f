//! The durable queue: jobs claimed under a lease, every later write fenced by its token.
//!
//! Leases are measured by the database's clock, which all processes share.

use std::time::Duration;

use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

use crate::domain::{Code, DatasetId, JobId, OrganizationId, Problem, SubmissionId};
use crate::engine::SweepItem;

use super::jobs::{self, SealedStep};
use super::releases::{self, NewRelease};
use super::{Store, StoreError};

/// A job and the lease under which it is worked on.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which job.
    pub job: JobId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// What it runs on.
    pub dataset: DatasetId,
    /// What was asked for.
    pub definition: Value,
    /// The rows to read.
    pub submissions: Vec<SubmissionId>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Proves that the lease is still ours.
    pub token: Uuid,
}

/// What a heartbeat found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// Go on.
    Held,
    /// The holder wants the job cancelled.
    CancelRequested,
    /// Another worker has the job, or it has ended.
    Lost,
}

/// What became of a write that ends an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was written.
    Written,
    /// The holder had asked to cancel: the job is cancelled, and nothing else was written.
    Cancelled,
    /// The lease was lost: nothing was written.
    Lost,
}

/// Takes the oldest job that waits, or whose worker has died.
///
/// # Errors
/// When the database fails.
pub async fn claim(
    store: &Store,
    lease: Duration,
    max_attempts: u32,
) -> Result<Option<Claim>, StoreError> {
    retire(store, max_attempts).await?;
    let row = sqlx::query(
        "UPDATE jobs SET status = 'running', attempt = attempt + 1, lease_token = $1,
                         lease_expires_at = clock_timestamp() + $2,
                         started_at = coalesce(started_at, $3)
         WHERE id = (
             SELECT id FROM jobs
             WHERE status = 'queued'
                OR (status = 'running' AND lease_expires_at < clock_timestamp()
                    AND attempt < $4 AND NOT cancel_requested)
             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, organization_id, dataset_id, definition, submissions, attempt, lease_token",
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
        definition: row.try_get("definition")?,
        submissions: submissions.into_iter().map(SubmissionId).collect(),
        attempt: row.try_get::<i32, _>("attempt")?.cast_unsigned(),
        token: row.try_get("lease_token")?,
    }))
}

/// Ends jobs whose worker has died and that are not to be tried again.
async fn retire(store: &Store, max_attempts: u32) -> Result<(), StoreError> {
    let problem = Problem::new(
        Code::AttemptsExhausted,
        format!(
            "{max_attempts} attempts to run the job ended with its worker; the service's log and \
             its memory limit may tell why"
        ),
    );
    sqlx::query(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'failed' END,
             error = CASE WHEN cancel_requested THEN NULL ELSE $1 END,
             phase = NULL, lease_token = NULL, lease_expires_at = NULL, ended_at = $2
         WHERE id IN (
             SELECT id FROM jobs
             WHERE status = 'running' AND lease_expires_at < clock_timestamp()
               AND (attempt >= $3 OR cancel_requested)
             FOR UPDATE SKIP LOCKED)",
    )
    .bind(document(&problem))
    .bind(store.now())
    .bind(max_attempts.cast_signed())
    .execute(store.pool())
    .await?;
    Ok(())
}

/// Renews the lease, notes progress, and learns whether to stop; progress never goes back.
///
/// # Errors
/// When the database fails.
pub async fn heartbeat(
    store: &Store,
    claim: &Claim,
    lease: Duration,
    progress: f64,
    phase: Option<&str>,
) -> Result<Pulse, StoreError> {
    let cancel: Option<bool> = sqlx::query_scalar(
        "UPDATE jobs SET lease_expires_at = clock_timestamp() + $3,
                         progress = greatest(progress, $4), phase = $5
         WHERE id = $1 AND lease_token = $2
         RETURNING cancel_requested",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(interval(lease))
    .bind(progress)
    .bind(phase)
    .fetch_optional(store.pool())
    .await?;
    Ok(match cancel {
        None => Pulse::Lost,
        Some(true) => Pulse::CancelRequested,
        Some(false) => Pulse::Held,
    })
}

/// Ends a job well: its steps, its sweep, its release and its state in one transaction, or nothing of it.
///
/// # Errors
/// When the database fails.
pub async fn succeed(
    store: &Store,
    claim: &Claim,
    steps: &[SealedStep],
    sweep: &[SweepItem],
    release: Option<&NewRelease>,
) -> Result<Ending, StoreError> {
    let mut transaction = store.begin().await?;
    jobs::insert_runs(&mut transaction, claim.job, steps, sweep).await?;
    if let Some(release) = release
        && releases::insert(&mut transaction, release).await?.is_none()
    {
        transaction.rollback().await?;
        return lost_or_cancelled(store, claim).await;
    }
    let done = sqlx::query(
        "UPDATE jobs SET status = 'succeeded', progress = 1, phase = NULL, lease_token = NULL,
                         lease_expires_at = NULL, ended_at = $3
         WHERE id = $1 AND lease_token = $2 AND NOT cancel_requested",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(store.now())
    .execute(&mut *transaction)
    .await?;
    if done.rows_affected() == 0 {
        transaction.rollback().await?;
        return lost_or_cancelled(store, claim).await;
    }
    transaction.commit().await?;
    Ok(Ending::Written)
}

async fn lost_or_cancelled(store: &Store, claim: &Claim) -> Result<Ending, StoreError> {
    Ok(match cancelled(store, claim).await? {
        Ending::Written => Ending::Cancelled,
        other => other,
    })
}

/// Ends a job with a problem; as cancelled when its holder had asked for that.
///
/// # Errors
/// When the database fails.
pub async fn fail(store: &Store, claim: &Claim, problem: &Problem) -> Result<Ending, StoreError> {
    let status: Option<String> = sqlx::query_scalar(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'failed' END,
             error = CASE WHEN cancel_requested THEN NULL ELSE $3 END,
             phase = NULL, lease_token = NULL, lease_expires_at = NULL, ended_at = $4
         WHERE id = $1 AND lease_token = $2
         RETURNING status",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(document(problem))
    .bind(store.now())
    .fetch_optional(store.pool())
    .await?;
    Ok(match status.as_deref() {
        None => Ending::Lost,
        Some("cancelled") => Ending::Cancelled,
        Some(_) => Ending::Written,
    })
}

/// Ends a job as its holder asked.
///
/// # Errors
/// When the database fails.
pub async fn cancelled(store: &Store, claim: &Claim) -> Result<Ending, StoreError> {
    let done = sqlx::query(
        "UPDATE jobs SET status = 'cancelled', phase = NULL, lease_token = NULL,
                         lease_expires_at = NULL, ended_at = $3
         WHERE id = $1 AND lease_token = $2",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(store.now())
    .execute(store.pool())
    .await?;
    Ok(match done.rows_affected() {
        0 => Ending::Lost,
        _ => Ending::Written,
    })
}

/// Puts a job back for another worker, the attempt not counted: the service is stopping.
///
/// # Errors
/// When the database fails.
pub async fn put_back(store: &Store, claim: &Claim) -> Result<Ending, StoreError> {
    let done = sqlx::query(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END,
             ended_at = CASE WHEN cancel_requested THEN $3::timestamptz END,
             attempt = attempt - 1, phase = NULL, lease_token = NULL, lease_expires_at = NULL
         WHERE id = $1 AND lease_token = $2",
    )
    .bind(claim.job.0)
    .bind(claim.token)
    .bind(store.now())
    .execute(store.pool())
    .await?;
    Ok(match done.rows_affected() {
        0 => Ending::Lost,
        _ => Ending::Written,
    })
}

fn document(problem: &Problem) -> Value {
    // A problem document is strings and numbers, which are always JSON.
    serde_json::to_value(problem.document()).unwrap_or_default()
}

fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
