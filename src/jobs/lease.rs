//! The heartbeat of an attempt: keeps its lease, tells its progress, learns whether to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::store::Store;
use crate::store::queue::{self, Claim, Pulse};

use super::WorkerSettings;
use super::progress::{Progress, Stop};

/// Most time between two beats: what a request to cancel may wait.
const LONGEST_BEAT: Duration = Duration::from_millis(400);

/// A lease that is kept until this is dropped.
pub(super) struct Lease {
    task: JoinHandle<()>,
}

impl Lease {
    /// Keeps the lease of a claim. When `interrupt` is cancelled the run is asked to stop.
    pub(super) fn keep(
        store: Store,
        claim: Claim,
        settings: WorkerSettings,
        progress: Arc<Progress>,
        interrupt: CancellationToken,
    ) -> Self {
        let beat = Beat {
            store,
            claim,
            settings,
            progress,
        };
        Self {
            task: tokio::spawn(beat.keep(interrupt)),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Beat {
    store: Store,
    claim: Claim,
    settings: WorkerSettings,
    progress: Arc<Progress>,
}

impl Beat {
    async fn keep(self, interrupt: CancellationToken) {
        let mut ticks = tokio::time::interval(self.settings.heartbeat.min(LONGEST_BEAT));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = interrupt.cancelled(), if !self.progress_is_interrupted() => {
                    self.progress.stop(Stop::ShuttingDown);
                }
            }
            let asked = Instant::now();
            match self.once().await {
                Some(Pulse::Held) => renewed = asked,
                Some(Pulse::CancelRequested) => {
                    renewed = asked;
                    self.progress.stop(Stop::Cancelled);
                }
                Some(Pulse::Lost) => return self.progress.stop(Stop::LeaseLost),
                None if renewed.elapsed() >= self.settings.lease => {
                    return self.progress.stop(Stop::LeaseLost);
                }
                None => {}
            }
        }
    }

    fn progress_is_interrupted(&self) -> bool {
        self.progress.stopped().is_some()
    }

    /// `None` when the database did not answer in time.
    async fn once(&self) -> Option<Pulse> {
        let (done, phase) = self.progress.now();
        let lease = self.settings.lease;
        let beat = queue::heartbeat(&self.store, &self.claim, lease, done, phase);
        match tokio::time::timeout(lease, beat).await {
            Ok(Ok(pulse)) => Some(pulse),
            Ok(Err(error)) => {
                tracing::warn!(job = %self.claim.job, %error, "a lease could not be renewed");
                None
            }
            Err(_) => None,
        }
    }
}
