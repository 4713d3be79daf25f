//! The key-encryption keys, which wrap the data keys of the datasets and the service's own key.
//!
//! A wrapped key begins with the id of the key-encryption key that wraps it. While the keys are
//! rotated there are two: a process that meets an id it does not know reads its source again.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use uuid::Uuid;
use zeroize::Zeroizing;

use pais_core::definition::DatasetId;
use pais_package::{KeyError, SigningKey};
use pais_seal::{Cipher, DigestKey, KEY_BYTES, SealError, SecretKey, random_key};

use super::seal::DataKey;

/// Reads the key-encryption keys anew; the current one is the first.
pub type KeySource = Box<dyn Fn() -> Option<Vec<SecretKey>> + Send + Sync>;

/// The first byte of a wrapped key.
const VERSION: u8 = 1;

/// Authenticates the service's own key.
const SERVICE_KEY: &[u8] = b"pais: service key, with a root of the audit logs";

/// The id of a key-encryption key: a part of a keyed digest, which says nothing about the key.
#[derive(Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// The id of the key that wraps `wrapped`, and what it has sealed.
    fn of_wrapped(wrapped: &[u8]) -> Option<(Self, &[u8])> {
        let (id, sealed) = wrapped.strip_prefix(&[VERSION])?.split_first_chunk()?;
        Some((Self(*id), sealed))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// A key-encryption key.
struct WrappingKey {
    id: KeyId,
    cipher: Cipher,
}

impl WrappingKey {
    fn new(key: &SecretKey) -> Self {
        let digest = DigestKey::derive(key, "pais: id of a key-encryption key").bytes();
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        Self {
            id: KeyId(id),
            cipher: Cipher::new(key),
        }
    }

    fn wrap(&self, key: &[u8], associated: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut wrapped = vec![VERSION];
        wrapped.extend_from_slice(&self.id.0);
        wrapped.extend(self.cipher.seal(key, associated)?);
        Ok(wrapped)
    }
}

/// The key-encryption keys of the process, and the keys derived from the service's own key.
pub struct KeyRing {
    /// The current one first. Not empty.
    keys: RwLock<Arc<Vec<WrappingKey>>>,
    source: Option<KeySource>,
    /// The service's own key.
    service: SecretKey,
}

impl KeyRing {
    /// A key ring with one key, from which the service's key is also derived.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let key = Zeroizing::new(*key);
        Self::with_keys(std::slice::from_ref(&key), None, &key)
    }

    /// A key ring with these keys, the current one first; `None` if there are none. `source` reads
    /// them again. `service` is the service's own key.
    pub(crate) fn with_source(
        keys: &[SecretKey],
        source: Option<KeySource>,
        service: &SecretKey,
    ) -> Option<Self> {
        (!keys.is_empty()).then(|| Self::with_keys(keys, source, service))
    }

    fn with_keys(keys: &[SecretKey], source: Option<KeySource>, service: &SecretKey) -> Self {
        let keys = keys.iter().map(WrappingKey::new).collect();
        Self {
            keys: RwLock::new(Arc::new(keys)),
            source,
            service: service.clone(),
        }
    }

    /// The key of a purpose, derived from the service's own key.
    pub(super) fn derived(&self, purpose: &str) -> DigestKey {
        DigestKey::derive(&self.service, purpose)
    }

    /// The id of the current key.
    pub fn current(&self) -> KeyId {
        self.keys.read()[0].id
    }

    /// Reads the keys again. Nothing changes if that fails.
    pub(crate) fn reload(&self) {
        let Some(keys) = self.source.as_ref().and_then(|source| source()) else {
            return;
        };
        if !keys.is_empty() {
            let keys = keys.iter().map(WrappingKey::new).collect();
            *self.keys.write() = Arc::new(keys);
        }
    }

    /// Generates a data key for a dataset, and returns it wrapped.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn new_data_key(&self, dataset: DatasetId) -> Result<Vec<u8>, SealError> {
        let key = random_key()?;
        self.keys.read()[0].wrap(key.as_slice(), dataset.0.as_bytes())
    }

    /// Unwraps the data key of a dataset.
    ///
    /// # Errors
    /// When it was wrapped for another dataset or with a missing key-encryption key.
    pub fn open(&self, dataset: DatasetId, wrapped: &[u8]) -> Result<DataKey, SealError> {
        let key = self.unwrap_key(wrapped, dataset.0.as_bytes())?;
        Ok(DataKey::new(&key, dataset))
    }

    /// The data key of a dataset wrapped with the key of this id, which another process may have made the
    /// current one.
    ///
    /// # Errors
    /// As for [`KeyRing::open`], and when the key of this id is missing.
    pub(crate) fn rewrap(
        &self,
        current: KeyId,
        dataset: DatasetId,
        wrapped: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let associated = dataset.0.as_bytes();
        // Once the keys are read again, the key that it is wrapped with may be gone.
        let key = self.unwrap_key(wrapped, associated)?;
        if self.current() != current {
            self.reload();
        }
        let keys = self.keys.read();
        if keys[0].id != current {
            return Err(SealError::DoesNotOpen);
        }
        keys[0].wrap(key.as_slice(), associated)
    }

    /// Whether a key is wrapped with the current key.
    pub(crate) fn is_current(&self, wrapped: &[u8]) -> bool {
        KeyId::of_wrapped(wrapped).is_some_and(|(id, _)| id == self.current())
    }

    /// Wraps the service's own key with the current key.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn wrap_service_key(&self, key: &SecretKey) -> Result<Vec<u8>, SealError> {
        self.keys.read()[0].wrap(key.as_slice(), SERVICE_KEY)
    }

    /// Unwraps the service's own key.
    ///
    /// # Errors
    /// When it was wrapped with a missing key-encryption key.
    pub(crate) fn open_service_key(&self, wrapped: &[u8]) -> Result<SecretKey, SealError> {
        self.unwrap_key(wrapped, SERVICE_KEY)
    }

    /// Whether this is the service's own key of the ring, wrapped with a key of the ring.
    pub(crate) fn is_own_service_key(&self, wrapped: &[u8]) -> bool {
        let opened = self.open_service_key(wrapped);
        opened.is_ok_and(|opened| opened == self.service)
    }

    fn unwrap_key(&self, wrapped: &[u8], associated: &[u8]) -> Result<SecretKey, SealError> {
        let opened = self.unwrap_with_known(wrapped, associated);
        if opened.is_ok() || self.source.is_none() {
            return opened;
        }
        // The keys may have been rotated by another process.
        self.reload();
        self.unwrap_with_known(wrapped, associated)
    }

    fn unwrap_with_known(&self, wrapped: &[u8], associated: &[u8]) -> Result<SecretKey, SealError> {
        let (id, sealed) = KeyId::of_wrapped(wrapped).ok_or(SealError::DoesNotOpen)?;
        let keys = self.keys.read().clone();
        let known = keys.iter().find(|key| key.id == id);
        let known = known.ok_or(SealError::DoesNotOpen)?;
        let bytes = Zeroizing::new(known.cipher.open(sealed, associated)?);
        let key = <[u8; KEY_BYTES]>::try_from(bytes.as_slice());
        key.map(Zeroizing::new).map_err(|_| SealError::DoesNotOpen)
    }

    /// The mark of the directory with the keys of the database.
    pub(super) fn database_mark(&self) -> [u8; 32] {
        *self.derived("pais: directory of data keys").bytes()
    }

    /// The key that signs packages. It is derived from the service's own key, so it stays the same when the
    /// key-encryption keys are rotated.
    ///
    /// # Errors
    /// When no key pair can be made.
    pub(crate) fn signing_key(&self) -> Result<SigningKey, KeyError> {
        let seed = self.derived("pais: signatures of packages").bytes();
        SigningKey::from_seed(&seed)
    }

    /// The fingerprint of the body of a request, given by its SHA-256: without the key it cannot be
    /// compared to the digest of a guessed body. Equal bodies of two reservations have different
    /// fingerprints.
    pub(crate) fn fingerprint(&self, reservation: Uuid, body_sha256: &[u8]) -> [u8; 32] {
        self.derived("pais: fingerprints of request bodies")
            .digest(&[reservation.as_bytes(), body_sha256])
    }

    /// Authenticates a link to a report.
    pub(crate) fn report_link(&self, body: &[u8]) -> [u8; 32] {
        self.derived("pais: links to reports").digest(&[body])
    }

    fn answers(&self) -> Cipher {
        Cipher::new(&self.derived("pais: answers stored for retries").bytes())
    }

    /// Seals the answer that is stored under a reservation.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn seal_answer(&self, reservation: Uuid, body: &[u8]) -> Result<Vec<u8>, SealError> {
        self.answers().seal(body, reservation.as_bytes())
    }

    /// Opens the answer that is stored under a reservation.
    ///
    /// # Errors
    /// When it belongs to another reservation, or is damaged.
    pub(crate) fn open_answer(
        &self,
        reservation: Uuid,
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        self.answers().open(sealed, reservation.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use zeroize::Zeroizing;

    use super::{KeyRing, KeySource};
    use crate::db::seal::SealedItem;
    use pais_core::definition::{DatasetId, SubmissionId};
    use pais_seal::{SealError, SecretKey};

    fn secret(byte: u8) -> SecretKey {
        Zeroizing::new([byte; 32])
    }

    #[test]
    fn a_process_finds_the_key_that_another_one_has_rotated_to() {
        let dataset = DatasetId::new();
        let file = Arc::new(Mutex::new(vec![secret(1)]));
        let source: KeySource = {
            let file = file.clone();
            Box::new(move || Some(file.lock().clone()))
        };
        let service = secret(9);
        let ring = KeyRing::with_source(&[secret(1)], Some(source), &service).unwrap();
        let wrapped = ring.new_data_key(dataset).unwrap();
        let place = SealedItem::BodySha256(SubmissionId::new());
        let sealed = ring.open(dataset, &wrapped).unwrap().seal(place, b"x");
        let sealed = sealed.unwrap();

        let rotating = KeyRing::with_source(&[secret(2), secret(1)], None, &service).unwrap();
        assert!(!rotating.is_current(&wrapped));
        let current = rotating.current();
        let rewrapped = rotating.rewrap(current, dataset, &wrapped).unwrap();
        assert!(rotating.is_current(&rewrapped));
        assert_eq!(
            ring.open(dataset, &rewrapped).err(),
            Some(SealError::DoesNotOpen)
        );
        assert_eq!(
            ring.rewrap(current, dataset, &wrapped).err(),
            Some(SealError::DoesNotOpen)
        );
        *file.lock() = vec![secret(2)];
        // A key that was made with the old key is wrapped with the new one.
        let made_before = ring.rewrap(current, dataset, &wrapped).unwrap();
        assert!(rotating.is_current(&made_before));
        let opened = ring.open(dataset, &rewrapped).unwrap();
        assert_eq!(opened.open(place, &sealed).unwrap(), b"x");
        assert_eq!(ring.current(), rotating.current());
        // The old key is gone.
        assert!(ring.open(dataset, &wrapped).is_err());
        // Packages are signed with the same key before and after.
        let public = |ring: &KeyRing| ring.signing_key().unwrap().public();
        assert_eq!(public(&ring), public(&rotating));
        let wrapped_service = rotating.wrap_service_key(&service).unwrap();
        let opened = ring.open_service_key(&wrapped_service).unwrap();
        assert!(opened == service);
    }
}
