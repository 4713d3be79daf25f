//! Waiting for a condition with a deadline, and the pace of slow clients: the only place in which tests sleep.

use std::time::{Duration, Instant};

/// The time between two probes.
const INTERVAL: Duration = Duration::from_millis(20);

/// Probes until there is a value, for at most `limit`; the value, or `None` after the deadline.
pub fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = probe();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Lets time pass if the time itself is tested, such as the pace of a slow client.
#[cfg(feature = "service")]
pub async fn pace(time: Duration) {
    tokio::time::sleep(time).await;
}

/// [`poll`] for a probe that waits itself, without blocking the runtime.
#[cfg(feature = "service")]
pub async fn poll_async<T>(
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = probe().await;
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
