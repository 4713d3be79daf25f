//! `/v1/jobs/{id}/events`: a job's progress as server-sent events, until it ends. All watchers of a job
//! share one poll.

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use shared_polls::{Polled, SharedPolls};
use std::sync::Arc;
use std::time::Duration;
use streams::{StreamLimits, StreamPlace, Streams};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::db::jobs::JobProgress;
use crate::db::jobs::{self, StoredJob};
use crate::db::{StoreError, token_validity};
use crate::ids::{JobId, TokenId};
use crate::jobs::JobKey;

use super::error::ApiError;
use super::extract::{Path, Staff};
use super::state::CallerApp;

pub(in crate::api) mod editions;
mod shared_polls;
pub mod streams;

/// Time between two comments, which keep proxies from closing a quiet stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// One event of the stream.
#[derive(ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[expect(dead_code, reason = "events are written by axum; this is their schema")]
enum JobEvent {
    /// Something has changed.
    Progress(JobProgress),
    /// The job has ended, and the stream ends.
    End(StoredJob),
}

/// Watch a job
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
pub(super) async fn events(
    Staff(app): Staff,
    Path(id): Path<JobId>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let place = app.watching.streams.open(app.caller)?;
    let watcher = JobWatcher {
        job: watched_job(&app, id).await?,
        token: watched_token(&app),
        shutdown: app.shutdown.clone(),
        is_new: true,
        last_sent: None,
        _place: place,
    };
    let events = unfold(Some(watcher), async |watcher| watcher?.next().await);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    Ok(Sse::new(events).keep_alive(keep_alive))
}

/// Time between two queries of a job, which another process may run.
const JOB_INTERVAL: Duration = Duration::from_millis(200);

/// Time between two queries of the editions of a publication.
const EDITIONS_INTERVAL: Duration = Duration::from_millis(400);

/// Time between two checks of a token. Without them, a stream would outlast the revocation of its
/// token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(2);

/// What a poll has last seen of a job.
#[derive(Clone, Debug, PartialEq)]
struct SeenJob {
    progress: JobProgress,
    /// The whole job, when it has ended.
    ended: Option<Arc<StoredJob>>,
}

/// The polls of this process. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    streams: Streams,
    jobs: Arc<SharedPolls<JobKey, SeenJob>>,
    editions: Arc<SharedPolls<editions::Watched, Vec<editions::SeenEdition>>>,
    /// Whether tokens are valid.
    tokens: Arc<SharedPolls<TokenId, ()>>,
}

impl Watching {
    /// `attempts` has the job whose attempt in this process ended last.
    pub(crate) fn new(limits: StreamLimits, attempts: watch::Receiver<Option<JobKey>>) -> Self {
        Self {
            streams: Streams::new(limits),
            jobs: SharedPolls::new(JOB_INTERVAL, Some(attempts)),
            editions: SharedPolls::new(EDITIONS_INTERVAL, None),
            tokens: SharedPolls::new(TOKEN_INTERVAL, None),
        }
    }
}

/// A job of the caller's organization, as it is polled for all its watchers.
async fn watched_job(app: &CallerApp, id: JobId) -> Result<watch::Receiver<SeenJob>, ApiError> {
    let key = JobKey {
        organization: app.caller.organization,
        job: id,
    };
    if let Some(watched) = app.watching.jobs.join(key) {
        return Ok(watched);
    }
    let job = see_job(app, id).await?.ok_or_else(ApiError::not_found)?;
    let polled = app.clone();
    let poll = move || {
        let app = polled.clone();
        async move {
            Ok(match see_job(&app, id).await? {
                Some(seen) if seen.ended.is_some() => Polled::Last(seen),
                Some(seen) => Polled::Now(seen),
                None => Polled::Gone,
            })
        }
    };
    Ok(app.watching.jobs.watch(key, job, poll))
}

/// The progress of a job, and all of it if it has ended.
async fn see_job(app: &CallerApp, id: JobId) -> Result<Option<SeenJob>, StoreError> {
    metrics::counter!("pais_job_polls_total").increment(1);
    let Some(progress) = jobs::progress(&app.db, app.caller.organization, id).await? else {
        return Ok(None);
    };
    let ended = if progress.status.has_ended() {
        jobs::load(&app.db, &app.keys, app.caller.organization, id).await?
    } else {
        None
    };
    let ended = ended.map(Arc::new);
    Ok(Some(SeenJob { progress, ended }))
}

/// The validity of the caller's token. The sender is gone when the token is not valid any more.
fn watched_token(app: &CallerApp) -> watch::Receiver<()> {
    let (store, token) = (app.db.clone(), app.caller.token);
    let poll = move || {
        let store = store.clone();
        async move {
            let is_valid = token_validity::is_valid(&store, token).await?;
            Ok(if is_valid {
                Polled::Now(())
            } else {
                Polled::Gone
            })
        }
    };
    app.watching.tokens.watch(token, (), poll)
}

struct JobWatcher {
    job: watch::Receiver<SeenJob>,
    /// Has no sender any more when the token is not valid.
    token: watch::Receiver<()>,
    shutdown: CancellationToken,
    /// Whether the job has not been compared with what was sent yet.
    is_new: bool,
    last_sent: Option<JobProgress>,
    _place: StreamPlace,
}

impl JobWatcher {
    /// The next event, and the watcher unless it is the last one. `None` when the service stops or
    /// the caller may no longer see the job.
    async fn next(mut self) -> Option<(Result<Event, axum::Error>, Option<Self>)> {
        loop {
            if !self.is_new {
                tokio::select! {
                    biased;
                    () = self.shutdown.cancelled() => return None,
                    // Its value never changes, so this is its end.
                    _ = self.token.changed() => return None,
                    changed = self.job.changed() => changed.ok()?,
                }
            }
            let seen = self.job.borrow_and_update().clone();
            if self.last_sent.as_ref() != Some(&seen.progress) {
                let event = Event::default().event("progress");
                let event = event.json_data(&seen.progress);
                self.last_sent = Some(seen.progress);
                self.is_new = seen.ended.is_some();
                return Some((event, Some(self)));
            }
            self.is_new = false;
            if let Some(job) = seen.ended {
                return Some((Event::default().event("end").json_data(&*job), None));
            }
        }
    }
}
