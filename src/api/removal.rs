//! Removal of data after the deletion that a request makes.

use std::error::Error;
use std::time::Duration;

use crate::db::StoreError;

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
