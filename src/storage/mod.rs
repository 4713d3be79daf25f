//! The disk: how much of it is free, a reserve for when it is full, and the spool directory.
//!
//! Below a watermark (`storage.min_free_bytes`) work that stores something is refused, so that what
//! is left remains for deletions and for the database server itself.

mod reserve;
mod spool;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::problem::{Code, Problem};

pub use spool::{Spool, SpoolLease};

/// The watermark is at most this part of the disk.
const MIN_FREE_SHARE: u64 = 10;

/// The section `storage` of the configuration, all sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// Free space below which work that stores something is refused; at most a tenth of the disk
    /// counts.
    pub min_free_bytes: u64,
    /// Size of the reserve; at most a twentieth of the disk counts.
    pub reserve_bytes: u64,
    /// Size of the files in the spool directory.
    pub spool_bytes: u64,
}

/// Why something is not stored.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Less than the watermark is free.
    #[error(
        "the disk of the {disk} has {} MiB free, less than the {} MiB of storage.min_free_bytes \
         (at most a tenth of the disk); delete data that is no longer needed, or have the disk \
         enlarged",
        .free >> 20, .needed >> 20
    )]
    Low {
        /// What the disk is used for.
        disk: &'static str,
        /// Free space, in bytes.
        free: u64,
        /// The watermark, in bytes.
        needed: u64,
    },
    /// The files of the spool directory would exceed their quota.
    #[error(
        "the spool directory would have more than the {} MiB of storage.spool_bytes; try again when \
         other uploads and downloads have ended, or have the limit raised",
        .limit >> 20
    )]
    SpoolFull {
        /// The quota, in bytes.
        limit: u64,
    },
    /// A file could not be written because the disk is full.
    #[error("the disk of the spool directory is full (storage.spool_dir); try again later")]
    Full,
    /// A file could not be written for another reason.
    #[error("a file could not be written into the spool directory (storage.spool_dir)")]
    Io(#[source] io::Error),
}

impl From<io::Error> for StorageError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded) => Self::Full,
            Err(error) => Self::Io(error),
        }
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        let code = match error {
            StorageError::Low { .. } | StorageError::SpoolFull { .. } | StorageError::Full => {
                Code::StorageFull
            }
            StorageError::Io(_) => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

/// The disk of the data directory and that of the spool directory.
#[derive(Debug)]
pub struct Storage {
    data_dir: PathBuf,
    limits: StorageLimits,
    spool: Arc<Spool>,
    /// Held while the reserve is made or removed.
    reserve: Mutex<()>,
}

impl Storage {
    /// Describes the two directories. They need not exist yet.
    pub fn new(data_dir: PathBuf, spool_dir: PathBuf, limits: StorageLimits) -> Self {
        Self {
            data_dir,
            spool: Arc::new(Spool::new(spool_dir, limits.spool_bytes)),
            limits,
            reserve: Mutex::new(()),
        }
    }

    /// The spool directory.
    pub fn spool(&self) -> &Arc<Spool> {
        &self.spool
    }

    /// Checks that more than the watermark is free on both disks. Quick enough for every chunk of an
    /// upload.
    ///
    /// # Errors
    /// [`StorageError::Low`].
    pub fn check(&self) -> Result<(), StorageError> {
        let disks = [
            ("data directory", self.data_dir.as_path()),
            ("spool directory", self.spool.dir()),
        ];
        for (name, dir) in disks {
            let Some(disk) = Disk::of(dir) else { continue };
            let needed = self.watermark(disk);
            if disk.free < needed {
                return Err(StorageError::Low {
                    disk: name,
                    free: disk.free,
                    needed,
                });
            }
        }
        Ok(())
    }

    fn watermark(&self, disk: Disk) -> u64 {
        self.limits.min_free_bytes.min(disk.total / MIN_FREE_SHARE)
    }
}

/// The size of a disk, in bytes.
#[derive(Clone, Copy, Debug)]
struct Disk {
    total: u64,
    /// What an account that is not root can write.
    free: u64,
}

impl Disk {
    /// The disk that a directory is on; `None` if that cannot be found out, as for a directory that
    /// does not exist yet.
    fn of(dir: &Path) -> Option<Self> {
        let stat = rustix::fs::statvfs(dir).ok()?;
        Some(Self {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Disk, Storage, StorageError, StorageLimits};
    use crate::problem::{Code, Problem};

    fn storage(dir: &std::path::Path, min_free_bytes: u64) -> Storage {
        let limits = StorageLimits {
            min_free_bytes,
            reserve_bytes: 1 << 20,
            spool_bytes: 1 << 20,
        };
        Storage::new(dir.to_owned(), dir.join("spool"), limits)
    }

    #[test]
    fn the_watermark_is_at_most_a_tenth_of_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::of(dir.path()).unwrap();
        let watermark = |bytes| storage(dir.path(), bytes).watermark(disk);
        assert_eq!(watermark(1), 1);
        assert_eq!(watermark(u64::MAX), disk.total / 10);
        assert!(storage(dir.path(), 0).check().is_ok());
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_failures() {
        let code = |errno: rustix::io::Errno| {
            Problem::from(StorageError::from(io::Error::from(errno))).code
        };
        assert_eq!(code(rustix::io::Errno::NOSPC), Code::StorageFull);
        assert_eq!(code(rustix::io::Errno::DQUOT), Code::StorageFull);
        assert_eq!(code(rustix::io::Errno::ACCESS), Code::Unavailable);
        let quota = io::Error::other(StorageError::SpoolFull { limit: 1 << 20 });
        let problem = Problem::from(StorageError::from(quota));
        assert_eq!(problem.code, Code::StorageFull);
        assert!(problem.detail.contains("storage.spool_bytes"));
    }
}
