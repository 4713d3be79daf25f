//! Claims: which job of the queue runs next, and under which lease.
//!
//! Organizations take turns: the next is the one with the fewest running jobs and, among these, the one whose
//! last claim is the oldest. Claims are made one at a time in the whole database, so limits are exact.
//!
//! If the process of an earlier attempt ended, the job may have caused that, so the job then runs alone.

use std::time::Duration;

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::ids::{JobId, OrganizationId};
use crate::telemetry::traces::TraceContext;
use pais_core::definition::{DatasetId, SubmissionId};

use super::definition_at_rest::DefinitionAtRest;
use super::{Store, StoreError, pg_interval};

/// A job, and the lease under which a worker runs it.
#[derive(Clone, Debug, FromRow)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The dataset it runs on.
    pub dataset: DatasetId,
    /// The definition of the job.
    #[sqlx(flatten)]
    pub definition: DefinitionAtRest,
    /// The submissions to read.
    pub submissions: Vec<SubmissionId>,
    /// Number of this attempt, from 1.
    #[sqlx(try_from = "i32")]
    pub attempt: u32,
    /// The token of the lease. Writes succeed only while it is current.
    pub token: Uuid,
    /// Share of the work done that earlier attempts have reported, 0 to 1.
    pub progress: f64,
    /// The span of the request that made the job.
    pub trace: Option<TraceContext>,
}

/// The rules of claims.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRules {
    /// Duration of a lease.
    pub lease: Duration,
    /// Number of attempts at a job before it fails.
    pub max_attempts: u32,
    /// Number of jobs of one organization that run at the same time; 0 for no limit.
    pub running_per_organization: u32,
}

/// Whether a job shares its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Together with other jobs of its process.
    Shared,
    /// As the only job of its process, because an earlier attempt ended with its process.
    Exclusive,
}

/// Which jobs can be claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct Claimable {
    /// Whether there is one for [`Isolation::Shared`].
    pub shared: bool,
    /// Whether there is one for [`Isolation::Exclusive`].
    pub exclusive: bool,
}

/// Key of the advisory lock that makes claims one at a time.
const CLAIM_LOCK: i64 = 0x7061_6973_0009;

/// `ready` are the jobs that can be claimed. `$1` is the maximum number of attempts, `$2` that of
/// running jobs of an organization.
///
/// `waiting` is the oldest job of each organization, found by one probe of an index for each.
/// `lapsed` are the jobs whose lease has expired or whose process is dead. If the process has sent a
/// heartbeat after the lease expired, the loss does not count as an attempt.
macro_rules! ready {
    () => {
        "WITH RECURSIVE waiting AS (
             (SELECT organization_id, id FROM jobs WHERE status = 'queued' AND attempt = 0
              ORDER BY organization_id, id LIMIT 1)
             UNION ALL
             SELECT n.organization_id, n.id FROM waiting w CROSS JOIN LATERAL (
                 SELECT j.organization_id, j.id FROM jobs j
                 WHERE j.status = 'queued' AND j.attempt = 0
                   AND j.organization_id > w.organization_id
                 ORDER BY j.organization_id, j.id LIMIT 1) n
         ), lapsed AS (
             SELECT j.id, j.organization_id, j.attempt, j.lease_token, j.lease_expires_at,
                    coalesce(i.seen_at > j.lease_expires_at, false) AS free
             FROM jobs j LEFT JOIN instances i ON i.id = j.lease_instance
             WHERE j.status = 'running' AND NOT j.cancel_requested
               AND (j.lease_expires_at < clock_timestamp()
                    OR (j.lease_instance IS NOT NULL AND i.id IS NULL))
         ), candidates AS (
             SELECT id, organization_id, false AS exclusive, true AS counted, NULL::uuid AS token,
                    NULL::timestamptz AS expires_at FROM waiting
             UNION ALL
             SELECT id, organization_id, true, true, NULL, NULL FROM jobs
             WHERE status = 'queued' AND attempt > 0
             UNION ALL
             SELECT id, organization_id, NOT free OR attempt > 1, NOT free, lease_token,
                    lease_expires_at FROM lapsed
             WHERE free OR attempt < $1
         ), running AS (
             SELECT organization_id, count(*) AS jobs FROM jobs
             WHERE status = 'running' AND id NOT IN (SELECT id FROM lapsed)
             GROUP BY organization_id
         ), ready AS (
             SELECT c.*, coalesce(r.jobs, 0) AS running, o.job_claimed_at
             FROM candidates c JOIN organizations o ON o.id = c.organization_id
                  LEFT JOIN running r ON r.organization_id = c.organization_id
             WHERE $2 = 0 OR coalesce(r.jobs, 0) < $2
         ) "
    };
}

