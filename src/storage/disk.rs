//! The free space of a disk.

use std::io;
use std::path::Path;

/// Size and free space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its size.
    pub size: u64,
    /// What a user who is not root can still write.
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
}
