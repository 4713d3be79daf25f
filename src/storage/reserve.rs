//! The reserve: a file that takes up space while there is enough, and is removed when the disk is
//! full, so that the database can start and data can be deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::{Disk, Storage};

/// Name of the reserve in the data directory.
const NAME: &str = "reserve";

/// Name of a reserve that is being made.
const UNFINISHED: &str = "reserve.unfinished";

/// The reserve is at most this part of the disk.
const SHARE: u64 = 20;

/// Zeros that are written at once where the file system cannot allocate space.
const BLOCK: usize = 1 << 20;

impl Storage {
    /// Makes the reserve if it is missing and there is room for it above the watermark. Returns
    /// whether it was made. Removes one that is no longer configured.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn make_reserve(&self) -> io::Result<bool> {
        let _guard = self.reserve.lock();
        let Some(disk) = Disk::of(&self.data_dir) else {
            return Ok(false);
        };
        let size = self.reserve_size(disk);
        let present = fs::metadata(self.path(NAME)).map_or(0, |metadata| metadata.len());
        if present == size {
            return Ok(false);
        }
        if size == 0 {
            fs::remove_file(self.path(NAME))?;
            return Ok(false);
        }
        if disk.free.saturating_add(present) < self.watermark(disk).saturating_add(size) {
            return Ok(false);
        }
        let unfinished = self.path(UNFINISHED);
        let made =
            allocate(&unfinished, size).and_then(|()| fs::rename(&unfinished, self.path(NAME)));
        if made.is_err() {
            // The error of its making is the one that is reported.
            let _ = fs::remove_file(&unfinished);
        }
        made.map(|()| true)
    }

    /// Removes the reserve if the disk has less free space than its size. Returns whether it was
    /// removed.
    pub fn use_reserve_if_full(&self) -> bool {
        let is_full =
            Disk::of(&self.data_dir).is_some_and(|disk| disk.free < self.reserve_size(disk));
        is_full && self.use_reserve()
    }

    /// Removes the reserve. Returns whether there was one.
    pub fn use_reserve(&self) -> bool {
        let _guard = self.reserve.lock();
        let used = fs::remove_file(self.path(NAME)).is_ok();
        if used {
            tracing::warn!("the disk is full: the reserve was removed (storage.reserve_bytes)");
        }
        used
    }

    /// Whether the disk of the data directory has less free space than the watermark.
    pub fn is_tight(&self) -> bool {
        Disk::of(&self.data_dir).is_some_and(|disk| disk.free < self.watermark(disk))
    }

    fn reserve_size(&self, disk: Disk) -> u64 {
        self.limits.reserve_bytes.min(disk.total / SHARE)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data_dir.join(name)
    }
}

/// Writes a file that really takes up `size` bytes.
fn allocate(path: &PathBuf, size: u64) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) => {}
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = vec![0; BLOCK];
            let mut left = size;
            while left > 0 {
                let part = zeros.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                file.write_all(&zeros[..part])?;
                left -= part as u64;
            }
        }
        Err(error) => return Err(error.into()),
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::{Storage, StorageLimits};

    fn storage(dir: &std::path::Path, reserve_bytes: u64) -> Storage {
        let limits = StorageLimits {
            min_free_bytes: 0,
            reserve_bytes,
            spool_bytes: 1,
        };
        Storage::new(dir.to_owned(), dir.join("spool"), limits)
    }

    #[test]
    fn the_reserve_takes_up_space_until_it_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let storage = storage(dir.path(), 3 << 20);
        assert!(storage.make_reserve().unwrap());
        assert!(!storage.make_reserve().unwrap(), "it is there already");
        let reserve = std::fs::metadata(dir.path().join("reserve")).unwrap();
        assert_eq!(reserve.len(), 3 << 20);
        assert!(reserve.blocks() * 512 >= 3 << 20, "it is sparse");
        // There is enough room on the disk.
        assert!(!storage.use_reserve_if_full());
        assert!(storage.use_reserve());
        assert!(!storage.use_reserve());
        assert!(storage.make_reserve().unwrap());
    }

    #[test]
    fn a_reserve_of_another_size_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert!(storage(dir.path(), 2 << 20).make_reserve().unwrap());
        assert!(storage(dir.path(), 1 << 20).make_reserve().unwrap());
        let path = dir.path().join("reserve");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
        assert!(!storage(dir.path(), 0).make_reserve().unwrap());
        assert!(!path.exists());
    }
}
