//! Watching a job: a stream of its progress, until it ends. All watchers of a job share one poll.

use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;

use crate::db::jobs::{self, StoredJob};
use crate::db::{StoreError, job_progress, token_validity};
use crate::ids::{JobId, OrganizationId, TokenId};
use crate::roles::Caller;

use super::shared_polls::{Polled, SharedPolls};
use super::streams::{StreamLimits, StreamPlace, Streams};
use super::{ApiError, App};

pub use crate::db::job_progress::JobProgress;

/// Time between two queries of a job.
const JOB_INTERVAL: Duration = Duration::from_millis(200);

/// Time between two checks of a token. Without them, a stream would outlast the revocation of its
/// token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(2);

/// An update on a watched job.
#[derive(Clone, Debug)]
pub enum JobUpdate {
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

impl App {
    /// Watches a job. The stream ends after [`JobUpdate::Ended`], when the service stops, or when
    /// the caller's token expires or is revoked.
    ///
    /// # Errors
    /// `not_found`; `quota_exceeded` if the token or the organization has too many open streams; when
    /// the database fails at the start. Later failures are logged and retried.
    pub async fn watch_job(
        &self,
        caller: Caller,
        id: JobId,
    ) -> Result<impl Stream<Item = JobUpdate> + Send + use<>, ApiError> {
        let place = self.watching.streams.open(caller)?;
        let watcher = JobWatcher {
            service: self.clone(),
            job: self.watched_job(caller.organization, id).await?,
            token: self.watched_token(caller.token),
            is_new: true,
            last_sent: None,
            _place: place,
        };
        Ok(unfold(Some(watcher), async |watcher| watcher?.next().await))
    }

    async fn watched_job(
        &self,
        organization: OrganizationId,
        id: JobId,
    ) -> Result<watch::Receiver<SeenJob>, ApiError> {
        let key = (organization, id);
        if let Some(watched) = self.watching.jobs.join(key) {
            return Ok(watched);
        }
        let job = self.see_job(organization, id).await?;
        let job = job.ok_or_else(ApiError::not_found)?;
        let service = self.clone();
        let poll = move || {
            let service = service.clone();
            async move {
                match service.see_job(organization, id).await {
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
        Ok(self.watching.jobs.watch(key, job, poll))
    }

    /// The progress of a job, and all of it if it has ended.
    async fn see_job(
        &self,
        organization: OrganizationId,
        id: JobId,
    ) -> Result<Option<SeenJob>, StoreError> {
        metrics::counter!("pais_job_polls_total").increment(1);
        let Some(progress) = job_progress::load(&self.db, organization, id).await? else {
            return Ok(None);
        };
        let ended = if progress.status.has_ended() {
            jobs::load(&self.db, &self.keys, organization, id).await?
        } else {
            None
        };
        let ended = ended.map(Arc::new);
        Ok(Some(SeenJob { progress, ended }))
    }

    fn watched_token(&self, token: TokenId) -> watch::Receiver<()> {
        let store = self.db.clone();
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
        self.watching.tokens.watch(token, (), poll)
    }
}

struct JobWatcher {
    service: App,
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
                    () = self.service.shutdown.cancelled() => return None,
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
