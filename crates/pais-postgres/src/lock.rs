//! The lock that lets only one process at a time use the server of a data directory.
//!
//! It is an advisory lock on an open file. The operating system releases it when its holder ends,
//! for any reason. The server does not inherit the file, so it cannot hold the lock after that.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::PostgresError;
use super::layout::Layout;

/// Time between two attempts at a busy lock.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for a lock held by a service: long enough for a service that is just ending, or
/// for a command that only checks whether the lock is held.
const SERVICE_WAIT: Duration = Duration::from_secs(1);
/// How long to wait for a lock held by a command, which starts a server, uses it and stops it.
const COMMAND_WAIT: Duration = Duration::from_secs(60);

/// The action that fails if the lock file belongs to another user.
const OPEN: &str = "open (is this the user that pais runs as?)";

/// What the holder of the lock uses the server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A service, which holds the lock until it is stopped, and shares the server with commands.
    Service,
    /// A command, which ends soon and does not share the server.
    Command,
}

impl Purpose {
    /// Its name in the lock file and in messages.
    fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Command => "command",
        }
    }

    /// The purpose of the holder who wrote the lock file.
    fn of(holder: &str) -> Self {
        if holder.starts_with(Self::Service.as_str()) {
            Self::Service
        } else {
            Self::Command
        }
    }
}

/// The exclusive lock. It is released when this is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock. Waits up to 60 s for a command that holds it, and 1 s for a service.
    ///
    /// # Errors
    /// [`PostgresError::InUse`] if another process still holds it.
    pub(super) async fn take(layout: &Layout, purpose: Purpose) -> Result<Self, PostgresError> {
        let path = layout.lock();
        let mut file = open(&path)?;
        let begun = Instant::now();
        while is_busy(file.try_lock(), &path)? {
            let holder = read(&path);
            let budget = match Purpose::of(&holder) {
                Purpose::Service => SERVICE_WAIT,
                Purpose::Command => COMMAND_WAIT,
            };
            if begun.elapsed() >= budget {
                return Err(PostgresError::InUse {
                    data_dir: layout.data_dir().to_path_buf(),
                    holder: holder.trim().to_owned(),
                });
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        let line = format!("{}, process {}\n", purpose.as_str(), std::process::id());
        file.set_len(0)
            .and_then(|()| file.write_all(line.as_bytes()))
            .map_err(PostgresError::io("write", &path))?;
        Ok(Self { _file: file })
    }

    /// What the process that holds the lock uses the server for; `None` if none holds it.
    pub(super) fn holder(layout: &Layout) -> Result<Option<Purpose>, PostgresError> {
        let path = layout.lock();
        match File::open(&path) {
            // Closing the file releases the lock taken here.
            Ok(file) => {
                Ok(is_busy(file.try_lock_shared(), &path)?.then(|| Purpose::of(&read(&path))))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PostgresError::io(OPEN, &path)(error)),
        }
    }
}

fn open(path: &Path) -> Result<File, PostgresError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(PostgresError::io(OPEN, path))
}

fn is_busy(tried: Result<(), TryLockError>, path: &Path) -> Result<bool, PostgresError> {
    match tried {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(PostgresError::io("lock", path)(error)),
    }
}

/// What the holder wrote into the lock file; empty if it has written nothing yet.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_held_by_a_service_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        assert_eq!(Lock::holder(&layout).unwrap(), None);
        let lock = Lock::take(&layout, Purpose::Service).await.unwrap();
        assert_eq!(Lock::holder(&layout).unwrap(), Some(Purpose::Service));
        let refused = Lock::take(&layout, Purpose::Service).await.unwrap_err();
        let text = refused.to_string();
        let holder = format!("service, process {}", std::process::id());
        assert!(text.contains(&holder), "{text}");
        assert!(text.contains("--data-dir"), "{text}");
        drop(lock);
        assert_eq!(Lock::holder(&layout).unwrap(), None);
        Lock::take(&layout, Purpose::Service).await.unwrap();
    }

    #[tokio::test]
    async fn a_lock_held_by_a_command_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        let lock = Lock::take(&layout, Purpose::Command).await.unwrap();
        let later = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            drop(lock);
        });
        Lock::take(&layout, Purpose::Service).await.unwrap();
        later.await.unwrap();
    }
}
