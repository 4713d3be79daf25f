//! `/v1/jobs/{id}/events`: a job is watched as it runs.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::JobId;
use crate::roles::Caller;
use crate::store::JobStatus;
use crate::store::jobs::{self, StoredJob};
use crate::store::{StoreError, tokens};

use super::jobs::JobDocument;
use super::{ApiError, AppState, Holder, Path};

/// How often the job is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often the token is looked at: a stream would outlast its revocation otherwise.
const LOOK_AT_TOKEN: Duration = Duration::from_secs(2);

/// Comments that keep proxies from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

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

impl From<&StoredJob> for ProgressDocument {
    fn from(job: &StoredJob) -> Self {
        Self {
            id: job.id,
            status: job.status,
            progress: job.progress,
            phase: job.phase.clone(),
            rows: job.rows,
            rows_read: job.counts.rows_read,
            steps_done: job.counts.steps_done,
            remaining_seconds: job.remaining_seconds,
        }
    }
}

/// The events' route.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Watches a job
///
/// A `progress` event now and whenever something has changed, then one `end` event that carries
/// the job, then the end of the stream. A stream that closes without `end` was cut by a
/// restart of the service, or because its token has expired or was revoked: open it again.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/events", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 200, description = "`progress` events, whose data is a progress document, then \
         one `end` event, whose data is the job", body = ProgressDocument, content_type = "text/event-stream"),
    ),
)]
async fn events(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let job = jobs::load(&state.store, caller.organization, id).await?;
    let job = job.ok_or_else(ApiError::not_found)?;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watch = Watch {
        state,
        caller,
        id,
        ticks,
        admitted: Instant::now(),
        fresh: Some(job),
        told: None,
    };
    let events = unfold(Some(watch), |watch| async move {
        let (event, watch) = watch?.next().await?;
        Some((Ok(event), watch))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

struct Watch {
    state: AppState,
    caller: Caller,
    id: JobId,
    ticks: Interval,
    /// When the token was last found good.
    admitted: Instant,
    /// What was loaded and not yet compared.
    fresh: Option<StoredJob>,
    told: Option<ProgressDocument>,
}

impl Watch {
    /// The next event, and the watch unless that was the last one; `None` at shutdown, or when
    /// the caller may no longer see the job.
    async fn next(mut self) -> Option<(Event, Option<Self>)> {
        loop {
            let job = match self.fresh.take() {
                Some(job) => job,
                None => self.look().await?,
            };
            let now = ProgressDocument::from(&job);
            if self.told.as_ref() != Some(&now) {
                let event = event("progress", &now);
                self.told = Some(now);
                self.fresh = job.status.has_ended().then_some(job);
                return Some((event, Some(self)));
            }
            if job.status.has_ended() {
                return Some((event("end", &JobDocument::from(job)), None));
            }
        }
    }

    async fn look(&mut self) -> Option<StoredJob> {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {}
                () = self.state.shutdown.cancelled() => return None,
            }
            match self.is_admitted().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::warn!(job = %self.id, %error, "a watcher's token could not be read");
                    continue;
                }
            }
            match jobs::load(&self.state.store, self.caller.organization, self.id).await {
                Ok(Some(job)) => return Some(job),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(job = %self.id, %error, "a watched job could not be read");
                }
            }
        }
    }

    /// Whether the token is still good, as far as it was looked at lately.
    async fn is_admitted(&mut self) -> Result<bool, StoreError> {
        if self.admitted.elapsed() < LOOK_AT_TOKEN {
            return Ok(true);
        }
        let valid = tokens::is_valid(&self.state.store, self.caller.token).await?;
        self.admitted = Instant::now();
        Ok(valid)
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    // Ids, words and numbers, which are always JSON on one line.
    Event::default()
        .event(name)
        .data(serde_json::to_string(data).unwrap_or_default())
}
