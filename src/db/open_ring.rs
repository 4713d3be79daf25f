//! Which key-encryption key a database belongs to. It is checked at every start, so that two services never
//! wrap keys of one database with different keys.

use pais_seal::{SecretKey, random_key};

use super::key_ring::{KeyId, KeyRing, KeySource};
use super::service_keys::{StoredServiceKey, find};
use super::{RowScope, Store, StoreError, audit_chain};

/// Why the keys are not those of the database.
#[derive(Debug, thiserror::Error)]
pub enum KeyMismatch {
    /// The database belongs to another key.
    #[error(
        "the key-encryption key is not the one of this database: the database has the key with the \
         fingerprint {expected}, this is {found}; restore that key"
    )]
    Fingerprint {
        /// The id of the database's key.
        expected: KeyId,
        /// The id of the given key.
        found: KeyId,
    },
    /// There is no key.
    #[error("there is no key-encryption key")]
    NoKey,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The key ring with these keys, the current one first, if they are those of the database. A database
/// without a service key gets one.
///
/// # Errors
/// [`KeyMismatch`].
pub async fn open_ring(
    store: &Store,
    keys: &[SecretKey],
    source: Option<KeySource>,
) -> Result<KeyRing, KeyMismatch> {
    let first = keys.first().ok_or(KeyMismatch::NoKey)?;
    let probe = KeyRing::with_source(keys, None, first).ok_or(KeyMismatch::NoKey)?;
    let stored = match find(store).await? {
        Some(stored) => stored,
        None => create(store, &probe).await?,
    };
    let service =
        probe
            .open_service_key(&stored.wrapped_key)
            .map_err(|_| KeyMismatch::Fingerprint {
                expected: stored.key_id,
                found: probe.current(),
            })?;
    KeyRing::with_source(keys, source, &service).ok_or(KeyMismatch::NoKey)
}

/// Makes the service's key, and with it the root of the audit logs, which do not exist yet.
async fn create(store: &Store, ring: &KeyRing) -> Result<StoredServiceKey, StoreError> {
    let service = random_key()?;
    let wrapped = ring.wrap_service_key(&service)?;
    let mut transaction = store.within(RowScope::Service).begin().await?;
    audit_chain::lock(&mut transaction).await?;
    // Another process may create it at the same time; the first one wins.
    let created = sqlx::query(
        "INSERT INTO service_keys (key_id, wrapped_key) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(ring.current())
    .bind(&wrapped)
    .execute(&mut *transaction)
    .await?;
    if created.rows_affected() == 1 {
        audit_chain::write_root(&mut transaction, &KeyRing::new(&service)).await?;
    }
    transaction.commit().await?;
    let created = find(store).await?;
    created.ok_or(StoreError::Damaged("the service's key"))
}
