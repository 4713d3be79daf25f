//! The progress of a job, without its definition: what its watchers ask for again and again.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::ids::{JobId, OrganizationId};

use super::{JobStatus, Store, StoreError};

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
