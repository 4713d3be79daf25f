//! `/v1/jobs/{id}/events`: a job's progress as server-sent events, until it ends.

use std::sync::Arc;

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::extract::{Path, Staff};
use crate::api::state::CallerApp;
use crate::db::StoreError;
use crate::db::jobs::{self, JobProgress, StoredJob};
use crate::ids::JobId;
use crate::jobs::JobKey;

use super::shared_polls::Polled;
use super::{KEEP_ALIVE_INTERVAL, Watch};

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
pub(in crate::api) async fn events(
    Staff(app): Staff,
    Path(id): Path<JobId>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let place = app.watching.streams.open(app.caller)?;
    let watcher = JobWatcher {
        watch: Watch::new(&app, place, watched_job(&app, id).await?),
        last_sent: None,
        ended: None,
    };
    let events = unfold(Some(watcher), async |watcher| watcher?.next().await);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    Ok(Sse::new(events).keep_alive(keep_alive))
}

/// What a poll has last seen of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenJob {
    progress: JobProgress,
    /// The whole job, when it has ended.
    ended: Option<Arc<StoredJob>>,
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

struct JobWatcher {
    watch: Watch<SeenJob>,
    last_sent: Option<JobProgress>,
    /// The job, once it has ended.
    ended: Option<Arc<StoredJob>>,
}

impl JobWatcher {
    /// The next event, and the watcher unless it is the last one. `None` when the service stops or
    /// the caller may no longer see the job.
    async fn next(mut self) -> Option<(Result<Event, axum::Error>, Option<Self>)> {
        loop {
            if let Some(job) = self.ended {
                return Some((Event::default().event("end").json_data(&*job), None));
            }
            let seen = self.watch.next().await?;
            self.ended = seen.ended;
            if self.last_sent.as_ref() != Some(&seen.progress) {
                let event = Event::default().event("progress");
                let event = event.json_data(&seen.progress);
                self.last_sent = Some(seen.progress);
                return Some((event, Some(self)));
            }
        }
    }
}
