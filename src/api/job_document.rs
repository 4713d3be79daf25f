//! A job as it is shown.

use pais_core::definition::{DatasetId, JobDefinition};
use pais_core::warning::Warning;
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::db::JobStatus;
use crate::db::jobs::{JobSummary, StoredJob};
use crate::ids::{JobId, ReleaseId};
use crate::problem::ProblemDocument;

/// A job in its current state, without its definition.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobSummaryDocument {
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
    pub rows: u64,
    /// Rows read so far, by this attempt.
    pub rows_read: u64,
    /// Specializations performed so far, by this attempt; over all combinations of a sweep. 0 for a
    /// job without steps.
    pub steps_done: u64,
    /// Estimated seconds until its end, from the speed it has shown; null while nothing is known,
    /// and for a job that does not run.
    pub remaining_seconds: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProblemDocument>)]
    pub error: Option<Value>,
    /// What the holder should know about its rows; empty until it has read them.
    pub warnings: Vec<Warning>,
    /// The release it made at its end, where it was asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_id: Option<ReleaseId>,
    /// Number of attempts.
    pub attempt: u32,
    /// When it was asked for.
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
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobDocument {
    /// All but what was asked for.
    #[serde(flatten)]
    pub summary: JobSummaryDocument,
    /// What was asked for, as it was sent; when the dataset is deleted, without the sensitive and
    /// pre-generalized values that it lists.
    #[schema(value_type = JobDefinition)]
    pub definition: Value,
}

impl From<StoredJob> for JobDocument {
    fn from(job: StoredJob) -> Self {
        Self {
            summary: job.summary.into(),
            definition: job.definition,
        }
    }
}

impl From<JobSummary> for JobSummaryDocument {
    fn from(job: JobSummary) -> Self {
        Self {
            id: job.id,
            dataset_id: job.dataset,
            status: job.status,
            progress: job.progress,
            phase: job.phase,
            rows: job.rows,
            rows_read: job.counts.rows_read,
            steps_done: job.counts.steps_done,
            remaining_seconds: job.remaining_seconds,
            error: job.error,
            warnings: job.warnings,
            release_id: job.release,
            attempt: job.attempt,
            created_at: job.created_at,
            started_at: job.started_at,
            ended_at: job.ended_at,
        }
    }
}
