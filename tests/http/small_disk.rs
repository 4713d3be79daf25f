//! A small disk, which a test fills.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A disk in memory, unmounted when dropped.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this process may not mount.
    pub(crate) fn mount(mebibytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={mebibytes}m,mode=0711");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(directory.path())
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn free_mebibytes(&self) -> u64 {
        let now = rustix::fs::statvfs(self.path()).unwrap();
        (now.f_bfree * now.f_frsize) >> 20
    }

    /// Takes all but this much of what is free, for good.
    pub(crate) fn leave(&self, mebibytes: u64) {
        let now = rustix::fs::statvfs(self.path()).unwrap();
        let taken = now.f_bfree * now.f_frsize - (mebibytes << 20);
        let file = std::fs::File::create(self.path().join("ballast")).unwrap();
        let whole = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(file, whole, 0, taken).unwrap();
    }

    /// Writes a file until the disk is full.
    pub(crate) fn fill(&self) {
        let mut file = std::fs::File::create(self.path().join("filler")).unwrap();
        let block = vec![1; 1 << 16];
        while file.write_all(&block).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
    }

    pub(crate) fn free(&self) {
        std::fs::remove_file(self.path().join("filler")).unwrap();
    }

    /// Makes it as small as what is on it, so that it is full. Unlike a filler this takes no memory.
    pub(crate) fn shrink(&self) {
        // Another process may write between the two calls.
        let shrunk = (0..100).any(|_| {
            let now = rustix::fs::statvfs(self.path()).unwrap();
            self.resize((now.f_blocks - now.f_bfree) * now.f_frsize)
        });
        assert!(shrunk, "the disk could not be made smaller");
    }

    /// Gives it this size again.
    pub(crate) fn grow(&self, mebibytes: u64) {
        assert!(self.resize(mebibytes << 20));
    }

    fn resize(&self, bytes: u64) -> bool {
        let size = format!("remount,size={bytes}");
        let remounted = Command::new("mount")
            .args(["-o", &size])
            .arg(self.path())
            .output();
        remounted.unwrap().status.success()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
