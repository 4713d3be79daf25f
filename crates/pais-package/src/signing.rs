//! Ed25519 keys (RFC 8032), and public keys as JSON Web Keys (RFC 8037).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Length of a public key in bytes.
const PUBLIC_BYTES: usize = 32;

/// Length of a signature in bytes.
const SIGNATURE_BYTES: usize = 64;

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The seed makes no key pair.
    #[error("the seed makes no key pair")]
    Seed,
    /// The document is not an Ed25519 public key.
    #[error(
        "the key is not an Ed25519 public key; expected {{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \
         \"x\": 32 bytes in base64url}}"
    )]
    PublicKey,
}

/// A key that signs packages.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key with this seed: the private key of RFC 8032.
    ///
    /// # Errors
    /// [`KeyError::Seed`].
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(Self).map_err(|_| KeyError::Seed)
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; PUBLIC_BYTES];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    /// The signature of a message, in base64url.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        BASE64.encode(self.0.sign(message))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

/// A key that verifies packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; PUBLIC_BYTES]);

/// A public key as it is written in JSON. Other fields, such as `alg` and `use`, are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDocument {
    /// The curve: `Ed25519`.
    pub crv: String,
    /// The type: `OKP`.
    pub kty: String,
    /// The key: 32 bytes in base64url without padding.
    pub x: String,
}

impl PublicKey {
    /// The key as a document.
    pub fn document(&self) -> KeyDocument {
        KeyDocument {
            crv: "Ed25519".to_owned(),
            kty: "OKP".to_owned(),
            x: BASE64.encode(self.0),
        }
    }

    /// The key of a document.
    ///
    /// # Errors
    /// [`KeyError::PublicKey`].
    pub(crate) fn from_document(document: &KeyDocument) -> Result<Self, KeyError> {
        if document.crv != "Ed25519" || document.kty != "OKP" {
            return Err(KeyError::PublicKey);
        }
        let bytes = BASE64.decode(&document.x).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(KeyError::PublicKey)
    }

    /// The key of a JSON document, such as that at `/.well-known/pais-signing-key.json`.
    ///
    /// # Errors
    /// [`KeyError::PublicKey`].
    pub fn from_json(body: &[u8]) -> Result<Self, KeyError> {
        let document = serde_json::from_slice(body).map_err(|_| KeyError::PublicKey)?;
        Self::from_document(&document)
    }

    /// Whether a signature in base64url is that of this key on a message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = BASE64.decode(signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        signature.len() == SIGNATURE_BYTES && key.verify(message, &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{BASE64, PublicKey, SigningKey};
    use base64::Engine;

    /// RFC 8032, 7.1, test 2, and RFC 8037, A.2.
    #[test]
    fn keys_and_signatures_are_those_of_the_rfcs() {
        let seed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
        let byte = |at: usize| u8::from_str_radix(&seed[2 * at..2 * at + 2], 16).unwrap();
        let key = SigningKey::from_seed(&std::array::from_fn(byte)).unwrap();
        let signature = BASE64.decode(key.sign(&[0x72])).unwrap();
        assert_eq!(signature[..4], [0x92, 0xa0, 0x09, 0xa9]);
        assert!(key.public().verifies(&[0x72], &key.sign(&[0x72])));
        assert!(!key.public().verifies(&[0x73], &key.sign(&[0x72])));

        let document = br#"{"kty":"OKP","crv":"Ed25519","alg":"EdDSA",
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let public = PublicKey::from_json(document).unwrap();
        assert_eq!(PublicKey::from_document(&public.document()), Ok(public));
        for wrong in [
            &br#"{"kty":"OKP","crv":"X25519","x":"AA"}"#[..],
            b"[]",
            b"{}",
        ] {
            assert!(PublicKey::from_json(wrong).is_err());
        }
    }
}
