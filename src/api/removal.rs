//! Removal of data after the deletion that a request makes.

use std::error::Error;
use std::time::Duration;

use crate::db::{RowScope, StoreError};
use crate::jobs::upkeep::reclaim_space;

use super::state::CallerApp;

/// How long a request waits for it.
const REMOVAL_WAIT: Duration = Duration::from_secs(5);

/// Removes data, and waits for a few seconds. What takes longer goes on in the background. A failure is logged:
/// upkeep removes the data later.
pub(super) async fn remove_soon(
    removal: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) {
    let running = tokio::spawn(async move {
        if let Err(error) = removal.await {
            tracing::warn!(
                error = &error as &dyn Error,
                "deleted data could not be removed; this is tried again"
            );
        }
    });
    let _ = tokio::time::timeout(REMOVAL_WAIT, running).await;
}

/// What follows the deletion of rows, which has cancelled their jobs: workers stop these, editions end or are queued
/// again, and the space of the rows is returned.
pub(super) async fn after_deletion(app: &CallerApp) {
    app.wake.notify_waiters();
    app.settle_editions().await;
    // Also what is left of other organizations.
    let store = app.db.within(RowScope::Service);
    let storage = app.storage.clone();
    remove_soon(async move { reclaim_space(&store, &storage).await }).await;
}
