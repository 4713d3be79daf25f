//! Temporary files that only this process can read: sealed by AES-256-GCM under a key that is drawn for each
//! run and kept only in memory.
//!
//! A file is a sequence of blocks, each sealed for its place, so that it can be read without the others. A file
//! of a [`Sealer`] has no name: it is freed when it is closed, however the process ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pais_seal::{Cipher, NONCE_BYTES, SecretKey, TAG_BYTES, random_key};

/// Makes the sealed files of a run.
#[derive(Clone)]
pub(crate) struct Sealer {
    cipher: Arc<Cipher>,
    directory: Arc<Path>,
    /// Number of files so far; a file's number is part of each of its nonces.
    files: Arc<AtomicU32>,
}

impl Sealer {
    /// Seals files in a directory under a new key.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(crate) fn new(directory: PathBuf) -> io::Result<Self> {
        let key = random_key().map_err(io::Error::other)?;
        Ok(Self {
            cipher: Arc::new(Cipher::new(&key)),
            directory: directory.into(),
            files: Arc::default(),
        })
    }

    /// Number of files so far.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u32 {
        self.files.load(Ordering::Relaxed)
    }

    /// An empty file.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn file(&self) -> io::Result<SealedFile> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        if number == u32::MAX {
            return Err(io::Error::other("too many temporary files"));
        }
        Ok(SealedFile {
            cipher: Arc::clone(&self.cipher),
            file: tempfile::tempfile_in(&*self.directory)?,
            number,
            ends: Vec::new(),
        })
    }
}

/// A sealed file.
pub(crate) struct SealedFile {
    cipher: Arc<Cipher>,
    file: File,
    number: u32,
    /// By block, where it ends.
    ends: Vec<u64>,
}

impl SealedFile {
    /// A file under a key that seals no other one, with the ends of its blocks.
    pub(crate) fn under_own_key(file: File, key: &SecretKey, ends: Vec<u64>) -> Self {
        Self {
            cipher: Arc::new(Cipher::new(key)),
            file,
            number: 0,
            ends,
        }
    }

    /// By block, where it ends.
    pub(crate) fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    /// Appends a block.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn push(&mut self, block: &[u8]) -> io::Result<()> {
        let index = self.ends.len();
        let place = self.place(index);
        let sealed = self.cipher.seal_with(place, block, &place);
        let sealed = sealed.map_err(io::Error::other)?;
        let start = self.ends.last().copied().unwrap_or(0);
        // Also for a block that cannot be written: a nonce never seals two blocks.
        self.ends.push(start + sealed.len() as u64);
        self.file.write_all_at(&sealed, start)
    }

    /// Opens a block.
    ///
    /// # Errors
    /// Those of the file system, and for a block that was changed.
    pub(crate) fn block(&self, index: usize) -> io::Result<Vec<u8>> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut sealed = vec![0; (self.ends[index] - start) as usize];
        self.file.read_exact_at(&mut sealed, start)?;
        let place = self.place(index);
        let opened = self.cipher.open_with(place, &sealed, &place);
        opened.map_err(|_| io::Error::other("a temporary file was changed"))
    }

    /// Size of the blocks, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let sealed = self.ends.last().copied().unwrap_or(0);
        sealed - (self.ends.len() * TAG_BYTES) as u64
    }

    /// The nonce of a block, which no other block of the key has, and what the block is sealed for.
    fn place(&self, index: usize) -> [u8; NONCE_BYTES] {
        let mut place = [0; NONCE_BYTES];
        place[..4].copy_from_slice(&self.number.to_be_bytes());
        place[4..].copy_from_slice(&(index as u64).to_be_bytes());
        place
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::Sealer;

    #[test]
    fn blocks_are_read_in_any_order_and_are_nowhere_in_clear() {
        let directory = tempfile::tempdir().unwrap();
        let sealer = Sealer::new(directory.path().to_owned()).unwrap();
        let mut file = sealer.file().unwrap();
        let blocks = [&b"a planted value"[..], b"", &[7; 300_000]];
        for block in blocks {
            file.push(block).unwrap();
        }
        for index in [2, 0, 1] {
            assert_eq!(file.block(index).unwrap(), blocks[index]);
        }
        let mut sealed = vec![0; *file.ends.last().unwrap() as usize];
        file.file.read_exact_at(&mut sealed, 0).unwrap();
        assert!(
            !sealed
                .windows(7)
                .any(|part| part == b"planted" || part == [7; 7])
        );
        // No name leads to it.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_block_opens_only_in_its_place_and_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let sealer = Sealer::new(directory.path().to_owned()).unwrap();
        let (mut one, mut other) = (sealer.file().unwrap(), sealer.file().unwrap());
        for file in [&mut one, &mut other] {
            file.push(b"first").unwrap();
            file.push(b"again").unwrap();
        }
        let mut sealed = [0; 21];
        one.file.read_exact_at(&mut sealed, 0).unwrap();
        for (file, at) in [(&one, 21), (&other, 0)] {
            file.file.write_all_at(&sealed, at).unwrap();
        }
        assert!(one.block(0).is_ok() && one.block(1).is_err());
        assert!(other.block(0).is_err() && other.block(1).is_ok());
        sealed[3] ^= 1;
        one.file.write_all_at(&sealed, 0).unwrap();
        assert!(one.block(0).is_err());
    }

    #[test]
    fn a_block_after_one_that_was_not_written_has_a_nonce_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let sealer = Sealer::new(directory.path().to_owned()).unwrap();
        let mut file = sealer.file().unwrap();
        let read_only = File::open("/dev/null").unwrap();
        let written = std::mem::replace(&mut file.file, read_only);
        assert!(file.push(b"first").is_err());
        file.file = written;
        file.push(b"again").unwrap();
        assert!(file.block(0).is_err());
        assert_eq!(file.block(1).unwrap(), b"again");
    }
}
