//! The durable queue: jobs claimed under a lease, every later write fenced by its token.
//!
//! Leases are measured by the database's clock, which all processes share.

use std::time::Duration;

use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

use crate::problem::{Code, Problem};
use pais_core::definition::{DatasetId, SubmissionId};
use crate::ids::{JobId, OrganizationId};
use pais_anonymize::SweepItem;

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
    /// Share of the work that an attempt before has told as done, 0 to 1.
    pub progress: f64,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows read.
    pub rows_read: u64,
    /// Specializations performed, over all combinations of a sweep.
    pub steps_done: u64,
}

/// What a heartbeat tells of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sign {
    /// Share of the work done, 0 to 1.
    pub progress: f64,
    /// What is being done.
    pub phase: Option<&'static str>,
    /// How far it has come.
    pub counts: Counts,
    /// Estimated time until its end, where there is an estimate.
    pub remaining: Option<Duration>,
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
                         started_at = coalesce(started_at, $3),
                         rows_read = 0, steps_done = 0, remaining_seconds = NULL
         WHERE id = (
             SELECT id FROM jobs
             WHERE status = 'queued'
                OR (status = 'running' AND lease_expires_at < clock_timestamp()
                    AND attempt < $4 AND NOT cancel_requested)
             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, organization_id, dataset_id, definition, submissions, attempt, lease_token,
                   progress",
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
        progress: row.try_get("progress")?,
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
             phase = NULL, remaining_seconds = NULL, lease_token = NULL,
             lease_expires_at = NULL, ended_at = $2
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

/// Renews the lease, notes how far the attempt is, and learns whether to stop. The share done never
/// goes back; counts are those of this attempt.
///
/// # Errors
/// When the database fails.
pub async fn heartbeat(
    store: &Store,
    claim: &Claim,
    lease: Duration,
    sign: &Sign,
) -> Result<Pulse, StoreError> {
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
    .bind(sign.progress)
    .bind(sign.phase)
    .bind(sign.counts.rows_read.cast_signed())
    .bind(sign.counts.steps_done.cast_signed())
    .bind(sign.remaining.map(rounded_seconds))
    .fetch_optional(store.pool())
    .await?;
    Ok(match cancel {
        None => Pulse::Lost,
        Some(true) => Pulse::CancelRequested,
        Some(false) => Pulse::Held,
    })
}

/// What a run that went well leaves behind.
#[derive(Clone, Copy)]
pub struct Outcome<'a> {
    /// Steps of every run.
    pub steps: &'a [SealedStep],
    /// What the combinations came to, where the job is a sweep.
    pub sweep: &'a [SweepItem],
    /// The release that was asked for.
    pub release: Option<&'a NewRelease>,
    /// Told of every so many rows of the release that were written, if not yet committed.
    pub written: &'a (dyn Fn(u64) + Sync),
}

impl Default for Outcome<'_> {
    fn default() -> Self {
        Self {
            steps: &[],
            sweep: &[],
            release: None,
            written: &|_| {},
        }
    }
}

/// Ends a job well: its steps, its sweep, its release and its state in one transaction, or nothing of it.
///
/// # Errors
/// When the database fails.
pub async fn succeed(
    store: &Store,
    claim: &Claim,
    counts: Counts,
    outcome: Outcome<'_>,
) -> Result<Ending, StoreError> {
    let Outcome {
        steps,
        sweep,
        release,
        written,
    } = outcome;
    let mut transaction = store.begin().await?;
    jobs::insert_runs(&mut transaction, claim.job, steps, sweep).await?;
    if let Some(release) = release
        && releases::insert(&mut transaction, release, written)
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
    Ok(Ending::Written)
}

async fn lost_or_cancelled(
    store: &Store,
    claim: &Claim,
    counts: Counts,
) -> Result<Ending, StoreError> {
    Ok(match cancelled(store, claim, counts).await? {
        Ending::Written => Ending::Cancelled,
        other => other,
    })
}

/// Ends a job with a problem; as cancelled when its holder had asked for that.
///
/// # Errors
/// When the database fails.
pub async fn fail(
    store: &Store,
    claim: &Claim,
    counts: Counts,
    problem: &Problem,
) -> Result<Ending, StoreError> {
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
    .bind(document(problem))
    .bind(store.now())
    .bind(counts.rows_read.cast_signed())
    .bind(counts.steps_done.cast_signed())
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
pub async fn cancelled(store: &Store, claim: &Claim, counts: Counts) -> Result<Ending, StoreError> {
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
        0 => Ending::Lost,
        _ => Ending::Written,
    })
}

fn document(problem: &Problem) -> Value {
    // A problem document is strings and numbers, which are always JSON.
    serde_json::to_value(problem.document()).unwrap_or_default()
}

/// Tenths of a second, which are more than an estimate is good for.
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
