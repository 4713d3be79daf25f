//! The upkeep of the disk: rows of deleted datasets are removed, and the reserve is made again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::store::{StoreError, reclaim};

use super::Service;

/// Time between two attempts to make the reserve.
const RESERVE_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two searches for rows of deleted datasets and for free space inside of files.
const ROWS_INTERVAL: Duration = Duration::from_secs(60);

impl Service {
    /// Keeps the disk in order until the service stops.
    pub async fn keep_storage(self) {
        let mut ticks = interval(RESERVE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut rows_done = Instant::now();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.shutdown.cancelled() => return,
            }
            let storage = Arc::clone(&self.storage);
            match tokio::task::spawn_blocking(move || storage.make_reserve()).await {
                Ok(Ok(true)) => tracing::info!("the reserve was made (storage.reserve_bytes)"),
                Ok(Ok(false)) | Err(_) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the reserve could not be made"),
            }
            if rows_done.elapsed() >= ROWS_INTERVAL {
                self.remove_deleted_rows().await;
                rows_done = Instant::now();
            }
        }
    }

    /// Removes the rows of deleted datasets, and returns free space inside of files to the disk.
    pub(super) async fn remove_deleted_rows(&self) {
        let _guard = self.reclaiming.lock().await;
        let removed = reclaim::remove_deleted(&self.store, || self.storage.is_tight()).await;
        let reclaimed = match removed {
            Ok(_) => self.reclaim_space().await,
            Err(error) => Err(error),
        };
        if let Err(error) = reclaimed {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the rows of deleted datasets could not be removed; this is tried again"
            );
        }
    }

    async fn reclaim_space(&self) -> Result<(), StoreError> {
        if !reclaim::has_dead_chunks(&self.store).await? {
            return Ok(());
        }
        reclaim::vacuum(&self.store).await
    }
}
