//! The manifest of a package: its files with their SHA-256, signed.
//!
//! What is signed is the manifest without `signature` in the canonical form of RFC 8785: names of
//! fields in alphabetical order, no white space. It has texts and whole numbers below 2^53 only.

use serde::{Deserialize, Serialize};

use crate::signing::{KeyDocument, PublicKey, SigningKey};

/// The name of the manifest in a package.
pub const MANIFEST: &str = "manifest.json";

/// A file of a package, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagedFile {
    /// Its size.
    pub bytes: u64,
    /// Its name, without a directory.
    pub name: String,
    /// The SHA-256 of its content, hexadecimal.
    pub sha256: String,
}

/// The manifest. Fields are in the order of the canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The files, in the order of the package.
    pub files: Vec<PackagedFile>,
    /// The key that verifies the signature.
    pub public_key: KeyDocument,
    /// The release.
    pub release_id: String,
    /// The Ed25519 signature of the canonical form, in base64url.
    pub signature: String,
}

/// The part of a manifest that is signed.
#[derive(Serialize)]
struct Signed<'a> {
    files: &'a [PackagedFile],
    public_key: &'a KeyDocument,
    release_id: &'a str,
}

impl Manifest {
    /// The signed manifest of these files.
    ///
    /// # Errors
    /// Those of the serialization.
    pub(crate) fn sign(
        release_id: &str,
        files: Vec<PackagedFile>,
        key: &SigningKey,
    ) -> serde_json::Result<Self> {
        let mut manifest = Self {
            files,
            public_key: key.public().document(),
            release_id: release_id.to_owned(),
            signature: String::new(),
        };
        manifest.signature = key.sign(&manifest.signed()?);
        Ok(manifest)
    }

    /// Whether the signature is that of a key.
    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> bool {
        let signed = self.signed();
        signed.is_ok_and(|signed| key.verifies(&signed, &self.signature))
    }

    /// The bytes that are signed.
    fn signed(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Signed {
            files: &self.files,
            public_key: &self.public_key,
            release_id: &self.release_id,
        })
    }

    /// The canonical form of the file in a package.
    pub(crate) fn file(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
