//! The spool directory: rendered tables, which can be removed at any time, and temporary files. Their
//! size together has a quota.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::StorageError;

/// Prefix of the names of temporary files. Others are rendered tables.
const UNFINISHED: &str = "unfinished-";

/// The spool directory and its quota.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    /// In bytes.
    limit: u64,
    usage: Mutex<Usage>,
}

/// Sizes in bytes.
#[derive(Debug, Default)]
struct Usage {
    /// Of the temporary files, those without a name included.
    temporary: u64,
    /// Of the rendered tables.
    rendered: u64,
}

impl Spool {
    pub(super) fn new(dir: PathBuf, limit: u64) -> Self {
        Self {
            dir,
            limit,
            usage: Mutex::default(),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The share of a temporary file in the quota, 0 bytes at first.
    pub fn lease(self: &Arc<Self>) -> SpoolLease {
        SpoolLease {
            spool: Arc::clone(self),
            bytes: 0,
        }
    }

    /// A temporary file with a name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn named_file(&self) -> io::Result<tempfile::NamedTempFile> {
        fs::create_dir_all(&self.dir)?;
        tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.dir)
    }

    /// Adds to the temporary files; removes the oldest rendered tables where there is no room.
    fn grow(&self, bytes: u64) -> Result<(), StorageError> {
        let mut usage = self.usage.lock();
        let wanted = usage.temporary.saturating_add(bytes);
        if wanted.saturating_add(usage.rendered) > self.limit {
            usage.rendered = remove_oldest(&self.dir, self.limit.saturating_sub(wanted))?;
        }
        if wanted.saturating_add(usage.rendered) > self.limit {
            return Err(StorageError::SpoolFull { limit: self.limit });
        }
        usage.temporary = wanted;
        Ok(())
    }
}

/// The share of one temporary file in the quota, which ends when this is dropped.
#[derive(Debug)]
pub struct SpoolLease {
    spool: Arc<Spool>,
    bytes: u64,
}

impl SpoolLease {
    /// Adds bytes that are about to be written.
    ///
    /// # Errors
    /// [`StorageError::SpoolFull`].
    pub fn grow(&mut self, bytes: u64) -> Result<(), StorageError> {
        self.spool.grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// The temporary file has become a rendered table.
    pub fn keep(mut self) {
        let mut usage = self.spool.usage.lock();
        usage.temporary = usage.temporary.saturating_sub(self.bytes);
        usage.rendered = usage.rendered.saturating_add(self.bytes);
        self.bytes = 0;
    }
}

impl Drop for SpoolLease {
    fn drop(&mut self) {
        let mut usage = self.spool.usage.lock();
        usage.temporary = usage.temporary.saturating_sub(self.bytes);
    }
}

/// Removes the oldest rendered tables until the others have at most `limit` bytes. Returns the bytes
/// of the others. A table that is being sent stays readable.
fn remove_oldest(dir: &Path, limit: u64) -> io::Result<u64> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Another request may have removed the file meanwhile.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if metadata.is_file() && !unfinished {
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((modified, metadata.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in files {
        if total <= limit {
            break;
        }
        if fs::remove_file(&path).is_ok() {
            total -= bytes;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Spool, StorageError};

    #[test]
    fn temporary_files_and_rendered_tables_share_the_quota() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::new(dir.path().to_owned(), 100));
        let mut upload = spool.lease();
        upload.grow(60).unwrap();
        assert!(matches!(
            upload.grow(41),
            Err(StorageError::SpoolFull { limit: 100 })
        ));
        drop(upload);

        for name in ["old", "new"] {
            let mut rendering = spool.lease();
            rendering.grow(40).unwrap();
            std::fs::write(dir.path().join(name), [0; 40]).unwrap();
            rendering.keep();
        }
        let old = std::fs::File::open(dir.path().join("old")).unwrap();
        old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        // The oldest table makes room.
        let mut upload = spool.lease();
        upload.grow(50).unwrap();
        assert!(!dir.path().join("old").exists());
        assert!(dir.path().join("new").exists());
        upload.grow(50).unwrap();
        assert!(!dir.path().join("new").exists());
        assert!(spool.lease().grow(1).is_err());
    }
}
