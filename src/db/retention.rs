//! The end of retention: datasets and submissions that are old enough are deleted. What is due is in the
//! database, so that neither a restart nor a failure loses it.

use std::fmt::Display;

use super::legal_holds::Deletion;
use super::{Store, StoreError, dataset_deletion, datasets, submission_deletion};

/// What [`delete_expired`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// Number of datasets and submissions that were deleted.
    pub deleted: u64,
    /// Number of those that could not be deleted.
    pub failed: u64,
}

impl Expiry {
    /// Counts one that was due. A failure is in the log.
    pub(super) fn count(&mut self, id: impl Display, result: Result<Deletion, StoreError>) {
        match result {
            Ok(Deletion::Done) => self.deleted += 1,
            // By somebody else, or held since.
            Ok(Deletion::NotFound | Deletion::Held) => {}
            Err(error) => {
                self.failed += 1;
                tracing::error!(
                    %id,
                    error = &error as &dyn std::error::Error,
                    "it could not be deleted at the end of its retention; this is tried again"
                );
            }
        }
    }
}

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
