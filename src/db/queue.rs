//! The durable job queue. A worker claims a job under a lease ([`super::claims`]). Every later write of
//! the worker is conditional on the token of the lease (a fencing token).
//!
//! Leases are measured by the database's clock, which all processes share.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::ids::JobId;
use pais_core::warning::Warning;

use super::claims::Claim;
use super::editions::{self, DecidedEdition};
use super::jobs::AttemptCounts;
use super::new_release::{self, NewRelease};
use super::runs::{self, SealedStep};
use super::{JobStatus, Store, StoreError, pg_interval};

/// The state of an attempt, which is written as its lease is renewed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AttemptState {
    /// Share of the work done, 0 to 1.
    pub progress: f64,
    /// The current phase.
    pub phase: Option<&'static str>,
    /// Its counts.
    pub counts: AttemptCounts,
    /// Estimated time until its end; `None` if there is no estimate.
    pub remaining: Option<Duration>,
}

/// The answer to the renewal of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalReply {
    /// The lease is renewed. Continue.
    Held,
    /// The lease is renewed, but the holder has cancelled the job.
    CancelRequested,
    /// The lease is lost: another worker has the job, or the job has ended.
    Lost,
    /// The lease is not renewed: another transaction is changing the job, or the database did not answer.
    NotRenewed,
}

/// The jobs of all organizations that wait and that run.
#[derive(Clone, Copy, Debug, PartialEq, FromRow)]
pub(crate) struct QueueLoad {
    /// Jobs that wait.
    #[sqlx(try_from = "i64")]
    pub queued: u64,
    /// Jobs that run.
    #[sqlx(try_from = "i64")]
    pub running: u64,
    /// How long the first waiting job has waited, in seconds.
    pub age_seconds: f64,
}

/// The current load of the queue.
///
/// # Errors
/// When the database fails.
pub(crate) async fn load(store: &Store) -> Result<QueueLoad, StoreError> {
    let load = sqlx::query_as(
        "SELECT count(*) AS queued,
                (SELECT count(*) FROM jobs WHERE status = 'running') AS running,
                coalesce(extract(epoch FROM $1 - min(created_at)), 0)::float8 AS age_seconds
         FROM jobs WHERE status = 'queued'",
    );
    let now = store.now();
    Ok(load
        .bind(now)
        .fetch_one(&mut *store.connection().await?)
        .await?)
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

/// The renewal of a lease.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRenewal {
    /// The job.
    pub job: JobId,
    /// The token of its lease.
    pub token: Uuid,
    /// The state of the attempt.
    pub state: AttemptState,
}

/// Renews leases, writes the states of their attempts, and returns for each whether it must stop, in
/// the same order. The share of the work done never decreases. The counts are those of this attempt.
///
/// Does not wait for a job that another transaction is changing: its lease is not renewed.
pub async fn renew_leases(
    store: &Store,
    lease: Duration,
    renewals: &[LeaseRenewal],
) -> Result<Vec<RenewalReply>, StoreError> {
    #[derive(FromRow)]
    struct Renewed {
        token: Uuid,
        cancel_requested: Option<bool>,
        is_held: bool,
    }
    fn each<T>(renewals: &[LeaseRenewal], value: impl Fn(&LeaseRenewal) -> T) -> Vec<T> {
        renewals.iter().map(value).collect()
    }
    let rows: Vec<Renewed> = sqlx::query_as(
        "WITH renewals AS (
             SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::float8[], $5::text[], $6::bigint[],
                                  $7::bigint[], $8::float8[])
             AS b (job, token, progress, phase, rows_read, steps_done, remaining)
         ), free AS (
             SELECT j.id FROM jobs j JOIN renewals b ON j.id = b.job AND j.lease_token = b.token
             FOR NO KEY UPDATE OF j SKIP LOCKED
         ), renewed AS (
             UPDATE jobs j SET lease_expires_at = clock_timestamp() + $1,
                               progress = greatest(j.progress, b.progress), phase = b.phase,
                               rows_read = b.rows_read, steps_done = b.steps_done,
                               remaining_seconds = b.remaining
             FROM renewals b
             WHERE j.id = b.job AND j.lease_token = b.token AND j.id IN (SELECT id FROM free)
             RETURNING j.lease_token AS token, j.cancel_requested
         )
         SELECT b.token, r.cancel_requested,
                EXISTS (SELECT FROM jobs j WHERE j.id = b.job AND j.lease_token = b.token) AS is_held
         FROM renewals b LEFT JOIN renewed r ON r.token = b.token",
    )
    .bind(pg_interval(lease))
    .bind(each(renewals, |it| it.job))
    .bind(each(renewals, |it| it.token))
    .bind(each(renewals, |it| it.state.progress))
    .bind(each(renewals, |it| it.state.phase))
    .bind(each(renewals, |it| it.state.counts.rows_read.cast_signed()))
    .bind(each(renewals, |it| it.state.counts.steps_done.cast_signed()))
    .bind(each(renewals, |it| it.state.remaining.map(rounded_seconds)))
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let reply = |row: Renewed| match (row.cancel_requested, row.is_held) {
        (Some(true), _) => (row.token, RenewalReply::CancelRequested),
        (Some(false), _) => (row.token, RenewalReply::Held),
        (None, true) => (row.token, RenewalReply::NotRenewed),
        (None, false) => (row.token, RenewalReply::Lost),
    };
    let replies: HashMap<Uuid, RenewalReply> = rows.into_iter().map(reply).collect();
    let reply = |it: &LeaseRenewal| replies.get(&it.token).copied();
    Ok(each(renewals, |it| {
        reply(it).unwrap_or(RenewalReply::NotRenewed)
    }))
}

