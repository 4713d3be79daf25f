//! Encryption of raw rows at rest: AES-256-GCM with the data key of the dataset. The key-encryption
//! key of the configuration wraps the data keys.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use rand::TryRng;
use thiserror::Error;

use pais_core::definition::{DatasetId, SubmissionId};

const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;

/// Data cannot be sealed (encrypted) or opened (decrypted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The key-encryption key is a different one, or the data is damaged.
    #[error(
        "sealed data cannot be opened; check that encryption.key_file is the one it was sealed with"
    )]
    DoesNotOpen,
    /// The operating system returned no random bytes.
    #[error("the operating system returned no random bytes")]
    NoRandomness,
}

/// The key-encryption key.
pub struct KeyRing {
    cipher: Aes256Gcm,
}

/// The data key of a dataset, ready for use.
pub struct DataKey {
    cipher: Aes256Gcm,
    dataset: DatasetId,
}

impl KeyRing {
    /// Creates a key ring with this key-encryption key.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self {
            cipher: Aes256Gcm::new(&Key::<Aes256Gcm>::from(*key)),
        }
    }

    /// Generates a data key for a dataset, and returns it wrapped.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub fn new_data_key(&self, dataset: DatasetId) -> Result<Vec<u8>, SealError> {
        let mut key = [0; KEY_BYTES];
        random(&mut key)?;
        seal(&self.cipher, &key, dataset.0.as_bytes())
    }

    /// Unwraps the data key of a dataset.
    ///
    /// # Errors
    /// When it was wrapped for another dataset or with another key-encryption key.
    pub fn open(&self, dataset: DatasetId, wrapped: &[u8]) -> Result<DataKey, SealError> {
        let key = open(&self.cipher, wrapped, dataset.0.as_bytes())?;
        let key: [u8; KEY_BYTES] = key.try_into().map_err(|_| SealError::DoesNotOpen)?;
        Ok(DataKey {
            cipher: Aes256Gcm::new(&Key::<Aes256Gcm>::from(key)),
            dataset,
        })
    }
}

impl DataKey {
    /// Seals a chunk. It can be opened only as the chunk with this index of this submission.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub fn seal_chunk(
        &self,
        submission: SubmissionId,
        index: u32,
        chunk: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        seal(
            &self.cipher,
            chunk,
            &self.associated(submission.0.as_bytes(), index),
        )
    }

    /// Opens a chunk.
    ///
    /// # Errors
    /// When it is a different chunk, or damaged.
    pub fn open_chunk(
        &self,
        submission: SubmissionId,
        index: u32,
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        open(
            &self.cipher,
            sealed,
            &self.associated(submission.0.as_bytes(), index),
        )
    }

    /// Seals data of a step of a run of a job.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub fn seal_step(
        &self,
        job: crate::ids::JobId,
        run: u32,
        step: u32,
        bytes: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        seal(&self.cipher, bytes, &self.associated_step(job, run, step))
    }

    /// Opens data of a step of a run of a job.
    ///
    /// # Errors
    /// When it belongs to a different step, or is damaged.
    pub fn open_step(
        &self,
        job: crate::ids::JobId,
        run: u32,
        step: u32,
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        open(&self.cipher, sealed, &self.associated_step(job, run, step))
    }

    fn associated_step(&self, job: crate::ids::JobId, run: u32, step: u32) -> Vec<u8> {
        let mut data = self.associated(job.0.as_bytes(), step).to_vec();
        // The first run has the same associated data as steps had before there were sweeps, so that
        // steps of that time can still be opened.
        if run > 0 {
            data.extend_from_slice(&run.to_be_bytes());
        }
        data
    }

    fn associated(&self, part: &[u8; 16], index: u32) -> [u8; 36] {
        let mut data = [0; 36];
        data[..16].copy_from_slice(self.dataset.0.as_bytes());
        data[16..32].copy_from_slice(part);
        data[32..].copy_from_slice(&index.to_be_bytes());
        data
    }
}

fn random(bytes: &mut [u8]) -> Result<(), SealError> {
    rand::rngs::SysRng
        .try_fill_bytes(bytes)
        .map_err(|_| SealError::NoRandomness)
}

fn seal(cipher: &Aes256Gcm, message: &[u8], associated: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut nonce = [0; NONCE_BYTES];
    random(&mut nonce)?;
    let payload = Payload {
        msg: message,
        aad: associated,
    };
    let sealed = cipher
        .encrypt(&Nonce::from(nonce), payload)
        .map_err(|_| SealError::DoesNotOpen)?;
    Ok([nonce.as_slice(), &sealed].concat())
}

fn open(cipher: &Aes256Gcm, sealed: &[u8], associated: &[u8]) -> Result<Vec<u8>, SealError> {
    let (nonce, message) = sealed
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or(SealError::DoesNotOpen)?;
    let payload = Payload {
        msg: message,
        aad: associated,
    };
    cipher
        .decrypt(&Nonce::from(*nonce), payload)
        .map_err(|_| SealError::DoesNotOpen)
}

#[cfg(test)]
mod tests {
    use super::{KeyRing, SealError};
    use pais_core::definition::{DatasetId, SubmissionId};

    #[test]
    fn a_chunk_opens_only_with_its_own_key_submission_and_index() {
        let (dataset, submission) = (DatasetId::new(), SubmissionId::new());
        let ring = KeyRing::new(&[7; 32]);
        let wrapped = ring.new_data_key(dataset).unwrap();
        let key = ring.open(dataset, &wrapped).unwrap();
        let sealed = key.seal_chunk(submission, 3, b"rows").unwrap();
        assert_eq!(key.open_chunk(submission, 3, &sealed).unwrap(), b"rows");
        assert_eq!(
            key.open_chunk(submission, 4, &sealed),
            Err(SealError::DoesNotOpen)
        );
        assert_eq!(
            key.open_chunk(SubmissionId::new(), 3, &sealed),
            Err(SealError::DoesNotOpen)
        );
        assert!(ring.open(DatasetId::new(), &wrapped).is_err());
        assert!(KeyRing::new(&[8; 32]).open(dataset, &wrapped).is_err());
    }
}
