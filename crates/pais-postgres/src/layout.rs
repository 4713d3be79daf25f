//! The files and directories of the embedded server, below `<data_dir>/postgres`.
//!
//! | name | contents | owner |
//! |---|---|---|
//! | `lock` | locked while a pais process uses the data directory, with what it uses it for | pais |
//! | `password` | database password, 0600 | pais |
//! | `connection` | the socket directory of the running server | pais |
//! | `server.log`, `server.log.1` | the server's log, 0600 | pais |
//! | `cluster/` | the database, 0700 | server |
//! | `staging-…/` | a cluster that is being created, 0700 | server |
//! | `run/` | the socket, 0700 | server |
//!
//! The directory itself belongs to pais, not to the account of the server. Otherwise that account
//! could put a link there and redirect what root writes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::account::Account;
use super::error::PostgresError;

/// Size in bytes above which the log of earlier runs is renamed at the start.
const MAX_LOG_BYTES: u64 = 8 * 1024 * 1024;

/// Prefix of the name of a staging directory.
const STAGING_PREFIX: &str = "staging-";

/// The paths of one data directory.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    data_dir: PathBuf,
    base: PathBuf,
}

/// The database cluster of a data directory.
pub(super) fn cluster_of(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres").join("cluster")
}

impl Layout {
    /// The paths below an existing `data_dir`.
    pub(super) fn find(data_dir: &Path) -> Result<Self, PostgresError> {
        let data_dir = data_dir
            .canonicalize()
            .map_err(PostgresError::io("open the data directory", data_dir))?;
        let base = data_dir.join("postgres");
        Ok(Self { data_dir, base })
    }

    /// Creates `data_dir` and the directory of the server in it if they are missing, both with mode
    /// 0700.
    pub(super) fn create(data_dir: &Path) -> Result<Self, PostgresError> {
        if let Some(parent) = data_dir.parent() {
            fs::create_dir_all(parent).map_err(PostgresError::io("create", parent))?;
        }
        private_dir(data_dir)?;
        let layout = Self::find(data_dir)?;
        private_dir(&layout.base)?;
        Ok(layout)
    }

    /// The absolute path of the data directory.
    pub(super) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The directory that contains everything of the server.
    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// The lock file.
    pub(super) fn lock(&self) -> PathBuf {
        self.base.join("lock")
    }

    /// The password file.
    pub(super) fn password(&self) -> PathBuf {
        self.base.join("password")
    }

    /// The connection file of the running server.
    pub(super) fn connection(&self) -> PathBuf {
        self.base.join("connection")
    }

    /// The server's log.
    pub(super) fn log(&self) -> PathBuf {
        self.base.join("server.log")
    }

    /// The database cluster (`PGDATA`).
    pub(super) fn cluster(&self) -> PathBuf {
        cluster_of(&self.data_dir)
    }

    /// Creates a directory to create a new cluster in. Its name is new each time, because the
    /// `initdb` of a killed pais may still write to an earlier one.
    pub(super) fn make_staging(&self) -> Result<PathBuf, PostgresError> {
        tempfile::Builder::new()
            .prefix(STAGING_PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&self.base)
            .map(tempfile::TempDir::keep)
            .map_err(PostgresError::io("create a directory in", &self.base))
    }

    /// The staging directories left by interrupted starts.
    pub(super) fn stagings(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        entries
            .filter(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with(STAGING_PREFIX)
            })
            .map(|entry| entry.path())
            .collect()
    }

    /// The socket directory, unless its path is too long for a socket.
    pub(super) fn run(&self) -> PathBuf {
        self.base.join("run")
    }

    /// Allows the group of the server's account to enter the two directories above its own, if root
    /// created them for itself only. The group still cannot list them.
    pub(super) fn allow_entry(&self, account: &Account) -> Result<(), PostgresError> {
        if !account.differs() {
            return Ok(());
        }
        for dir in [&self.data_dir, &self.base] {
            let meta = fs::metadata(dir).map_err(PostgresError::io("read the metadata of", dir))?;
            let mode = meta.permissions().mode();
            if meta.uid() == 0 && mode & 0o071 == 0 {
                chown(dir, None, Some(account.gid()))
                    .map_err(PostgresError::io("change the group of", dir))?;
                fs::set_permissions(dir, fs::Permissions::from_mode((mode & 0o7777) | 0o010))
                    .map_err(PostgresError::io("change the mode of", dir))?;
            }
        }
        Ok(())
    }

    /// Opens the server's log for appending. Renames the log of earlier runs first if it is too
    /// large.
    pub(super) fn open_log(&self) -> Result<File, PostgresError> {
        let log = self.log();
        if fs::metadata(&log).is_ok_and(|meta| meta.len() > MAX_LOG_BYTES) {
            let old = log.with_extension("log.1");
            fs::rename(&log, &old).map_err(PostgresError::io("rename", &log))?;
        }
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&log)
            .map_err(PostgresError::io("open the server log", &log))
    }
}

/// Creates a directory with mode 0700. Does not change an existing one.
fn private_dir(dir: &Path) -> Result<(), PostgresError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        result => result.map_err(PostgresError::io("create", dir)),
    }
}

/// Creates a directory that belongs to the server's account, with mode 0700. Changes the owner and
/// mode of an existing one.
pub(super) fn server_dir(dir: &Path, account: &Account) -> Result<(), PostgresError> {
    private_dir(dir)?;
    let meta = fs::symlink_metadata(dir).map_err(PostgresError::io("read the metadata of", dir))?;
    if !meta.is_dir() {
        let error = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(PostgresError::io("use as a directory", dir)(error));
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
        .map_err(PostgresError::io("change the mode of", dir))?;
    account.make_owner_of(dir)
}

/// Writes a file of this process, with mode 0600, atomically and durably.
pub(super) fn write_private(path: &Path, content: &str) -> Result<(), PostgresError> {
    let write = || -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        // The tempfile crate creates files with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(content.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|failed| failed.error)?;
        sync_dir(dir)
    };
    write().map_err(PostgresError::io("write", path))
}

/// Makes renames in a directory durable, by `fsync`.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes a file. It is not an error if the file does not exist.
pub(super) fn remove_if_exists(path: &Path) -> Result<(), PostgresError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(PostgresError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn created_files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(&dir.path().join("a/data")).unwrap();
        assert_eq!(mode(layout.data_dir()), 0o700);
        assert_eq!(mode(layout.base()), 0o700);
        write_private(&layout.password(), "secret").unwrap();
        assert_eq!(mode(&layout.password()), 0o600);
        drop(layout.open_log().unwrap());
        assert_eq!(mode(&layout.log()), 0o600);
    }

    #[test]
    fn a_large_log_is_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        let log = layout.open_log().unwrap();
        log.set_len(MAX_LOG_BYTES + 1).unwrap();
        let fresh = layout.open_log().unwrap();
        assert_eq!(fresh.metadata().unwrap().len(), 0);
        assert!(layout.base().join("server.log.1").exists());
    }
}
