//! The directory of a process: its lock, its identity, and its spool directory. A service has the data
//! directory itself, a process that runs jobs only has one inside it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pais::config::StorageSettings;
use pais::storage::{Storage, StorageLimits};
use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

/// The file with the id of the directory, which is locked.
pub(super) const FILE: &str = "instance";

/// The processes of one data directory that run jobs only have the directories 1, 2, … in this one.
const WORKERS: &str = "workers";

/// Maximum number of worker directories.
const MOST_WORKERS: u32 = 256;

/// How long a service waits for the lock: a look at whether a service runs takes it for a moment.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Time between two attempts.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The directory of a process, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    /// The id of the directory, drawn when it is first used.
    pub id: Uuid,
    directory: PathBuf,
    _lock: File,
}

impl Home {
    /// Locks the data directory for a service. It is made if it is missing. The operating system ends the
    /// lock with the process.
    ///
    /// # Errors
    /// When another service uses the directory, or its file cannot be used.
    pub(crate) fn of_service(data_dir: &Path) -> anyhow::Result<Self> {
        let begun = Instant::now();
        loop {
            if let Some(home) = Self::lock(data_dir)? {
                return Ok(home);
            }
            if begun.elapsed() >= LOCK_WAIT {
                bail!(
                    "another pais service is using the data directory {}; stop it, or choose another \
                     --data-dir",
                    data_dir.display()
                );
            }
            std::thread::sleep(LOCK_POLL);
        }
    }

    /// Locks the first free directory for a process that runs jobs only.
    ///
    /// # Errors
    /// When a directory cannot be used, or too many such processes run.
    pub(crate) fn of_worker(data_dir: &Path) -> anyhow::Result<Self> {
        for number in 1..=MOST_WORKERS {
            let directory = data_dir.join(WORKERS).join(number.to_string());
            if let Some(home) = Self::lock(&directory)? {
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
    fn lock(directory: &Path) -> anyhow::Result<Option<Self>> {
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
            _lock: file,
        }))
    }

    /// Removes the directory, if it has nothing but the lock.
    pub(crate) fn remove(self) {
        let removed = std::fs::remove_file(self.directory.join(FILE))
            .and_then(|()| std::fs::remove_dir(&self.directory));
        if let Err(error) = removed {
            tracing::warn!(%error, directory = %self.directory.display(), "the directory could not be removed");
        }
    }

    /// The disks of the process. Its spool directory is emptied of what earlier processes have left.
    ///
    /// # Errors
    /// When the spool directory cannot be made or emptied.
    pub(crate) fn storage(&self, settings: &StorageSettings) -> anyhow::Result<Storage> {
        let (spool, key) = match &settings.spool_dir {
            // Another process may use the same directory.
            Some(dir) => (
                dir.join(format!("pais-spool-{}", self.id)),
                "storage.spool_dir",
            ),
            None => (self.directory.join("spool"), "server.data_dir"),
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
    fn a_look_at_the_lock_does_not_stop_a_service_from_starting() {
        let dir = tempfile::tempdir().unwrap();
        drop(Home::of_service(dir.path()).unwrap());
        let look = std::fs::File::open(dir.path().join(super::FILE)).unwrap();
        super::flock(&look, super::FlockOperation::LockShared).unwrap();
        let ended = std::thread::spawn(move || {
            std::thread::sleep(super::LOCK_POLL);
            drop(look);
        });
        Home::of_service(dir.path()).unwrap();
        ended.join().unwrap();
    }

    /// Each empties its own when it starts.
    #[test]
    fn processes_with_one_spool_directory_have_directories_of_their_own_in_it() {
        let (dir, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settings = pais::config::StorageSettings {
            spool_dir: Some(spool.path().to_owned()),
            spool_bytes: 1 << 20,
            min_free_bytes: 0,
            reserve_bytes: 0,
        };
        let home = |name: &str| Home::of_service(&dir.path().join(name)).unwrap();
        let (first, second) = (home("a"), home("b"));
        first.storage(&settings).unwrap();
        let own = std::fs::read_dir(spool.path()).unwrap().next().unwrap();
        let kept = own.unwrap().path().join("kept");
        std::fs::write(&kept, "").unwrap();
        second.storage(&settings).unwrap();
        assert!(kept.exists());
        first.storage(&settings).unwrap();
        assert!(!kept.exists());
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
