//! The end of retention: datasets and submissions that are old enough are deleted. What is due is in the
//! database, so that neither a restart nor a failure loses it.

use super::legal_holds::Expiry;
use super::{Store, StoreError, dataset_deletion, datasets, submission_deletion};

/// Deletes the datasets and then the submissions whose retention has ended, unless they have a legal hold.
/// Called periodically. One that cannot be deleted does not keep the others; it is tried again by the next
/// call.
///
/// # Errors
/// When the database fails before all of them are tried.
pub async fn delete_expired(store: &Store) -> Result<Expiry, StoreError> {
    let mut expiry = Expiry::default();
    dataset_deletion::delete_expired(store, &mut expiry).await?;
    submission_deletion::delete_expired(store, &mut expiry).await?;
    dataset_deletion::destroy_remaining_keys(store).await?;
    Ok(expiry)
}

/// Destroys the keys that a crash has left: key files without a dataset or submission, and keys of deleted
/// datasets and submissions. Called at the start of the service.
///
/// # Errors
/// When the database or a key file fails.
pub async fn destroy_leftover_keys(store: &Store) -> Result<(), StoreError> {
    let live = datasets::key_owners(store).await?;
    let destroyed = store.data_keys().destroy_others(live).await?;
    if destroyed > 0 {
        tracing::info!(
            destroyed,
            "key files without a dataset or submission were destroyed"
        );
    }
    dataset_deletion::destroy_remaining_keys(store).await
}