/// Writes the warnings about the rows of a job as soon as an attempt has read them.
/// Writes nothing if the lease is lost.
pub(crate) async fn record_warnings(
    store: &Store,
    claim: &Claim,
    warnings: &[Warning],
) -> Result<(), StoreError> {
    sqlx::query("UPDATE jobs SET warnings = $3 WHERE id = $1 AND lease_token = $2")
        .bind(claim.job)
        .bind(claim.token)
        .bind(Json(warnings))
        .execute(&mut *store.connection().await?)
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
    /// What was decided with the release of an edition.
    pub edition: Option<&'a DecidedEdition>,
    /// Called after each chunk of the release. Its rows are written but not yet committed.
    pub written: &'a (dyn Fn() + Sync),
}

impl Default for NewRunResults<'_> {
    fn default() -> Self {
        Self {
            steps: &[],
            sweep: &[],
            release: None,
            edition: None,
            written: &|| {},
        }
    }
}

/// Ends a job as succeeded. Writes its steps, its sweep, its release and its status in one
/// transaction.
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
        edition,
        written,
    } = outcome;
    let mut transaction = store.begin().await?;
    runs::insert_runs(&mut transaction, claim.job, steps, sweep).await?;
    if let Some(release) = release
        && !new_release::insert(&mut transaction, release, written).await?
    {
        transaction.rollback().await?;
        return lost_or_cancelled(store, claim, counts).await;
    }
    if let (Some(release), Some(edition)) = (release, edition) {
        editions::record(&mut transaction, claim.job, release.id, edition).await?;
    }
    let succeeded = JobStatus::Succeeded;
    let ended = end(&mut transaction, store, claim, counts, succeeded, None).await?;
    if ended == EndResult::Written {
        transaction.commit().await?;
        return Ok(ended);
    }
    transaction.rollback().await?;
    lost_or_cancelled(store, claim, counts).await
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

/// Ends a job as failed with a problem document, or as cancelled if its holder had cancelled it.
pub async fn fail(
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
    error: &Value,
) -> Result<EndResult, StoreError> {
    let connection = &mut *store.connection().await?;
    let (failed, error) = (JobStatus::Failed, Some(error));
    end(connection, store, claim, counts, failed, error).await
}

/// Ends a job as cancelled.
pub async fn cancelled(
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
) -> Result<EndResult, StoreError> {
    let connection = &mut *store.connection().await?;
    end(connection, store, claim, counts, JobStatus::Cancelled, None).await
}

/// Ends a job with a status, or as cancelled if its holder had cancelled it.
async fn end(
    connection: &mut PgConnection,
    store: &Store,
    claim: &Claim,
    counts: AttemptCounts,
    status: JobStatus,
    error: Option<&Value>,
) -> Result<EndResult, StoreError> {
    let ended: Option<JobStatus> = sqlx::query_scalar(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE $3 END,
             error = CASE WHEN cancel_requested THEN NULL ELSE $4 END,
             progress = CASE $3 WHEN 'succeeded' THEN 1 ELSE progress END,
             phase = NULL, remaining_seconds = NULL, rows_read = $5, steps_done = $6,
             lease_token = NULL, lease_expires_at = NULL, ended_at = $7
         WHERE id = $1 AND lease_token = $2
         RETURNING status",
    )
    .bind(claim.job)
    .bind(claim.token)
    .bind(status)
    .bind(error)
    .bind(counts.rows_read.cast_signed())
    .bind(counts.steps_done.cast_signed())
    .bind(store.now())
    .fetch_optional(connection)
    .await?;
    Ok(match ended {
        None => EndResult::Lost,
        Some(ended) if ended == status => EndResult::Written,
        Some(_) => EndResult::Cancelled,
    })
}

/// Returns a job to the queue because the service is stopping. The attempt is not counted.
pub async fn requeue(store: &Store, claim: &Claim) -> Result<EndResult, StoreError> {
    let done = sqlx::query(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END,
             ended_at = CASE WHEN cancel_requested THEN $3::timestamptz END,
             attempt = attempt - 1, phase = NULL, remaining_seconds = NULL,
             lease_token = NULL, lease_expires_at = NULL
         WHERE id = $1 AND lease_token = $2",
    )
    .bind(claim.job)
    .bind(claim.token)
    .bind(store.now())
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(if done.rows_affected() == 0 {
        EndResult::Lost
    } else {
        EndResult::Written
    })
}

/// A duration in seconds, rounded to tenths. An estimate is not more precise than that.
fn rounded_seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}
