//! The data directory of a service: its lock and its identity, and the spool directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use pais::config::Settings;
use pais::storage::{Storage, StorageLimits};
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

/// The spool directory inside `storage.spool_dir`, so that nothing else there is removed.
const SPOOL_IN_DIR: &str = "pais-spool";

/// Creates the directories. The spool directory is emptied of what earlier processes have left.
///
/// # Errors
/// When a directory cannot be created or emptied.
pub(crate) fn open_storage(settings: &Settings) -> anyhow::Result<Storage> {
    let (data_dir, storage) = (&settings.server.data_dir, &settings.storage);
    let (spool, key) = match &storage.spool_dir {
        Some(dir) => (dir.join(SPOOL_IN_DIR), "storage.spool_dir"),
        None => (data_dir.join("spool"), "server.data_dir"),
    };
    create_private(data_dir)
        .with_context(|| format!("cannot create {} (server.data_dir)", data_dir.display()))?;
    create_empty(&spool).with_context(|| format!("cannot create {} ({key})", spool.display()))?;
    let limits = StorageLimits {
        min_free: storage.min_free_bytes,
        reserve: storage.reserve_bytes,
        spool: storage.spool_bytes,
    };
    Ok(Storage::new(data_dir, &spool, limits))
}

fn create_empty(directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => create_private(directory),
    }
}

fn create_private(directory: &Path) -> std::io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
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
