//! Authenticated encryption of what is stored or sent: AES-256-GCM, each message sealed for one purpose;
//! and keyed digests.
//!
//! Generic code of the cipher and of HMAC is compiled here, where it is optimized in all profiles.

#![forbid(unsafe_code)]

mod digest;

pub use digest::DigestKey;

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use rand::TryRng;
use thiserror::Error;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Bytes of a nonce. No two messages of a key have the same.
pub const NONCE_BYTES: usize = 12;

/// Number of bytes by which a sealed message is longer than the message, without its nonce.
pub const TAG_BYTES: usize = 16;

/// A key of 32 bytes, which is overwritten when it is dropped.
pub type SecretKey = Zeroizing<[u8; KEY_BYTES]>;

/// Data cannot be sealed (encrypted) or opened (decrypted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The key or the purpose is another one, or the data is damaged.
    #[error("sealed data cannot be opened; check that the key file has the key it was sealed with")]
    DoesNotOpen,
    /// The operating system returned no random bytes.
    #[error("the operating system returned no random bytes")]
    NoRandomness,
    /// A message has more than 64 GiB.
    #[error("a message is too large to be sealed")]
    TooLarge,
}

/// A new key, drawn at random.
///
/// # Errors
/// [`SealError::NoRandomness`].
pub fn random_key() -> Result<SecretKey, SealError> {
    let mut key = SecretKey::default();
    random(key.as_mut_slice())?;
    Ok(key)
}

/// Fills a buffer with random bytes of the operating system.
///
/// # Errors
/// [`SealError::NoRandomness`].
pub fn random(bytes: &mut [u8]) -> Result<(), SealError> {
    let filled = rand::rngs::SysRng.try_fill_bytes(bytes);
    filled.map_err(|_| SealError::NoRandomness)
}

/// Seals and opens messages under a key; the key is erased from memory on drop.
#[derive(Clone)]
pub struct Cipher(Aes256Gcm);

impl Cipher {
    /// The cipher of a key.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Aes256Gcm::new(&(*key).into()))
    }

    /// Seals a message for a purpose. The result begins with a random nonce.
    ///
    /// # Errors
    /// [`SealError::NoRandomness`], [`SealError::TooLarge`].
    pub fn seal(&self, message: &[u8], purpose: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce)?;
        let sealed = self.seal_with(nonce, message, purpose)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens a message of [`Self::seal`].
    ///
    /// # Errors
    /// [`SealError::DoesNotOpen`].
    pub fn open(&self, sealed: &[u8], purpose: &[u8]) -> Result<Vec<u8>, SealError> {
        let (nonce, message) = sealed.split_first_chunk().ok_or(SealError::DoesNotOpen)?;
        self.open_with(*nonce, message, purpose)
    }

    /// Seals a message with a nonce that no other message of the key has.
    ///
    /// # Errors
    /// [`SealError::TooLarge`].
    pub fn seal_with(
        &self,
        nonce: [u8; NONCE_BYTES],
        message: &[u8],
        purpose: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let payload = Payload {
            msg: message,
            aad: purpose,
        };
        let sealed = self.0.encrypt(&nonce.into(), payload);
        sealed.map_err(|_| SealError::TooLarge)
    }

    /// Opens a message of [`Self::seal_with`].
    ///
    /// # Errors
    /// [`SealError::DoesNotOpen`].
    pub fn open_with(
        &self,
        nonce: [u8; NONCE_BYTES],
        sealed: &[u8],
        purpose: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let payload = Payload {
            msg: sealed,
            aad: purpose,
        };
        let opened = self.0.decrypt(&nonce.into(), payload);
        opened.map_err(|_| SealError::DoesNotOpen)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cipher, NONCE_BYTES, SealError, TAG_BYTES, random_key};

    #[test]
    fn a_message_opens_only_with_its_key_for_its_purpose_and_as_it_was_sealed() {
        let cipher = Cipher::new(&random_key().unwrap());
        let sealed = cipher.seal(b"a message", b"a purpose").unwrap();
        assert_eq!(sealed.len(), NONCE_BYTES + 9 + TAG_BYTES);
        assert_eq!(cipher.open(&sealed, b"a purpose").unwrap(), b"a message");
        let closed = Err(SealError::DoesNotOpen);
        assert_eq!(cipher.open(&sealed, b"another purpose"), closed);
        let other = Cipher::new(&random_key().unwrap());
        assert_eq!(other.open(&sealed, b"a purpose"), closed);
        for byte in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[byte] ^= 1;
            assert_eq!(cipher.open(&changed, b"a purpose"), closed);
            assert_eq!(cipher.open(&sealed[..byte], b"a purpose"), closed);
        }
    }

    #[test]
    fn equal_messages_are_sealed_differently() {
        let cipher = Cipher::new(&random_key().unwrap());
        let sealed = || cipher.seal(b"a message", b"").unwrap();
        assert_ne!(sealed(), sealed());
    }
}
