//! `/v1/jobs/{id}/events`: a job is watched as it runs.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::{Caller, JobId, JobStatus};
use crate::store::jobs::{self, StoredJob};

use super::jobs::JobDocument;
use super::{ApiError, AppState, Holder, Path};

/// How often the job is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Comments that keep proxies from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The data of a `progress` event.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ProgressDocument {
    /// The job.
    pub id: JobId,
    /// Its state.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1.
    pub progress: f64,
    /// What is being done.
    pub phase: Option<String>,
}

/// The events' route.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Watches a job
///
/// A `progress` event now and whenever something has changed, then one `end` event that carries
/// the job, then the end of the stream. A stream that closes without `end` was cut by a
/// restart of the service: open it again.
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
    /// What was loaded and not yet compared.
    fresh: Option<StoredJob>,
    told: Option<ProgressDocument>,
}

impl Watch {
    /// The next event, and the watch unless that was the last one; `None` at shutdown.
    async fn next(mut self) -> Option<(Event, Option<Self>)> {
        loop {
            let job = match self.fresh.take() {
                Some(job) => job,
                None => self.look().await?,
            };
            let now = ProgressDocument {
                id: job.id,
                status: job.status,
                progress: job.progress,
                phase: job.phase.clone(),
            };
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
            match jobs::load(&self.state.store, self.caller.organization, self.id).await {
                Ok(Some(job)) => return Some(job),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(job = %self.id, %error, "a watched job could not be read");
                }
            }
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    // Ids, words and numbers, which are always JSON on one line.
    Event::default()
        .event(name)
        .data(serde_json::to_string(data).unwrap_or_default())
}
