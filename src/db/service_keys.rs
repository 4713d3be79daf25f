//! The service's own key in a database, and the data keys that belong to the same key-encryption key.

use sqlx::{FromRow, PgConnection};

use pais_core::definition::DatasetId;

use super::data_keys::KeyOwner;
use super::dataset_revisions::lock_dataset;
use super::key_ring::{KeyId, KeyRing};
use super::submissions::{self, Which};
use super::{Store, StoreError};

/// Whether the database has no service key yet, so that it can belong to a new key.
pub async fn is_new(store: &Store) -> Result<bool, StoreError> {
    Ok(find(store).await?.is_none())
}

/// The service's key as it is stored.
#[derive(FromRow)]
pub(super) struct StoredServiceKey {
    pub(super) key_id: KeyId,
    pub(super) wrapped_key: Vec<u8>,
}

pub(super) async fn find(store: &Store) -> Result<Option<StoredServiceKey>, StoreError> {
    let stored = sqlx::query_as("SELECT key_id, wrapped_key FROM service_keys");
    Ok(stored
        .fetch_optional(&mut *store.connection().await?)
        .await?)
}

/// Makes sure that a data key which is about to be stored is wrapped with the current key of the
/// database, and that the keys are not rotated before the transaction ends.
///
/// # Errors
/// When the database fails, or the current key is not known to this process.
pub(super) async fn current_wrapping(
    connection: &mut PgConnection,
    ring: &KeyRing,
    dataset: DatasetId,
    wrapped: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    let current: Option<KeyId> = sqlx::query_scalar("SELECT key_id FROM service_keys FOR SHARE")
        .fetch_optional(connection)
        .await?;
    let Some(current) = current else {
        return Ok(wrapped);
    };
    if ring.current() == current && ring.is_current(&wrapped) {
        return Ok(wrapped);
    }
    Ok(ring.rewrap(current, dataset, &wrapped)?)
}

/// Makes sure that the database still has the service key of the ring. A dump that is restored under a
/// running service has its own service key, and data authenticated with another key can no longer be verified.
///
/// # Errors
/// [`StoreError::Replaced`]; when the database fails.
pub(super) async fn check_own(
    connection: &mut PgConnection,
    ring: &KeyRing,
) -> Result<(), StoreError> {
    let wrapped: Option<Vec<u8>> = sqlx::query_scalar("SELECT wrapped_key FROM service_keys")
        .fetch_optional(connection)
        .await?;
    match wrapped {
        Some(wrapped) if !ring.is_own_service_key(&wrapped) => Err(StoreError::Replaced),
        _ => Ok(()),
    }
}

/// Keeps other rotations of the key file away until the connection is dropped; `None` if one is running.
///
/// # Errors
/// When the database fails.
pub async fn lock_rotation(store: &Store) -> Result<Option<PgConnection>, StoreError> {
    let mut connection = store.owner().acquire().await?.detach();
    let is_alone: bool =
        sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended('pais keys rotate', 18))")
            .fetch_one(&mut connection)
            .await?;
    Ok(is_alone.then_some(connection))
}

/// The result of [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCheck {
    /// Number of datasets whose keys open.
    pub good: usize,
    /// The datasets whose key, or that of a submission, is missing or does not open.
    pub bad: Vec<DatasetId>,
}

/// Tries to open the key of every dataset that is not deleted, and those of its submissions.
///
/// # Errors
/// When the database or a key file fails.
pub async fn check(store: &Store, ring: &KeyRing) -> Result<KeyCheck, StoreError> {
    let mut result = KeyCheck {
        good: 0,
        bad: Vec::new(),
    };
    for dataset in live_datasets(store).await? {
        let wrapped = read(store, dataset).await?;
        let opened = wrapped.and_then(|wrapped| ring.open(dataset, &wrapped).ok());
        let is_good = match &opened {
            Some(key) => match submissions::keys(store, key, dataset, Which::Stored).await {
                Ok(_) => true,
                Err(StoreError::Damaged(_)) => false,
                Err(error) => return Err(error),
            },
            None => false,
        };
        if is_good {
            result.good += 1;
        } else {
            result.bad.push(dataset);
        }
    }
    Ok(result)
}

async fn read(store: &Store, owner: impl Into<KeyOwner>) -> Result<Option<Vec<u8>>, StoreError> {
    let mut connection = store.connection().await?;
    store.data_keys().read(&mut *connection, owner).await
}

/// Wraps every data key and the service's key with the current key of the ring. Datasets that are
/// created meanwhile wait. It can be repeated after a failure. Returns the number of datasets.
///
/// # Errors
/// When the database or a key file fails, or a key does not open: then nothing in the database has
/// changed, and key files that have changed open with the new key.
pub async fn rewrap_all(store: &Store, ring: &KeyRing) -> Result<usize, StoreError> {
    let mut transaction = store.begin().await?;
    let wrapped: Vec<u8> = sqlx::query_scalar("SELECT wrapped_key FROM service_keys FOR UPDATE")
        .fetch_one(&mut *transaction)
        .await?;
    let service = ring.open_service_key(&wrapped)?;
    let mut rewrapped = 0;
    for dataset in live_datasets(store).await? {
        // From here on it cannot be deleted: its key would be written again after it was destroyed.
        if lock_dataset(&mut transaction, dataset).await?.is_none() {
            continue;
        }
        let wrapped = store.data_keys().read(&mut *transaction, dataset).await?;
        let Some(wrapped) = wrapped else { continue };
        rewrapped += 1;
        if !ring.is_current(&wrapped) {
            let wrapped = ring.rewrap(ring.current(), dataset, &wrapped)?;
            let keys = store.data_keys();
            keys.write(&mut transaction, dataset, &wrapped).await?;
        }
    }
    sqlx::query("UPDATE service_keys SET key_id = $1, wrapped_key = $2")
        .bind(ring.current())
        .bind(ring.wrap_service_key(&service)?)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(rewrapped)
}

/// The datasets that are not deleted.
async fn live_datasets(store: &Store) -> Result<Vec<DatasetId>, StoreError> {
    let ids = sqlx::query_scalar("SELECT id FROM datasets WHERE deleted_at IS NULL ORDER BY id");
    Ok(ids.fetch_all(&mut *store.connection().await?).await?)
}
