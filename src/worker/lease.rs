//! The heartbeat of an attempt. It renews the lease, reports the progress, and checks whether the
//! run must stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::store::Store;
use crate::store::queue::{self, Claim, HeartbeatReply};

use super::WorkerPoolSettings;
use super::progress::{Progress, StopReason};

/// Longest time between two heartbeats, and so the longest wait of a request to cancel.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// Time between the first heartbeats, at most ten per second, so that the progress of a short run
/// is visible.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The pause before the next heartbeat is the age of the attempt divided by this, within the limits
/// above. So the pauses grow with the age.
const AGE_PER_PAUSE: u32 = 8;

/// How long an attempt that has run for `age` waits before its next heartbeat.
fn pause(age: Duration, heartbeat: Duration) -> Duration {
    let longest = heartbeat.min(LONGEST_PAUSE);
    (age / AGE_PER_PAUSE).max(FIRST_PAUSE).min(longest)
}

/// A lease that a background task renews until this is dropped.
pub(super) struct Lease {
    task: JoinHandle<()>,
}

impl Lease {
    /// Starts to renew the lease of a claim. When `interrupt` is cancelled, the run is asked to
    /// stop.
    pub(super) fn keep(
        store: Store,
        claim: Claim,
        settings: WorkerPoolSettings,
        progress: Arc<Progress>,
        interrupt: CancellationToken,
    ) -> Self {
        let keeper = LeaseKeeper {
            store,
            claim,
            settings,
            progress,
        };
        Self {
            task: tokio::spawn(keeper.run(interrupt)),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The background task that renews a lease.
struct LeaseKeeper {
    store: Store,
    claim: Claim,
    settings: WorkerPoolSettings,
    progress: Arc<Progress>,
}

impl LeaseKeeper {
    /// Sends heartbeats until the lease is lost.
    async fn run(self, interrupt: CancellationToken) {
        let started = Instant::now();
        let mut renewed = started;
        loop {
            tokio::select! {
                () = sleep(pause(started.elapsed(), self.settings.heartbeat)) => {}
                () = interrupt.cancelled(), if !self.progress_is_interrupted() => {
                    self.progress.stop(StopReason::ShuttingDown);
                }
            }
            let sent = Instant::now();
            match self.send_heartbeat().await {
                Some(HeartbeatReply::Held) => renewed = sent,
                Some(HeartbeatReply::CancelRequested) => {
                    renewed = sent;
                    self.progress.stop(StopReason::Cancelled);
                }
                Some(HeartbeatReply::Lost) => return self.progress.stop(StopReason::LeaseLost),
                None if renewed.elapsed() >= self.settings.lease => {
                    return self.progress.stop(StopReason::LeaseLost);
                }
                None => {}
            }
        }
    }

    fn progress_is_interrupted(&self) -> bool {
        self.progress.stopped().is_some()
    }

    /// Sends one heartbeat. Returns `None` if the database fails or does not answer within the
    /// duration of the lease.
    async fn send_heartbeat(&self) -> Option<HeartbeatReply> {
        let state = self.progress.now();
        let lease = self.settings.lease;
        let beat = queue::heartbeat(&self.store, &self.claim, lease, &state);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;

    #[test]
    fn heartbeats_slow_down_with_age_from_ten_per_second() {
        let ms = Duration::from_millis;
        let second = Duration::from_secs(1);
        assert_eq!(pause(Duration::ZERO, second), ms(100));
        assert_eq!(pause(ms(1600), second), ms(200));
        assert_eq!(pause(Duration::from_secs(60), second), ms(400));
        assert_eq!(pause(Duration::from_secs(60), ms(250)), ms(250));
    }
}
