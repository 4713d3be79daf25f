//! The time that a request waits for its client. Time in which the client waits for the service does
//! not count.

use std::time::{Duration, Instant};

/// Time spent in waiting for a client.
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
