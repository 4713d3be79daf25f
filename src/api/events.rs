//! `/v1/jobs/{id}/events`: a job's progress as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::JobStatus;
use crate::ids::JobId;
use crate::service::watch::{JobProgress, JobUpdate};

use super::error::ApiError;
use super::extract::{Holder, Path};
use super::job_document::JobDocument;
use super::state::AppState;

/// Time between two comments, which keep proxies from closing a quiet stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The data of a `progress` event.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ProgressDocument {
    /// The job.
    pub id: JobId,
    /// Its state.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1; never shrinks.
    pub progress: f64,
    /// What is being done.
    pub phase: Option<String>,
    /// Rows that the job reads.
    pub rows: u64,
    /// Rows read so far.
    pub rows_read: u64,
    /// Specializations performed so far.
    pub steps_done: u64,
    /// Estimated seconds until the end; null while nothing is known.
    pub remaining_seconds: Option<f64>,
}

/// One event of the stream.
#[derive(ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[expect(dead_code, reason = "events are written by axum; this is their schema")]
enum JobEvent {
    /// Something has changed.
    Progress(ProgressDocument),
    /// The job has ended; the stream ends too.
    End(JobDocument),
}

impl From<JobProgress> for ProgressDocument {
    fn from(progress: JobProgress) -> Self {
        Self {
            id: progress.id,
            status: progress.status,
            progress: progress.progress,
            phase: progress.phase,
            rows: progress.rows,
            rows_read: progress.counts.rows_read,
            steps_done: progress.counts.steps_done,
            remaining_seconds: progress.remaining_seconds,
        }
    }
}

/// The route of the events.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Watches a job
///
/// A `progress` event now and whenever something has changed, then one `end` event that carries
/// the job, then the end of the stream. A stream that closes without `end` was cut by a
/// restart of the service, or because its token has expired or was revoked: open it again. A token
/// and an organization have a limited number of open streams; further ones are answered 429.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/events", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 200, description = "`progress` events, then one `end` event; the schema is that \
         of one event, whose `data` is JSON text", body = JobEvent, content_type = "text/event-stream"),
    ),
)]
async fn events(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let updates = state.of(caller).watch_job(caller, id).await?;
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    Ok(Sse::new(updates.map(event)).keep_alive(keep_alive))
}

fn event(update: JobUpdate) -> Result<Event, axum::Error> {
    match update {
        JobUpdate::Progress(progress) => {
            let document = ProgressDocument::from(progress);
            Event::default().event("progress").json_data(document)
        }
        JobUpdate::Ended(job) => {
            let document = JobDocument::from(Arc::unwrap_or_clone(job));
            Event::default().event("end").json_data(document)
        }
    }
}
