//! Data keys that an earlier version kept in the table of the datasets. They are moved at the start of
//! the service.

use sqlx::Row;
use uuid::Uuid;

use pais_core::definition::DatasetId;

use super::{Store, StoreError, datasets};

/// Moves the keys, rewrites the table so that no old version of a row is left in its files, and
/// destroys keys that a crash has left. Returns the number of moved keys.
///
/// # Errors
/// When the database or a key file fails. What was moved stays moved.
pub async fn move_old_keys(store: &Store) -> Result<u64, StoreError> {
    let mut moved = 0;
    loop {
        let mut transaction = store.begin().await?;
        let row = sqlx::query(
            "SELECT id, wrapped_key FROM datasets WHERE wrapped_key IS NOT NULL LIMIT 1 FOR UPDATE",
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { break };
        let id: Uuid = row.try_get("id")?;
        let wrapped: Vec<u8> = row.try_get("wrapped_key")?;
        let keys = store.data_keys();
        keys.write(&mut transaction, DatasetId(id), &wrapped)
            .await?;
        sqlx::query("UPDATE datasets SET wrapped_key = NULL WHERE id = $1")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        moved += 1;
    }
    if moved > 0 {
        sqlx::query("VACUUM (FULL) datasets")
            .execute(store.owner())
            .await?;
        tracing::info!(
            moved,
            "data keys of an earlier version were moved out of their table"
        );
    }
    let live = datasets::key_owners(store).await?;
    let others = store.data_keys().destroy_others(live).await?;
    if others > 0 {
        tracing::info!(
            others,
            "key files without a dataset or submission were destroyed"
        );
    }
    datasets::destroy_remaining_keys(store).await?;
    Ok(moved)
}
