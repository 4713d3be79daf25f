//! The data directory and the spool directory of a service that starts.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::Context;
use pais::config::Settings;
use pais::storage::{Storage, StorageLimits};

/// The spool directory inside `storage.spool_dir`, so that nothing else there is removed.
const SPOOL_IN_DIR: &str = "pais-spool";

/// Creates the directories. The spool directory is emptied of what earlier processes have left.
///
/// # Errors
/// When a directory cannot be created or emptied.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Storage> {
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