/// Which jobs can be claimed now. Cheap: an idle worker calls it repeatedly.
pub async fn claimable(store: &Store, rules: &ClaimRules) -> Result<Claimable, StoreError> {
    Ok(sqlx::query_as(concat!(
        ready!(),
        "SELECT coalesce(bool_or(NOT exclusive), false) AS shared,
                coalesce(bool_or(exclusive), false) AS exclusive FROM ready"
    ))
    .bind(rules.max_attempts.cast_signed())
    .bind(i64::from(rules.running_per_organization))
    .fetch_one(&mut *store.connection().await?)
    .await?)
}

/// Claims the next job that runs with this isolation; `None` if there is none.
pub async fn claim(
    store: &Store,
    rules: &ClaimRules,
    isolation: Isolation,
) -> Result<Option<Claim>, StoreError> {
    let mut transaction = store.begin().await?;
    // A process that is stopped between these statements must not block the others.
    sqlx::query(
        "SELECT set_config('idle_in_transaction_session_timeout', '5s', true),
                pg_advisory_xact_lock($1)",
    )
    .bind(CLAIM_LOCK)
    .execute(&mut *transaction)
    .await?;
    let claim = sqlx::query_as(concat!(
        ready!(),
        ", next AS (
             SELECT j.id, r.counted, r.organization_id FROM ready r JOIN jobs j ON j.id = r.id
             WHERE r.exclusive = $3 AND (j.status = 'queued' OR (
                 j.status = 'running' AND j.lease_token = r.token
                 AND j.lease_expires_at = r.expires_at AND NOT j.cancel_requested))
             ORDER BY r.running, r.job_claimed_at NULLS FIRST, j.id
             LIMIT 1 FOR NO KEY UPDATE OF j SKIP LOCKED
         ), turn AS (
             UPDATE organizations SET job_claimed_at = clock_timestamp()
             WHERE id IN (SELECT organization_id FROM next)
         )
         UPDATE jobs SET status = 'running', attempt = jobs.attempt + next.counted::integer,
                         counted_lease = CASE WHEN next.counted THEN jobs.lease_token END,
                         lease_token = $4, lease_expires_at = clock_timestamp() + $5,
                         lease_instance = (SELECT i.id FROM instances i WHERE i.id = $6),
                         started_at = coalesce(jobs.started_at, $7),
                         rows_read = 0, steps_done = 0, remaining_seconds = NULL,
                         warnings = '[]'
         FROM next WHERE jobs.id = next.id
         RETURNING jobs.id AS job, jobs.organization_id AS organization, dataset_id AS dataset,
                   definition AS shown, sealed_definition AS sealed, submissions, attempt,
                   lease_token AS token, progress, trace_context AS trace"
    ))
    .bind(rules.max_attempts.cast_signed())
    .bind(i64::from(rules.running_per_organization))
    .bind(isolation == Isolation::Exclusive)
    .bind(Uuid::new_v4())
    .bind(pg_interval(rules.lease))
    .bind(store.instance())
    .bind(store.now())
    .fetch_optional(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(claim)
}

/// Ends jobs whose lease has expired or whose process is dead, and that have no attempt left or are
/// cancelled. `error` is the problem document of those that fail.
pub async fn end_exhausted(
    store: &Store,
    max_attempts: u32,
    error: &Value,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE jobs SET
             status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'failed' END,
             error = CASE WHEN cancel_requested THEN NULL ELSE $1 END,
             phase = NULL, remaining_seconds = NULL, lease_token = NULL,
             lease_expires_at = NULL, ended_at = $2
         WHERE id IN (
             SELECT j.id FROM jobs j LEFT JOIN instances i ON i.id = j.lease_instance
             WHERE j.status = 'running'
               AND (j.lease_expires_at < clock_timestamp()
                    OR (j.lease_instance IS NOT NULL AND i.id IS NULL))
               AND (j.cancel_requested OR (
                   j.attempt >= $3 AND NOT coalesce(i.seen_at > j.lease_expires_at, false)))
             FOR NO KEY UPDATE OF j SKIP LOCKED)",
    )
    .bind(error)
    .bind(store.now())
    .bind(max_attempts.cast_signed())
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(())
}

/// Takes back the attempt that the loss of this lease has cost. For a process that has lost its lease but is
/// alive, so that the job did not end the process.
pub async fn take_back_attempt(store: &Store, job: JobId, lease: Uuid) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE jobs SET attempt = attempt - 1, counted_lease = NULL
         WHERE id = $1 AND counted_lease = $2 AND attempt > 1 AND status IN ('queued', 'running')",
    )
    .bind(job)
    .bind(lease)
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(())
}
