//! What a backup needs from the database, and what a restored database needs.

use std::collections::BTreeSet;

use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::key_ring::KeyId;
use super::{Store, StoreError};

/// A state of the database that other programs can read while this lives.
pub struct Snapshot {
    /// Its name, for `pg_dump --snapshot`.
    pub name: String,
    /// The datasets in it that are not deleted, and their submissions: all owners of a key.
    pub key_owners: BTreeSet<Uuid>,
    /// The id of its key-encryption key; `None` before the first start of a service.
    pub key: Option<KeyId>,
    _transaction: Transaction<'static, Postgres>,
}

impl Snapshot {
    /// The present state of the database.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn export(store: &Store) -> Result<Self, StoreError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = store.owner().begin_with(begin).await?;
        let name = sqlx::query_scalar("SELECT pg_export_snapshot()")
            .fetch_one(&mut *transaction)
            .await?;
        let key_owners = sqlx::query_scalar(KEY_OWNERS)
            .fetch_all(&mut *transaction)
            .await?;
        let key = sqlx::query_scalar("SELECT key_id FROM service_keys")
            .fetch_optional(&mut *transaction)
            .await?;
        Ok(Self {
            name,
            key_owners: key_owners.into_iter().collect(),
            key,
            _transaction: transaction,
        })
    }
}

/// All owners of a key.
const KEY_OWNERS: &str = "
    SELECT id FROM datasets WHERE deleted_at IS NULL
    UNION ALL
    SELECT s.id FROM submissions s JOIN datasets d ON d.id = s.dataset_id WHERE d.deleted_at IS NULL";

/// The datasets that are not deleted now, and their submissions.
///
/// # Errors
/// When the database fails.
pub async fn key_owners(store: &Store) -> Result<BTreeSet<Uuid>, StoreError> {
    let owners = sqlx::query_scalar(KEY_OWNERS)
        .fetch_all(store.owner())
        .await?;
    Ok(owners.into_iter().collect())
}

/// Keeps the keys from being rotated until the transaction is dropped.
///
/// # Errors
/// When the database fails.
pub async fn hold_rotation(store: &Store) -> Result<Transaction<'static, Postgres>, StoreError> {
    let mut transaction = store.owner().begin().await?;
    sqlx::query("SELECT FROM service_keys FOR SHARE")
        .execute(&mut *transaction)
        .await?;
    Ok(transaction)
}

/// Binds a restored database to its data directory: the keys of its datasets move there, and the
/// processes that used the original are forgotten, so that interrupted jobs are resumed at once.
///
/// # Errors
/// When the database or a key file fails.
pub async fn adopt(store: &Store) -> Result<(), StoreError> {
    store.data_keys().take_from_table(store).await?;
    // The files of an attempt that was under way belong to the original, where they may be a release by now.
    let forgotten = "DELETE FROM release_locations l
                     WHERE NOT EXISTS (SELECT FROM releases r WHERE r.id = l.release_id)";
    for statement in ["DELETE FROM instances", forgotten] {
        sqlx::query(statement).execute(store.owner()).await?;
    }
    Ok(())
}
