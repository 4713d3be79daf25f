//! An encrypted temporary file: the body of an upload that is read from its end.
//!
//! Each file has a key of its own, which is only in the memory of the process. What the file leaves
//! on the disk cannot be read once the file is closed or the process has ended.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use pais_io::read::ReadFailure;
use pais_io::read::parquet::{ChunkReader, Length, SourceResult};
use pais_seal::{SecretKey, random_key};
use zeroize::Zeroizing;

use crate::engine::WorkError;
use crate::problem::{Code, Problem};
use crate::storage::spool::{Spool, SpoolSpace};

/// Bytes that are encrypted and written at once.
const COPY_BYTES: usize = 128 << 10;

const KEY_BYTES: usize = 32;

/// Never used twice with the same key, because each file has its own.
const NONCE: [u8; 12] = [0; 12];

/// A complete encrypted file. It has no name, so its blocks are freed when it is closed, even if the
/// process is killed.
pub(crate) struct SpoolFile {
    file: Arc<File>,
    key: SecretKey,
    bytes: u64,
    /// Its part of the spool directory's limit.
    _space: SpoolSpace,
}

impl SpoolFile {
    /// Copies `source` to a new file in the spool directory, because a Parquet file is read from its end.
    ///
    /// # Errors
    /// Those of the source and of the spool directory.
    pub(crate) fn copy(
        mut source: impl Read,
        spool: &Spool,
    ) -> Result<Self, ReadFailure<WorkError>> {
        let unwritable = |error: io::Error| ReadFailure::Sink(unwritable(&error).into());
        let directory = spool.directory();
        let mut space = spool.temporary_space();
        let key = random_key().map_err(|error| unwritable(io::Error::other(error)))?;
        let mut file = std::fs::create_dir_all(directory)
            .and_then(|()| tempfile::tempfile_in(directory))
            .map_err(unwritable)?;
        let mut cipher = cipher(&key);
        let mut bytes = 0;
        let mut buffer = Zeroizing::new(vec![0; COPY_BYTES]);
        loop {
            let read = source.read(&mut buffer).map_err(ReadFailure::Source)?;
            if read == 0 {
                break;
            }
            let grown = space.grow(read as u64);
            grown.map_err(|full| ReadFailure::Sink(full.into()))?;
            let block = &mut buffer[..read];
            let encrypted = cipher.try_apply_keystream(block);
            encrypted.map_err(|_| unwritable(io::ErrorKind::FileTooLarge.into()))?;
            file.write_all(block).map_err(unwritable)?;
            bytes += read as u64;
        }
        Ok(Self {
            file: Arc::new(file),
            key,
            bytes,
            _space: space,
        })
    }

    fn reader(&self, start: u64) -> io::Result<SpoolReader> {
        let mut cipher = cipher(&self.key);
        let sought = cipher.try_seek(start);
        sought.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(SpoolReader {
            file: self.file.clone(),
            cipher,
            at: start,
        })
    }
}

fn cipher(key: &[u8; KEY_BYTES]) -> ChaCha20 {
    ChaCha20::new(key.into(), &NONCE.into())
}

impl Length for SpoolFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SpoolFile {
    type T = BufReader<SpoolReader>;

    fn get_read(&self, start: u64) -> SourceResult<Self::T> {
        Ok(BufReader::new(self.reader(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> SourceResult<Bytes> {
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.bytes)
        {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut buffer = vec![0; length];
        self.reader(start)?.read_exact(&mut buffer)?;
        Ok(buffer.into())
    }
}

/// Reads and decrypts from a place of the file. Readers do not affect each other's position.
pub(crate) struct SpoolReader {
    file: Arc<File>,
    cipher: ChaCha20,
    at: u64,
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        let decrypted = self.cipher.try_apply_keystream(&mut buffer[..read]);
        decrypted.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        Ok(read)
    }
}

fn unwritable(error: &io::Error) -> Problem {
    tracing::error!(%error, "a submission could not be written to a temporary file");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::new(
            Code::StorageFull,
            "the disk of the directory for uploads is full (storage.spool_dir); send the file again \
             when there is space, or send CSV or NDJSON, which need none there",
        ),
        _ => Problem::new(
            Code::Unavailable,
            "the file could not be stored while it is read (storage.spool_dir)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};
    use std::os::unix::fs::FileExt;

    use pais_io::read::parquet::{ChunkReader, Length};

    use super::{SpoolFile, unwritable};
    use crate::problem::Code;
    use crate::storage::spool::Spool;

    #[test]
    fn what_is_on_the_disk_has_no_planted_value_and_reads_back_from_any_place() {
        let planted = b"patient-7f3a,HIV,41\n";
        let text = planted.repeat(20_000);
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::new(directory.path(), 1 << 30);
        let file = SpoolFile::copy(&*text, &spool).unwrap();
        assert_eq!(file.len(), text.len() as u64);
        let mut on_disk = vec![0; text.len()];
        file.file.read_exact_at(&mut on_disk, 0).unwrap();
        assert_ne!(on_disk, text);
        // Three bytes could occur among so many random ones by chance.
        for value in [&planted[..], b"patient-7f3a", b"7f3a,HIV"] {
            assert!(memchr::memmem::find(&on_disk, value).is_none());
        }
        for start in [0, 1, 63, 64, 65_537, text.len() - 3] {
            let mut rest = Vec::new();
            let mut reader = file.get_read(start as u64).unwrap();
            reader.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, &text[start..], "{start}");
        }
        let middle = file.get_bytes(1000, 20).unwrap();
        assert_eq!(&middle[..], &text[1000..1020]);
        assert!(file.get_bytes(text.len() as u64 - 3, 4).is_err());
        // Another file of the same bytes is encrypted differently.
        let other = SpoolFile::copy(&*text, &spool).unwrap();
        let mut of_other = vec![0; text.len()];
        other.file.read_exact_at(&mut of_other, 0).unwrap();
        assert_ne!(of_other, on_disk);
    }

    #[test]
    fn a_full_disk_is_refused_by_the_name_of_its_setting() {
        // ENOSPC
        let problem = unwritable(&io::Error::from_raw_os_error(28));
        assert_eq!(problem.code, Code::StorageFull);
        assert!(problem.detail.contains("storage.spool_dir"));
        let other = unwritable(&io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(other.code, Code::Unavailable);
    }
}
