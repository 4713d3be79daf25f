//! Gauges for the operator, in addition to request metrics: the queue, memory, database connections and disks. Each
//! process measures its own resources; the queue is shared by all processes.

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use tokio_util::sync::CancellationToken;

use crate::db::{Store, queue};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::storage::Storage;

/// Time between two measurements, each a statement on indexes of the waiting and the running jobs.
const INTERVAL: Duration = Duration::from_secs(5);

/// Measures until `shutdown` is cancelled.
pub(super) async fn measure(
    store: Store,
    memory: MemoryBudget,
    storage: Arc<Storage>,
    shutdown: CancellationToken,
) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let limit = memory.limit(MemoryUse::Requests) + memory.limit(MemoryUse::Tables);
        gauge!("pais_memory_reserved_bytes").set(memory.used() as f64);
        gauge!("pais_memory_limit_bytes").set(limit as f64);
        for (disk, free) in storage.free_bytes() {
            gauge!("pais_disk_free_bytes", "disk" => disk).set(free as f64);
        }
        let connections = store.connections();
        gauge!("pais_database_connections", "state" => "used").set(connections.used as f64);
        gauge!("pais_database_connections", "state" => "idle").set(connections.idle as f64);
        gauge!("pais_database_connections_limit").set(connections.limit as f64);
        match queue::load(&store).await {
            Ok(load) => {
                gauge!("pais_jobs_queued").set(load.queued as f64);
                gauge!("pais_jobs_running").set(load.running as f64);
                gauge!("pais_queue_age_seconds").set(load.age_seconds);
            }
            Err(error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the queue could not be measured"
            ),
        }
    }
}
