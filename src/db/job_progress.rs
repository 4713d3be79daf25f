//! The progress of a job, without its definition: what its watchers ask for again and again.

use sqlx::FromRow;

use crate::ids::{JobId, OrganizationId};

use super::queue::AttemptCounts;
use super::{JobStatus, Store, StoreError};

/// The progress of a job.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub(crate) struct JobProgress {
    /// The job.
    pub id: JobId,
    /// Its status.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1; never decreases.
    pub progress: f64,
    /// The current phase, while it runs.
    pub phase: Option<String>,
    /// Number of rows that the job reads.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// The counts of the current attempt.
    #[sqlx(flatten)]
    pub counts: AttemptCounts,
    /// Estimated seconds until its end; `None` if there is no estimate.
    pub remaining_seconds: Option<f64>,
}

/// The progress of a job of the organization; `None` if there is none.
///
/// # Errors
/// When the database fails.
pub(crate) async fn load(
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
