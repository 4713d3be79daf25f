//! The spool directory: rendered releases, which are kept as long as they fit, and temporary files of
//! uploads, which have no name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::problem::{Code, Problem};

/// Prefix of files that are being written.
pub(crate) const UNFINISHED: &str = "unfinished-";

/// The age at which an unfinished file is considered to belong to a process that died.
const STALE: Duration = Duration::from_secs(60 * 60);

/// A spool directory and its limit.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    limit: u64,
    /// Size of the files without a name.
    temporary: Arc<AtomicU64>,
    is_served: bool,
}

/// Space that a temporary file takes, released when this is dropped.
#[derive(Debug)]
pub(crate) struct SpoolSpace {
    limit: u64,
    temporary: Arc<AtomicU64>,
    bytes: u64,
}

impl Spool {
    /// The spool directory `directory`, with at most `limit` bytes of files.
    pub(crate) fn new(directory: &Path, limit: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            limit,
            temporary: Arc::default(),
            is_served: true,
        }
    }

    /// The spool directory of a process that answers no downloads.
    pub fn of_jobs(self) -> Self {
        Self {
            is_served: false,
            ..self
        }
    }

    /// Whether this process answers downloads from the directory.
    pub(crate) fn is_served(&self) -> bool {
        self.is_served
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Maximum size of all files, so also of one.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Space for a temporary file, which takes none at first.
    pub(crate) fn temporary_space(&self) -> SpoolSpace {
        SpoolSpace {
            limit: self.limit,
            temporary: self.temporary.clone(),
            bytes: 0,
        }
    }

    /// Removes all rendered files. One that is open is freed when it is closed.
    pub(crate) fn remove_rendered(&self) {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten();
        let names = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            !name.to_string_lossy().starts_with(UNFINISHED)
        });
        for entry in names {
            // A directory, or a file that another request has removed, stays as it is.
            let _ = std::fs::remove_file(entry.path());
        }
    }

    /// Removes unfinished files of earlier processes, and the oldest rendered files until the rest is within
    /// the limit together with the temporary files. Never removes `newest`.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(crate) fn remove_oldest(&self, newest: &Path) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            // Another request may have removed the file meanwhile.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if !metadata.is_file() {
                continue;
            }
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
            if unfinished && modified.elapsed().unwrap_or_default() > STALE {
                let _ = std::fs::remove_file(entry.path());
            } else if !unfinished {
                files.push((modified, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let rendered: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        let mut total = rendered + self.temporary.load(Ordering::Relaxed);
        for (_, bytes, path) in files {
            if total <= self.limit {
                break;
            }
            if path != newest && std::fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
        Ok(())
    }
}

impl SpoolSpace {
    /// Takes more space.
    ///
    /// # Errors
    /// `storage_full` if the temporary files would exceed the limit of the spool directory.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Problem> {
        let before = self.temporary.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes <= self.limit {
            return Ok(());
        }
        let detail = format!(
            "the temporary files of uploads need more than the {} MiB of storage.spool_bytes; try again \
             when other uploads have ended",
            self.limit >> 20
        );
        Err(Problem::new(Code::StorageFull, detail))
    }
}

impl Drop for SpoolSpace {
    fn drop(&mut self) {
        self.temporary.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Spool;

    #[test]
    fn old_files_make_room_for_new_ones_and_temporary_files_have_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::new(dir.path(), 1000);
        let file = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, [0; 400]).unwrap();
            path
        };
        let (first, second) = (file("a"), file("b"));
        let mut upload = spool.temporary_space();
        upload.grow(100).unwrap();
        spool.remove_oldest(&second).unwrap();
        assert!(first.exists() && second.exists());
        upload.grow(600).unwrap();
        spool.remove_oldest(&second).unwrap();
        assert!(!first.exists() && second.exists());
        let mut other = spool.temporary_space();
        assert!(
            other
                .grow(301)
                .unwrap_err()
                .detail
                .contains("storage.spool_bytes")
        );
        drop((upload, other));
        spool.temporary_space().grow(1000).unwrap();
    }
}
