//! A file that takes space while there is enough, and is removed when there is none.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

const FILE: &str = "reserve";

/// The reserve of a data directory.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(super) fn new(data_dir: &Path) -> Self {
        Self {
            path: data_dir.join(FILE),
        }
    }

    /// Whether the file is there.
    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Makes the file, unless it is there. A failure is logged, and leaves no file.
    pub(super) fn make(&self, bytes: u64) {
        if bytes == 0 || self.exists() {
            return;
        }
        if let Err(error) = self.allocate(bytes) {
            let _ = std::fs::remove_file(&self.path);
            tracing::warn!(%error, path = %self.path.display(), "the disk reserve could not be made");
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600);
        let file = file.open(&self.path)?;
        // Unlike a file of this length, it takes its blocks.
        fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        Ok(file)
    }

    /// Removes the file, if it is there.
    pub(super) fn remove(&self) {
        match std::fs::remove_file(&self.path) {
            Ok(()) => tracing::warn!("the disk is nearly full; its reserve was released"),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the disk reserve could not be removed"),
        }
    }
}
