//! The progress of a job, without its definition: what its watchers ask for again and again.

use serde_json::Value;
use sqlx::Row;

use crate::ids::{JobId, OrganizationId};

use super::queue::AttemptCounts;
use super::{JobStatus, Store, StoreError};

/// The progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// The job.
    pub id: JobId,
    /// Its status.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1; never decreases.
    pub progress: f64,
    /// The current phase, while it runs.
    pub phase: Option<String>,
    /// Number of rows that the job reads.
    pub rows: u64,
    /// The counts of the current attempt.
    pub counts: AttemptCounts,
    /// Estimated seconds until its end; `None` if there is no estimate.
    pub remaining_seconds: Option<f64>,
}

/// The progress of a job of the organization; `None` if there is none.
///
/// # Errors
/// When the database fails.
pub async fn load(
    store: &Store,
    organization: OrganizationId,
    id: JobId,
) -> Result<Option<JobProgress>, StoreError> {
    let row = sqlx::query(
        "SELECT status, progress, phase, rows, rows_read, steps_done, remaining_seconds
         FROM jobs WHERE id = $1 AND organization_id = $2",
    )
    .bind(id.0)
    .bind(organization.0)
    .fetch_optional(&mut *store.connection().await?)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let status: String = row.try_get("status")?;
    Ok(Some(JobProgress {
        id,
        status: serde_json::from_value(Value::String(status))
            .map_err(|_| StoreError::Damaged { what: "a job" })?,
        progress: row.try_get("progress")?,
        phase: row.try_get("phase")?,
        rows: row.try_get::<i64, _>("rows")?.cast_unsigned(),
        counts: AttemptCounts {
            rows_read: row.try_get::<i64, _>("rows_read")?.cast_unsigned(),
            steps_done: row.try_get::<i64, _>("steps_done")?.cast_unsigned(),
        },
        remaining_seconds: row.try_get("remaining_seconds")?,
    }))
}
