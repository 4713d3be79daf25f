//! Signed packages: a zip file with the files of a release and a manifest, `manifest.json`, with
//! their SHA-256 and an Ed25519 signature.
//!
//! - [`signing`]: the key that signs, and the public key
//! - [`manifest`]: what the manifest says, and its signed form
//! - [`write`](mod@write): makes a package
//! - [`verify`](mod@verify): checks one
//!
//! A package has one form. Entries are stored without compression in the order of the manifest, which
//! is the last one, and every other byte of the file follows from their names, sizes and contents. So
//! equal files make equal packages, a package expands to no more than its own size, and a changed,
//! added or missing byte is found wherever it is.
//!
//! Nothing here knows HTTP or a database.

#![forbid(unsafe_code)]

mod archive;
pub mod manifest;
pub mod signing;
pub mod verify;
pub mod write;

pub use manifest::{MANIFEST, Manifest, PackagedFile};
pub use signing::{KeyDocument, KeyError, PublicKey, SigningKey};
pub use verify::{Fault, Verification, verify};
pub use write::{PackageError, PackageWriter};
