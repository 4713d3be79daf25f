//! `/v1/jobs/{id}/events`: a job's progress as server-sent events, until it ends. All watchers of a job
//! share one poll.

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use shared_polls::{Polled, SharedPolls};
use std::sync::Arc;
use std::time::Duration;
use streams::{StreamLimits, StreamPlace, Streams};
use tokio::sync::watch;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::jobs::JobProgress;
use crate::db::jobs::{self, StoredJob};
use crate::db::{JobStatus, StoreError, token_validity};
use crate::ids::{JobId, OrganizationId, TokenId};
use crate::roles::Caller;

use super::error::ApiError;
use super::extract::{Holder, Path};
use super::jobs::JobDocument;
use super::state::{App, AppState};

mod shared_polls;
pub mod streams;

/// Time between two comments, which keep proxies from closing a quiet stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The data of a `progress` event.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ProgressDocument {
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
    let updates = watch_job(&state.of(caller), caller, id).await?;
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

/// Time between two queries of a job.
const JOB_INTERVAL: Duration = Duration::from_millis(200);

/// Time between two checks of a token. Without them, a stream would outlast the revocation of its
/// token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(2);

/// An update on a watched job.
#[derive(Clone, Debug)]
enum JobUpdate {
    /// The current progress. Sent once at the start, and whenever it has changed.
    Progress(JobProgress),
    /// The job has ended. Sent once, as the last update.
    Ended(Arc<StoredJob>),
}

/// What a poll has last seen of a job.
#[derive(Clone, Debug, PartialEq)]
struct SeenJob {
    progress: JobProgress,
    /// The whole job, when it has ended.
    ended: Option<Arc<StoredJob>>,
}

/// What is watched in this process. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    streams: Streams,
    jobs: SharedPolls<(OrganizationId, JobId), SeenJob>,
    /// Whether tokens are valid.
    tokens: SharedPolls<TokenId, ()>,
}

impl Watching {
    pub(crate) fn new(limits: StreamLimits) -> Self {
        Self {
            streams: Streams::new(limits),
            jobs: SharedPolls::new(JOB_INTERVAL),
            tokens: SharedPolls::new(TOKEN_INTERVAL),
        }
    }
}

/// Watches a job. The stream ends after [`JobUpdate::Ended`], when the service stops, or when
/// the caller's token expires or is revoked.
///
/// # Errors
/// `not_found`; `quota_exceeded` if the token or the organization has too many open streams; when
/// the database fails at the start. Later failures are logged and retried.
async fn watch_job(
    app: &App,
    caller: Caller,
    id: JobId,
) -> Result<impl Stream<Item = JobUpdate> + Send + use<>, ApiError> {
    let place = app.watching.streams.open(caller)?;
    let watcher = JobWatcher {
        app: app.clone(),
        job: watched_job(app, caller.organization, id).await?,
        token: watched_token(app, caller.token),
        is_new: true,
        last_sent: None,
        _place: place,
    };
    Ok(unfold(Some(watcher), async |watcher| watcher?.next().await))
}

async fn watched_job(
    app: &App,
    organization: OrganizationId,
    id: JobId,
) -> Result<watch::Receiver<SeenJob>, ApiError> {
    let key = (organization, id);
    if let Some(watched) = app.watching.jobs.join(key) {
        return Ok(watched);
    }
    let job = see_job(app, organization, id).await?;
    let job = job.ok_or_else(ApiError::not_found)?;
    let polled = app.clone();
    let poll = move || {
        let app = polled.clone();
        async move {
            match see_job(&app, organization, id).await {
                Ok(Some(seen)) if seen.ended.is_some() => Polled::Last(seen),
                Ok(Some(seen)) => Polled::Now(seen),
                Ok(None) => Polled::Gone,
                Err(error) => {
                    tracing::warn!(
                        job = %id,
                        error = &error as &dyn std::error::Error,
                        "a watched job could not be loaded"
                    );
                    Polled::Failed
                }
            }
        }
    };
    Ok(app.watching.jobs.watch(key, job, poll))
}

/// The progress of a job, and all of it if it has ended.
async fn see_job(
    app: &App,
    organization: OrganizationId,
    id: JobId,
) -> Result<Option<SeenJob>, StoreError> {
    metrics::counter!("pais_job_polls_total").increment(1);
    let Some(progress) = jobs::progress(&app.db, organization, id).await? else {
        return Ok(None);
    };
    let ended = if progress.status.has_ended() {
        jobs::load(&app.db, &app.keys, organization, id).await?
    } else {
        None
    };
    let ended = ended.map(Arc::new);
    Ok(Some(SeenJob { progress, ended }))
}

fn watched_token(app: &App, token: TokenId) -> watch::Receiver<()> {
    let store = app.db.clone();
    let poll = move || {
        let store = store.clone();
        async move {
            match token_validity::is_valid(&store, token).await {
                Ok(true) => Polled::Now(()),
                Ok(false) => Polled::Gone,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the token of a watcher could not be checked"
                    );
                    Polled::Failed
                }
            }
        }
    };
    app.watching.tokens.watch(token, (), poll)
}

struct JobWatcher {
    app: App,
    job: watch::Receiver<SeenJob>,
    /// Has no sender any more when the token is not valid.
    token: watch::Receiver<()>,
    /// Whether the job was not compared to what was sent.
    is_new: bool,
    last_sent: Option<JobProgress>,
    _place: StreamPlace,
}

impl JobWatcher {
    /// The next update, and the watcher unless it is the last update. `None` when the service stops
    /// or the caller may no longer see the job.
    async fn next(mut self) -> Option<(JobUpdate, Option<Self>)> {
        loop {
            if !self.is_new {
                tokio::select! {
                    biased;
                    () = self.app.shutdown.cancelled() => return None,
                    // Its value never changes, so this is its end.
                    _ = self.token.changed() => return None,
                    changed = self.job.changed() => changed.ok()?,
                }
            }
            let seen = self.job.borrow_and_update().clone();
            if self.last_sent.as_ref() != Some(&seen.progress) {
                self.last_sent = Some(seen.progress.clone());
                self.is_new = seen.ended.is_some();
                return Some((JobUpdate::Progress(seen.progress), Some(self)));
            }
            self.is_new = false;
            if let Some(job) = seen.ended {
                return Some((JobUpdate::Ended(job), None));
            }
        }
    }
}
