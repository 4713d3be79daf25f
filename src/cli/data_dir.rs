//! The directory of a process: its lock, its identity, and its spool directory. A service has the data
//! directory itself, a process that runs jobs only has one inside it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pais::config::StorageSettings;
use pais::storage::{Storage, StorageLimits};
use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

/// The file with the id of the directory, which is locked.
const FILE: &str = "instance";

/// The processes of one data directory that run jobs only have the directories 1, 2, … in this one.
const WORKERS: &str = "workers";

/// Most of them.
const MOST_WORKERS: u32 = 256;

/// The spool directory inside `storage.spool_dir`, so that nothing else there is removed.
const SPOOL_IN_DIR: &str = "pais-spool";

/// The directory of a process, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    /// The id of the directory, drawn when it is first used.
    pub id: Uuid,
    directory: PathBuf,
    /// The number of a process that runs jobs only.
    worker: Option<u32>,
    _lock: File,
}

impl Home {
    /// Locks the data directory for a service. It is made if it is missing. The operating system ends the
    /// lock with the process.
    ///
    /// # Errors
    /// When another service uses the directory, or its file cannot be used.
    pub(crate) fn of_service(data_dir: &Path) -> anyhow::Result<Self> {
        Self::lock(data_dir, None)?.with_context(|| {
            format!(
                "another pais service is using the data directory {}; stop it, or choose another \
                 --data-dir",
                data_dir.display()
            )
        })
    }

    /// Locks the first free directory for a process that runs jobs only.
    ///
    /// # Errors
    /// When a directory cannot be used, or too many such processes run.
    pub(crate) fn of_worker(data_dir: &Path) -> anyhow::Result<Self> {
        for number in 1..=MOST_WORKERS {
            let directory = data_dir.join(WORKERS).join(number.to_string());
            if let Some(home) = Self::lock(&directory, Some(number))? {
                return Ok(home);
            }
        }
        bail!(
            "{MOST_WORKERS} processes run the jobs of the data directory {} already",
            data_dir.display()
        )
    }

    /// Whether a service uses the data directory now.
    pub(crate) fn is_served(data_dir: &Path) -> bool {
        let file = File::open(data_dir.join(FILE));
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// Locks a directory, which is made if it is missing; `None` if another process has the lock.
    fn lock(directory: &Path, worker: Option<u32>) -> anyhow::Result<Option<Self>> {
        let path = directory.join(FILE);
        let failed = || format!("cannot use {} (server.data_dir)", path.display());
        create_private(directory).with_context(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(&path).with_context(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
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
        Ok(Some(Self {
            id,
            directory: directory.to_owned(),
            worker,
            _lock: file,
        }))
    }

    /// The disks of the process. Its spool directory is emptied of what earlier processes have left.
    ///
    /// # Errors
    /// When the spool directory cannot be made or emptied.
    pub(crate) fn storage(&self, settings: &StorageSettings) -> anyhow::Result<Storage> {
        let (spool, key) = match (&settings.spool_dir, self.worker) {
            (Some(dir), None) => (dir.join(SPOOL_IN_DIR), "storage.spool_dir"),
            (Some(dir), Some(number)) => (
                dir.join(format!("{SPOOL_IN_DIR}-worker-{number}")),
                "storage.spool_dir",
            ),
            (None, _) => (self.directory.join("spool"), "server.data_dir"),
        };
        create_empty(&spool)
            .with_context(|| format!("cannot create {} ({key})", spool.display()))?;
        let limits = StorageLimits {
            min_free: settings.min_free_bytes,
            reserve: settings.reserve_bytes,
            spool: settings.spool_bytes,
        };
        Ok(Storage::new(&self.directory, &spool, limits))
    }
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
        assert!(!Home::is_served(dir.path()));
        let first = Home::of_service(dir.path()).unwrap();
        assert!(Home::is_served(dir.path()));
        let refused = Home::of_service(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("another pais service"), "{refused}");
        let id = first.id;
        drop(first);
        assert_eq!(Home::of_service(dir.path()).unwrap().id, id);
    }

    #[test]
    fn processes_that_run_jobs_have_directories_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let _service = Home::of_service(dir.path()).unwrap();
        let first = Home::of_worker(dir.path()).unwrap();
        let second = Home::of_worker(dir.path()).unwrap();
        assert_ne!(first.id, second.id);
        let id = first.id;
        drop(first);
        // The next process takes over from the one that ended.
        assert_eq!(Home::of_worker(dir.path()).unwrap().id, id);
    }
}
