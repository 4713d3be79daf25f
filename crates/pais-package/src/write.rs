//! Writes a package.

use std::io::{self, Read, Seek, Write};

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::archive::{Entry, directory, fits, is_name};
use crate::manifest::{MANIFEST, Manifest, PackagedFile};
use crate::signing::SigningKey;

/// Bytes that are read at a time.
pub(crate) const BLOCK: usize = 64 << 10;

/// Why a package cannot be written.
#[derive(Debug, Error)]
pub enum PackageError {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A name that is not one of a file of a package.
    #[error(
        "a file of a package has a name of letters, digits, `-`, `_` and `.`, which no other file has"
    )]
    Name,
    /// It has more than 4 GiB, or too many files.
    #[error("a package has at most 4 GiB and 4,095 files")]
    TooLarge,
    /// A file has changed while it was packaged.
    #[error("a file has changed while it was packaged")]
    Changed,
    /// The manifest cannot be written as JSON.
    #[error("the manifest cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// Size, CRC-32 and SHA-256 of a content.
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    pub(crate) crc: u32,
    pub(crate) sha256: String,
}

/// Reads a content to its end, passes its blocks to `block`, and measures it.
pub(crate) fn measure(
    content: &mut impl Read,
    mut block: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Measured> {
    let (mut crc, mut sha256) = (crc32fast::Hasher::new(), Sha256::new());
    let mut buffer = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        let read = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        crc.update(read);
        sha256.update(read);
        bytes += read.len() as u64;
        block(read)?;
    }
    let digits = sha256.finalize();
    Ok(Measured {
        bytes,
        crc: crc.finalize(),
        sha256: digits.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

/// Writes a package to `W`, file after file. Memory is one block and the directory.
pub struct PackageWriter<W> {
    out: W,
    entries: Vec<Entry>,
    files: Vec<PackagedFile>,
}

impl<W: Write> PackageWriter<W> {
    /// A package without files.
    pub fn new(out: W) -> Self {
        Self {
            out,
            entries: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Adds a file and returns what the manifest says about it. The content is read twice, from its start.
    ///
    /// # Errors
    /// [`PackageError`].
    pub fn add(
        &mut self,
        name: &str,
        content: &mut (impl Read + Seek),
    ) -> Result<PackagedFile, PackageError> {
        let is_taken = name == MANIFEST || self.files.iter().any(|file| file.name == name);
        if is_taken || !is_name(name) {
            return Err(PackageError::Name);
        }
        let file = self.store(name, content)?;
        self.files.push(file.clone());
        Ok(file)
    }

    /// Adds the signed manifest and ends the package.
    ///
    /// # Errors
    /// [`PackageError`].
    pub fn finish(mut self, release_id: &str, key: &SigningKey) -> Result<W, PackageError> {
        let files = std::mem::take(&mut self.files);
        let manifest = Manifest::sign(release_id, files, key)?.file()?;
        self.store(MANIFEST, &mut io::Cursor::new(manifest))?;
        let directory = directory(&self.entries).ok_or(PackageError::TooLarge)?;
        self.out.write_all(&directory)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn store(
        &mut self,
        name: &str,
        content: &mut (impl Read + Seek),
    ) -> Result<PackagedFile, PackageError> {
        content.rewind()?;
        let measured = measure(content, |_| Ok(()))?;
        self.entries.push(Entry {
            name: name.to_owned(),
            crc: measured.crc,
            bytes: u32::try_from(measured.bytes).map_err(|_| PackageError::TooLarge)?,
        });
        if !fits(&self.entries) {
            return Err(PackageError::TooLarge);
        }
        if let Some(entry) = self.entries.last() {
            self.out.write_all(&entry.local_header())?;
        }
        content.rewind()?;
        let out = &mut self.out;
        let copied = measure(content, |block| out.write_all(block))?;
        if copied.sha256 != measured.sha256 {
            return Err(PackageError::Changed);
        }
        Ok(PackagedFile {
            bytes: measured.bytes,
            name: name.to_owned(),
            sha256: measured.sha256,
        })
    }
}
