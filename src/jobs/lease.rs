//! The heartbeat of an attempt: keeps its lease, tells its progress, learns whether to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::store::Store;
use crate::store::queue::{self, Claim, Pulse};

use super::WorkerSettings;
use super::progress::{Progress, Stop};

/// Most time between two beats: what a request to cancel may wait.
const LONGEST_BEAT: Duration = Duration::from_millis(400);

/// Time between the first beats, so that a short run is seen running: ten a second at most.
const FIRST_BEAT: Duration = Duration::from_millis(100);

/// Between two beats an attempt gets older by such a part of its age.
const BEATS_AN_AGE: u32 = 8;

/// How long to wait for the next beat of an attempt that has run for `age`.
fn pause(age: Duration, heartbeat: Duration) -> Duration {
    let longest = heartbeat.min(LONGEST_BEAT);
    (age / BEATS_AN_AGE).max(FIRST_BEAT).min(longest)
}

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
        let began = Instant::now();
        let mut renewed = began;
        loop {
            tokio::select! {
                () = sleep(pause(began.elapsed(), self.settings.heartbeat)) => {}
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
        let sign = self.progress.now();
        let lease = self.settings.lease;
        let beat = queue::heartbeat(&self.store, &self.claim, lease, &sign);
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
    fn beats_are_quick_at_first_and_never_more_than_ten_a_second() {
        let ms = Duration::from_millis;
        let second = Duration::from_secs(1);
        assert_eq!(pause(Duration::ZERO, second), ms(100));
        assert_eq!(pause(ms(1600), second), ms(200));
        assert_eq!(pause(Duration::from_secs(60), second), ms(400));
        assert_eq!(pause(Duration::from_secs(60), ms(250)), ms(250));
    }
}
