//! The space that deleted rows take on the disk of the database.

use super::{Store, StoreError};

/// Gives the space of deleted chunks back to the disk as far as it is at the end of the table's files;
/// the rest is reused by later submissions.
///
/// # Errors
/// When the database fails.
pub async fn free_deleted(store: &Store) -> Result<(), StoreError> {
    sqlx::query("VACUUM (TRUNCATE TRUE) submission_chunks")
        .execute(store.pool())
        .await?;
    Ok(())
}
