//! Files outside the database: free disk space, a reserve for a full disk, the spool
//! directory, and the object stores of organizations.

pub mod object_stores;
pub mod secret_file;
pub mod spool;

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use crate::problem::{Code, Problem};

use object_stores::ObjectStores;
use spool::Spool;

/// The limits of [`Storage`], in bytes.
#[derive(Clone, Copy, Debug)]
pub struct StorageLimits {
    /// Free space below which nothing is accepted; at most a tenth of the disk counts.
    pub min_free: u64,
    /// Size of the reserve; at most a twentieth of the disk counts.
    pub reserve: u64,
    /// Size of all files in the spool directory.
    pub spool: u64,
}

/// [`StorageLimits::min_free`] is at most this fraction of a disk: a tenth.
const MIN_FREE_SHARE: u64 = 10;

/// The reserve is at most this fraction of a disk: a twentieth.
const RESERVE_SHARE: u64 = 20;

/// Why nothing that takes space is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the disk of the {place} has {} MiB free, less than the {} MiB of storage.min_free_bytes; delete \
     datasets that are not needed, or have the disk enlarged",
    .free >> 20, .needed.div_ceil(1 << 20)
)]
pub(crate) struct DiskFull {
    place: &'static str,
    free: u64,
    needed: u64,
}

impl From<DiskFull> for Problem {
    fn from(full: DiskFull) -> Self {
        Self::new(Code::StorageFull, full.to_string())
    }
}

/// The data directory, the spool directory, and the object stores.
#[derive(Debug)]
pub struct Storage {
    data_dir: PathBuf,
    limits: StorageLimits,
    /// The file that takes space until the disk is nearly full.
    reserve: PathBuf,
    /// Rendered releases and temporary files.
    pub spool: Spool,
    /// Where organizations have Parquet files of their own.
    pub(crate) object_stores: ObjectStores,
    /// Held while space of deleted rows is freed.
    pub(crate) reclaiming: tokio::sync::Mutex<()>,
}

