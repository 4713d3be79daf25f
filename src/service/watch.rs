//! Watching a job: a stream of its progress, until it ends.

use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::ids::JobId;
use crate::roles::Caller;
use crate::store::jobs::{self, StoredJob};
use crate::store::queue::AttemptCounts;
use crate::store::{JobStatus, StoreError, token_validity};

use super::{Service, ServiceError};

/// Time between two queries of the job.
const JOB_INTERVAL: Duration = Duration::from_millis(200);

/// Time between two checks of the token. Without them, a stream would outlast the revocation of its
/// token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(2);

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

/// An update on a watched job.
#[derive(Clone, Debug)]
pub enum JobUpdate {
    /// The current progress. Sent once at the start, and whenever it has changed.
    Progress(JobProgress),
    /// The job has ended. Sent once, as the last update.
    Ended(Box<StoredJob>),
}

impl From<&StoredJob> for JobProgress {
    fn from(job: &StoredJob) -> Self {
        Self {
            id: job.id,
            status: job.status,
            progress: job.progress,
            phase: job.phase.clone(),
            rows: job.rows,
            counts: job.counts,
            remaining_seconds: job.remaining_seconds,
        }
    }
}

impl Service {
    /// Watches a job. The stream ends after [`JobUpdate::Ended`], when the service stops, or when
    /// the caller's token expires or is revoked.
    ///
    /// # Errors
    /// `not_found`; when the database fails at the start. Later failures are logged and retried.
    pub async fn watch_job(
        &self,
        caller: Caller,
        id: JobId,
    ) -> Result<impl Stream<Item = JobUpdate> + Send + use<>, ServiceError> {
        let job = self.get_job(caller, id).await?;
        let mut ticks = interval(JOB_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watcher = JobWatcher {
            service: self.clone(),
            caller,
            id,
            ticks,
            token_checked: Instant::now(),
            unread: Some(job),
            last_sent: None,
        };
        Ok(unfold(Some(watcher), async |watcher| watcher?.next().await))
    }
}

struct JobWatcher {
    service: Service,
    caller: Caller,
    id: JobId,
    ticks: Interval,
    /// When the token was last found valid.
    token_checked: Instant,
    /// The job as loaded, not yet compared to what was sent.
    unread: Option<StoredJob>,
    last_sent: Option<JobProgress>,
}

impl JobWatcher {
    /// The next update, and the watcher unless it is the last update. `None` when the service stops
    /// or the caller may no longer see the job.
    async fn next(mut self) -> Option<(JobUpdate, Option<Self>)> {
        loop {
            let job = match self.unread.take() {
                Some(job) => job,
                None => self.load().await?,
            };
            let progress = JobProgress::from(&job);
            if self.last_sent.as_ref() != Some(&progress) {
                self.last_sent = Some(progress.clone());
                self.unread = job.status.has_ended().then_some(job);
                return Some((JobUpdate::Progress(progress), Some(self)));
            }
            if job.status.has_ended() {
                return Some((JobUpdate::Ended(Box::new(job)), None));
            }
        }
    }

    /// Loads the job after the next tick.
    async fn load(&mut self) -> Option<StoredJob> {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {}
                () = self.service.shutdown.cancelled() => return None,
            }
            match self.is_token_valid().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::warn!(
                        job = %self.id,
                        error = &error as &dyn std::error::Error,
                        "the token of a watcher could not be checked"
                    );
                    continue;
                }
            }
            let organization = self.caller.organization;
            let (store, keys) = (&self.service.store, &self.service.keys);
            match jobs::load(store, keys, organization, self.id).await {
                Ok(Some(job)) => return Some(job),
                Ok(None) => return None,
                Err(error) => tracing::warn!(
                    job = %self.id,
                    error = &error as &dyn std::error::Error,
                    "a watched job could not be loaded"
                ),
            }
        }
    }

    /// Whether the token is valid, checked at most every [`TOKEN_INTERVAL`].
    async fn is_token_valid(&mut self) -> Result<bool, StoreError> {
        if self.token_checked.elapsed() < TOKEN_INTERVAL {
            return Ok(true);
        }
        let is_valid = token_validity::is_valid(&self.service.store, self.caller.token).await?;
        self.token_checked = Instant::now();
        Ok(is_valid)
    }
}
