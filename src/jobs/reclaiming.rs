//! The removal of the rows of deleted datasets, and the return of their space to the disk.

use crate::db::{Store, StoreError, reclaim};
use crate::storage::Storage;

/// Removes the rows of deleted datasets, and makes their space usable again. While the disk is nearly
/// full, other rows are moved into it, so that the end of the file goes back to the disk. Then makes the
/// reserve again, if there is space. Can be called at any time, and by several processes.
///
/// # Errors
/// When the database fails. What was removed stays removed, and the next call continues.
pub(crate) async fn reclaim_space(store: &Store, storage: &Storage) -> Result<(), StoreError> {
    let is_tight = || storage.is_tight();
    let removed = reclaim::remove_deleted(store, is_tight).await?;
    // The statistics of the database are some seconds late.
    if removed > 0 || reclaim::has_dead_chunks(store).await? {
        reclaim::vacuum(store).await?;
    }
    // Without its reserve, a tight disk is one that an earlier call has not freed enough.
    if is_tight() && (removed > 0 || storage.lacks_reserve()) {
        reclaim::compact(store, is_tight).await?;
    }
    storage.keep_reserve();
    Ok(())
}
