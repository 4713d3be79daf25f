//! How slowly a client may send an upload. Time in which the client waits for the service does not count.

use std::time::{Duration, Instant};

use crate::engine::ingest::body::BodyError;

/// Limits of the time that a client may take. Only time spent waiting for it counts.
#[derive(Clone, Copy, Debug)]
pub struct UploadPace {
    /// Longest time without a byte.
    pub max_silence: Duration,
    /// Longest time until the body is complete.
    pub max_duration: Duration,
    /// Minimum average rate, in bytes per second; 0 for no limit.
    pub bytes_per_second: u64,
    /// Time after which the rate is checked.
    pub start_up: Duration,
}

impl Default for UploadPace {
    fn default() -> Self {
        Self {
            max_silence: Duration::from_secs(30),
            max_duration: Duration::from_secs(3600),
            bytes_per_second: 1024,
            start_up: Duration::from_secs(30),
        }
    }
}

impl UploadPace {
    /// How long to wait for the next bytes, after `received` bytes in `time`.
    pub(super) fn max_wait(&self, received: u64, time: &ClientTime) -> Duration {
        let left = self.allowed(received).min(self.max_duration);
        left.saturating_sub(time.spent()).min(self.max_silence)
    }

    /// Why the wait is over.
    pub(super) fn error(&self, received: u64, time: &ClientTime) -> BodyError {
        if time.spent() >= self.max_duration {
            BodyError::TooLong(self.max_duration.as_secs())
        } else if time.spent() >= self.allowed(received) {
            BodyError::TooSlow(self.bytes_per_second)
        } else {
            BodyError::Stalled
        }
    }

    /// The time allowed for this many bytes at their rate.
    fn allowed(&self, received: u64) -> Duration {
        match received.checked_div(self.bytes_per_second) {
            Some(seconds) => self.start_up.max(Duration::from_secs(seconds)),
            None => Duration::MAX,
        }
    }
}

/// Time spent waiting for a client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientTime {
    spent: Duration,
}

impl ClientTime {
    /// The time so far.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Waits for the client up to `limit`; `None` if it sends nothing in this time.
    pub(crate) async fn wait<T>(
        &mut self,
        limit: Duration,
        next: impl Future<Output = T>,
    ) -> Option<T> {
        let started = Instant::now();
        let next = tokio::time::timeout(limit, next).await;
        self.spent += started.elapsed();
        next.ok()
    }
}
