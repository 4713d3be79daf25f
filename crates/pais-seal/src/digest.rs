//! Keyed digests: HMAC-SHA-256 (RFC 2104) under keys that are derived for one purpose each.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroize;

use crate::{KEY_BYTES, SecretKey};

/// The block size of SHA-256, to which HMAC pads a shorter key with zeros.
const BLOCK_BYTES: usize = 64;

/// A key of HMAC-SHA-256 that serves one purpose. It is overwritten when it is dropped.
#[derive(Clone)]
pub struct DigestKey([u8; KEY_BYTES]);

impl Drop for DigestKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl DigestKey {
    /// Derives the key of a purpose. Keys of different purposes say nothing about each other or
    /// about `key`.
    pub fn derive(key: &[u8; KEY_BYTES], purpose: &str) -> Self {
        Self(Self(*key).digest(&[purpose.as_bytes()]))
    }

    /// The HMAC of the concatenated parts. All parts except the last must have fixed lengths.
    pub fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut block = [0; BLOCK_BYTES];
        block[..KEY_BYTES].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        block.zeroize();
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// The key itself.
    pub fn bytes(&self) -> SecretKey {
        SecretKey::new(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::DigestKey;

    /// RFC 4231, test case 1 with its key of 20 bytes padded with zeros, which HMAC does too.
    #[test]
    fn a_digest_is_that_of_the_standard() {
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let digest = DigestKey(key).digest(&[b"Hi ", b"There"]);
        let expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn each_purpose_has_its_own_key() {
        let one = DigestKey::derive(&[7; 32], "one");
        assert_eq!(one.bytes(), DigestKey::derive(&[7; 32], "one").bytes());
        assert_ne!(one.bytes(), DigestKey::derive(&[7; 32], "two").bytes());
        assert_ne!(one.bytes(), DigestKey::derive(&[8; 32], "one").bytes());
    }
}
