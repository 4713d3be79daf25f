//! Periodic work: the cleanup deletes datasets and submissions whose retention has ended and old
//! idempotent answers, frees the space of deleted rows, removes files of attempts without a release and of
//! withdrawn releases, and keeps the reserve of the disk; new events of the audit logs get their places in the
//! chains.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::db::key_ring::KeyRing;
use crate::db::{Store, StoreError, audit_chain, deletion, idempotency, reclaim};
use crate::engine::locations;
use crate::storage::Storage;

/// Time between two checks for new events of the audit logs.
const CHAINING_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two cleanups.
const INTERVAL: Duration = Duration::from_secs(60);

/// Time between two searches for keys that interrupted uploads have left.
const KEYS_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Cleans up until `shutdown` is cancelled. Wakes the workers when datasets were deleted, because their jobs
/// must stop.
pub(super) async fn keep(
    store: Store,
    keys: Arc<KeyRing>,
    storage: Arc<Storage>,
    shutdown: CancellationToken,
    wake: Arc<Notify>,
) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The start of the process has already done it.
    let mut keys_done = Instant::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        if keys_done.elapsed() >= KEYS_INTERVAL {
            keys_done = Instant::now();
            if let Err(error) = deletion::destroy_leftover_keys(&store, &keys).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "keys without a dataset or submission could not be destroyed"
                );
            }
        }
        match deletion::delete_expired(&store).await {
            Ok(0) => {}
            Ok(deleted) => {
                tracing::info!(
                    deleted,
                    "datasets and submissions were deleted at the end of their retention"
                );
                wake.notify_waiters();
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "what has expired could not be deleted"
            ),
        }
        if let Err(error) = reclaim_space(&store, &storage).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the space of deleted rows could not be freed"
            );
        }
        if let Err(error) = idempotency::delete_expired(&store).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "old idempotent answers could not be deleted"
            );
        }
    }
}

/// Removes files of attempts without a release and of withdrawn releases until `shutdown` is cancelled. A task
/// of its own: a store that does not answer blocks nothing else.
pub(super) async fn remove_files(store: Store, storage: Arc<Storage>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let removing = async {
            ticks.tick().await;
            locations::remove_files(&store, &storage).await
        };
        tokio::select! {
            removed = removing => {
                if let Err(error) = removed {
                    tracing::warn!(error = &error as &dyn std::error::Error, "files of releases could not be looked for");
                }
            }
            () = shutdown.cancelled() => return,
        }
    }
}

/// Removes the rows of deleted datasets and submissions, and makes their space usable again. While the disk is
/// nearly full, other rows are moved into it, so that the end of the file goes back to the disk. Then makes the
/// reserve again, if there is space. Can be called at any time, and by several processes; the calls of one process
/// wait for each other, so that they do not take all connections for work on the tables.
///
/// # Errors
/// When the database fails. What was removed stays removed, and the next call continues.
pub(crate) async fn reclaim_space(store: &Store, storage: &Storage) -> Result<(), StoreError> {
    let _turn = storage.reclaiming.lock().await;
    let is_tight = || storage.is_tight();
    let removed = reclaim::remove_deleted(store, is_tight).await?;
    // The statistics of the database lag by some seconds.
    if removed > 0 || reclaim::has_dead_chunks(store).await? {
        reclaim::vacuum(store, is_tight).await?;
    }
    // If the reserve is missing on a tight disk, an earlier call has not freed enough.
    if is_tight() && (removed > 0 || storage.lacks_reserve()) {
        reclaim::compact(store, is_tight).await?;
    }
    storage.keep_reserve();
    Ok(())
}

/// Extends the chains until `shutdown` is cancelled, and once more then.
pub(super) async fn chain_events(store: Store, keys: Arc<KeyRing>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(CHAINING_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            () = shutdown.cancelled() => true,
        };
        if let Err(error) = audit_chain::extend(&store, &keys).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "new events of the audit log could not be chained"
            );
        }
        if is_last {
            return;
        }
    }
}
