//! Gives new events of the audit logs their places in the chains.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::db::Store;
use crate::db::audit_chain;
use crate::db::key_ring::KeyRing;

/// Time between two looks for new events.
const INTERVAL: Duration = Duration::from_secs(1);

/// Extends the chains until `shutdown` is cancelled, and once more then.
pub(super) async fn keep(store: Store, keys: Arc<KeyRing>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            () = shutdown.cancelled() => true,
        };
        if let Err(error) = audit_chain::extend(&store, &keys).await {
            tracing::warn!(%error, "new events of the audit log could not be chained");
        }
        if is_last {
            return;
        }
    }
}
