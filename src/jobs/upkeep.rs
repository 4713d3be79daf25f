//! Periodic cleanup: deletes datasets and submissions whose retention has ended and old idempotent answers, frees the
//! space of deleted rows, and keeps the reserve of the disk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::db::legal_holds::Expiry;
use crate::db::{Store, idempotency, retention};
use crate::storage::Storage;

use super::reclaiming::reclaim_space;

/// Time between two cleanups.
const INTERVAL: Duration = Duration::from_secs(60);

/// Cleans up until `shutdown` is cancelled. Wakes the workers when datasets were deleted, because their jobs
/// must stop.
pub(super) async fn keep(
    store: Store,
    storage: Arc<Storage>,
    shutdown: CancellationToken,
    wake: Arc<Notify>,
) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        match retention::delete_expired(&store).await {
            Ok(Expiry { deleted: 0, .. }) => {}
            Ok(Expiry { deleted, .. }) => {
                tracing::info!(
                    deleted,
                    "datasets and submissions were deleted at the end of their retention"
                );
                wake.notify_waiters();
            }
            Err(error) => tracing::warn!(%error, "what has expired could not be deleted"),
        }
        if let Err(error) = reclaim_space(&store, &storage).await {
            tracing::warn!(%error, "the space of deleted rows could not be freed");
        }
        if let Err(error) = idempotency::delete_expired(&store).await {
            tracing::warn!(%error, "old idempotent answers could not be deleted");
        }
    }
}
