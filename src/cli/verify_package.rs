//! `pais verify-package`: checks the package of a release without a service.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pais_package::{PublicKey, verify};

use super::output::{Failure, print};
use super::sources::DocumentSource;

/// Arguments of `pais verify-package`.
#[derive(Debug, Args)]
pub(crate) struct VerifyPackage {
    /// The package: the answer of `GET /v1/releases/{id}/package`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The public key that must have signed it: a file, or the address of
    /// `/.well-known/pais-signing-key.json` of its service. Without it the key is taken from the
    /// package itself, so anybody can have signed it.
    #[arg(long, value_name = "KEY.json")]
    key: Option<DocumentSource>,
}

impl VerifyPackage {
    /// Checks the package, and prints what was found to standard output; exit status 1 where it is
    /// not as it was signed, else 0.
    ///
    /// # Errors
    /// For a file or a key that cannot be read.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let key = self.key.as_ref().map(|source| {
            let key = PublicKey::from_json(&source.read_public()?);
            key.map_err(|error| Failure::Usage(format!("{source}: {error}")))
        });
        let key = key.transpose()?;
        let unreadable = |error: std::io::Error| Failure::file(&self.file, error);
        let mut file = File::open(&self.file).map_err(unreadable)?;
        let found = verify(&mut file, key.as_ref()).map_err(unreadable)?;
        let (name, holds) = (self.file.display(), found.holds());
        print(|out| {
            use std::io::Write;
            for fault in &found.faults {
                writeln!(out, "{name}: {fault}")?;
            }
            if !holds {
                return writeln!(out, "{name}: the package is not as it was signed");
            }
            let release = found.release_id.as_deref().unwrap_or_default();
            writeln!(out, "{name}: the package of release {release}")?;
            for file in &found.files {
                writeln!(out, "  {}  {:>12}  {}", file.sha256, file.bytes, file.name)?;
            }
            let x = found.public_key.map(|key| key.document().x);
            let x = x.unwrap_or_default();
            writeln!(out, "all files are as they were signed, by the key {x}")?;
            match key {
                Some(_) => writeln!(out, "this is the given key"),
                None => writeln!(
                    out,
                    "the key is from the package itself, which anybody can sign: compare it with the \
                     service's /.well-known/pais-signing-key.json, or give that with --key"
                ),
            }
        })?;
        Ok(ExitCode::from(u8::from(!holds)))
    }
}
