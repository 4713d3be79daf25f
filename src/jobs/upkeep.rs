//! What is done now and then: datasets whose retention has ended, answers that were kept long
//! enough.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::store::{Store, datasets, idempotency};

const EVERY: Duration = Duration::from_secs(60);

/// Keeps house until `shutdown`; wakes the workers when jobs lost their dataset.
pub(super) async fn keep(store: Store, shutdown: CancellationToken, wake: Arc<Notify>) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        match datasets::delete_expired(&store).await {
            Ok(0) => {}
            Ok(deleted) => {
                tracing::info!(
                    deleted,
                    "datasets were deleted at the end of their retention"
                );
                wake.notify_waiters();
            }
            Err(error) => tracing::warn!(%error, "expired datasets could not be deleted"),
        }
        if let Err(error) = idempotency::sweep(&store).await {
            tracing::warn!(%error, "old idempotent answers could not be forgotten");
        }
    }
}
