//! The identity of a data directory, and the lock by which only one service uses it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

const FILE: &str = "instance";

/// The data directory of a service, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    /// The id of the directory, drawn when it is first used.
    pub id: Uuid,
    _lock: File,
}

impl Home {
    /// Locks a data directory that exists. The operating system ends the lock with the process.
    ///
    /// # Errors
    /// When another service uses the directory, or its file cannot be used.
    pub(crate) fn lock(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join(FILE);
        let failed = || format!("cannot use {} (server.data_dir)", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(&path).with_context(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!(
                "another pais service is using the data directory {}; stop it, or choose another \
                 --data-dir",
                data_dir.display()
            );
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(failed)?;
        let id = match text.trim().parse() {
            Ok(id) => id,
            Err(_) => {
                let id = Uuid::new_v4();
                file.set_len(0).with_context(failed)?;
                file.rewind().with_context(failed)?;
                writeln!(file, "{id}").with_context(failed)?;
                file.sync_all().with_context(failed)?;
                id
            }
        };
        Ok(Self { id, _lock: file })
    }
}

#[cfg(test)]
mod tests {
    use super::Home;

    #[test]
    fn a_data_directory_has_one_service_and_keeps_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let first = Home::lock(dir.path()).unwrap();
        let refused = Home::lock(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("another pais service"), "{refused}");
        let id = first.id;
        drop(first);
        assert_eq!(Home::lock(dir.path()).unwrap().id, id);
    }
}