impl Storage {
    /// The storage in a data directory that exists. `spool` is the spool directory, which exists, too.
    pub fn new(data_dir: &Path, spool: &Path, limits: StorageLimits) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            limits,
            reserve: data_dir.join("reserve"),
            spool: Spool::new(spool, limits.spool),
            object_stores: ObjectStores::default(),
            reclaiming: tokio::sync::Mutex::default(),
        }
    }

    /// The same storage with these object stores.
    pub fn with_object_stores(self, object_stores: ObjectStores) -> Self {
        Self {
            object_stores,
            ..self
        }
    }

    /// Checks that there is space for the data that a request adds. Costs two system calls.
    ///
    /// # Errors
    /// [`DiskFull`]. A disk whose free space is not known counts as not full.
    pub(crate) fn check(&self) -> Result<(), DiskFull> {
        self.check_disk("data directory (server.data_dir)", &self.data_dir)?;
        self.check_disk(
            "spool directory (storage.spool_dir)",
            self.spool.directory(),
        )
    }

    fn check_disk(&self, place: &'static str, directory: &Path) -> Result<(), DiskFull> {
        let Ok(disk) = Disk::of(directory) else {
            return Ok(());
        };
        let needed = disk.min_free(self.limits.min_free);
        if disk.free < needed {
            Err(DiskFull {
                place,
                free: disk.free,
                needed,
            })
        } else {
            Ok(())
        }
    }

    /// The free space for data and for the spool, in bytes.
    pub(crate) fn free_bytes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let disks = [
            ("data", self.data_dir.as_path()),
            ("spool", self.spool.directory()),
        ];
        disks
            .into_iter()
            .filter_map(|(name, directory)| Some((name, Disk::of(directory).ok()?.free)))
    }

    /// Whether the disk of the data directory is about to be full: without the reserve it would be.
    pub(crate) fn is_tight(&self) -> bool {
        Disk::of(&self.data_dir).is_ok_and(|disk| {
            disk.free < disk.min_free(self.limits.min_free) + self.reserve_bytes(disk)
        })
    }

    /// Removes the reserve if the disk is nearly full, so that the database can start, and data can be deleted.
    /// If the reserve was already removed, removes the rendered releases, which can be rendered again.
    pub fn make_room(&self) {
        let full = Disk::of(&self.data_dir).is_ok_and(|disk| disk.free < self.reserve_bytes(disk));
        if !full {
            return;
        }
        match std::fs::remove_file(&self.reserve) {
            Ok(()) => tracing::warn!("the disk is nearly full; its reserve was released"),
            Err(error) if error.kind() == ErrorKind::NotFound => self.spool.remove_rendered(),
            Err(error) => tracing::warn!(%error, "the disk reserve could not be removed"),
        }
    }

    /// Whether there should be a reserve but is none.
    pub(crate) fn lacks_reserve(&self) -> bool {
        let wanted = Disk::of(&self.data_dir).is_ok_and(|disk| self.reserve_bytes(disk) > 0);
        wanted && !self.reserve.exists()
    }

    /// Makes the reserve if there is none and the disk has more than enough space for it. Failures are
    /// logged.
    pub(crate) fn keep_reserve(&self) {
        let Ok(disk) = Disk::of(&self.data_dir) else {
            return;
        };
        let bytes = self.reserve_bytes(disk);
        let has_space = disk.free > disk.min_free(self.limits.min_free) + bytes;
        if bytes == 0 || !has_space || self.reserve.exists() {
            return;
        }
        if let Err(error) = self.allocate_reserve(bytes) {
            tracing::warn!(%error, path = %self.reserve.display(), "the disk reserve could not be made");
        }
    }

    fn allocate_reserve(&self, bytes: u64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600);
        let file = file.open(&self.reserve)?;
        // Unlike a file of this length, it takes its blocks.
        let allocated = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        if allocated.is_err() {
            let _ = std::fs::remove_file(&self.reserve);
        }
        Ok(allocated?)
    }

    fn reserve_bytes(&self, disk: Disk) -> u64 {
        self.limits.reserve.min(disk.size / RESERVE_SHARE)
    }
}

/// The directory of a file; for a name alone, the working directory.
pub fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    directory.unwrap_or(Path::new("."))
}

/// Size and free space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its size.
    pub size: u64,
    /// The space that a user other than root can still write.
    pub free: u64,
}

impl Disk {
    /// The file system that a directory is on.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn of(directory: &Path) -> io::Result<Self> {
        let found = rustix::fs::statvfs(directory)?;
        Ok(Self {
            size: found.f_blocks.saturating_mul(found.f_frsize),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    /// The bytes that must stay free where `asked` bytes are asked for: on a small disk no more than a tenth of it.
    pub fn min_free(self, asked: u64) -> u64 {
        asked.min(self.size / MIN_FREE_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::{Disk, Storage, StorageLimits};

    const NO_LIMITS: StorageLimits = StorageLimits {
        min_free: 0,
        reserve: 1 << 16,
        spool: 1 << 20,
    };

    #[test]
    fn a_disk_with_less_space_than_the_limit_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let storage = |limits| Storage::new(dir.path(), dir.path(), limits);
        assert_eq!(storage(NO_LIMITS).check(), Ok(()));
        // A limit above a tenth of the disk counts as a tenth.
        let all = storage(StorageLimits {
            min_free: u64::MAX,
            ..NO_LIMITS
        });
        let disk = Disk::of(dir.path()).unwrap();
        assert_eq!(all.check().is_err(), disk.free < disk.size / 10);
    }

    #[test]
    fn the_reserve_takes_its_space_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::new(dir.path(), dir.path(), NO_LIMITS);
        storage.keep_reserve();
        let file = dir.path().join("reserve");
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 16);
        // There is enough space, so it stays.
        storage.make_room();
        assert!(file.exists());
    }
}
