//! Where the wrapped data keys of the datasets are, and the sealed keys of their submissions. They are
//! kept where they can be destroyed: a deleted row remains in the files of a table and in the
//! write-ahead log for a time.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sqlx::{PgConnection, PgExecutor};
use tokio::sync::Mutex;
use uuid::Uuid;
use zeroize::Zeroizing;

use pais_core::definition::{DatasetId, SubmissionId};

use super::{Store, StoreError};
use crate::storage::directory_of;
use pais_seal::{SealError, SecretKey, random};

/// End of the name of a key file; before it is the id of the dataset.
const SUFFIX: &str = ".key";

/// The age at which a key file without an owner is considered left over. A younger one may be of an owner that is being
/// created, or of one that a database which was put back to an earlier state does not have. Keys of deleted rows do
/// not wait for it.
const STALE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file in a directory of keys that says to which database they belong.
const MARK: &str = "database";

/// Begin of the temporary name of a file that is being written; its name follows. One that a killed process has left
/// may have a key.
const NEW_PREFIX: &str = ".new-";

/// The age at which such a file is left over.
const UNFINISHED: Duration = Duration::from_secs(60 * 60);

/// End of the name of a key file that is being destroyed.
const DOOMED_SUFFIX: &str = ".destroyed";

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct KeyOwner(Uuid);

impl From<DatasetId> for KeyOwner {
    fn from(dataset: DatasetId) -> Self {
        Self(dataset.0)
    }
}

impl From<SubmissionId> for KeyOwner {
    fn from(submission: SubmissionId) -> Self {
        Self(submission.0)
    }
}

/// Where the wrapped data keys are.
#[derive(Clone, Debug)]
pub enum DataKeys {
    /// A small table of the database. When a key is destroyed, the table is rewritten, and the write-ahead log
    /// is switched if the service may do that.
    Table,
    /// A directory with a file for each dataset. A file is overwritten before it is removed.
    Directory(PathBuf),
}

/// The directory or a file of it has a mode that lets others read it, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The operating system's error.
    #[error("the key file {} cannot be used", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Others than the owner may use it.
    #[error(
        "{} has mode {mode:04o}; only its owner may read it: chmod go= {}",
        .path.display(), .path.display()
    )]
    Mode {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It has no key.
    #[error("the key file {} is invalid; expected 32 bytes, raw or as base64", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
    },
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> KeyFileError + use<> {
    let path = path.to_owned();
    |source| KeyFileError::Io { path, source }
}

/// Checks that only the owner of a file or directory with a secret may use it.
///
/// # Errors
/// [`KeyFileError`].
pub fn check_mode(path: &Path) -> Result<(), KeyFileError> {
    let metadata = fs::metadata(path).map_err(failed(path))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.to_owned();
    Err(KeyFileError::Mode { path, mode })
}

/// Reads a key file: one key, raw or as base64, or a line of base64 for each of several keys; `None` where
/// there is no file.
///
/// # Errors
/// When the file cannot be read, may be read by others, or has no key.
pub fn read_keys(path: &Path) -> Result<Option<Vec<SecretKey>>, KeyFileError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path)(error)),
    };
    check_mode(path)?;
    if let Ok(raw) = <[u8; 32]>::try_from(bytes.as_slice()) {
        return Ok(Some(vec![Zeroizing::new(raw)]));
    }
    let lines = bytes.split(|&byte| byte == b'\n');
    let lines = lines
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let keys: Option<Vec<SecretKey>> = lines.map(key_of_base64).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Ok(Some(keys)),
        _ => Err(KeyFileError::Invalid {
            path: path.to_owned(),
        }),
    }
}

/// Reads a key file of one key.
///
/// # Errors
/// As [`read_keys`], and when there is no file, or it has several keys.
pub fn read_one_key(path: &Path) -> Result<SecretKey, KeyFileError> {
    match read_keys(path)?.as_deref() {
        None => Err(failed(path)(ErrorKind::NotFound.into())),
        Some([key]) => Ok(key.clone()),
        Some(_) => Err(KeyFileError::Invalid {
            path: path.to_owned(),
        }),
    }
}

/// A key of 32 bytes in base64.
pub fn key_of_base64(text: &[u8]) -> Option<SecretKey> {
    let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
    let key = <[u8; 32]>::try_from(bytes.as_slice()).ok()?;
    Some(Zeroizing::new(key))
}

impl DataKeys {
    /// The keys in a directory, which is created if it is missing.
    ///
    /// # Errors
    /// When it cannot be created, or others may read it.
    pub fn directory(path: &Path) -> Result<Self, KeyFileError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed(path))?;
        Self::in_directory(path)
    }

    /// The keys in a directory, which may be missing.
    ///
    /// # Errors
    /// When others may read it.
    pub fn in_directory(path: &Path) -> Result<Self, KeyFileError> {
        if path.exists() {
            check_mode(path)?;
        }
        Ok(Self::Directory(path.to_owned()))
    }

    /// The wrapped key of a dataset, or the sealed one of a submission; `None` if there is none.
    ///
    /// # Errors
    /// When the database or the file fails.
    pub async fn read(
        &self,
        executor: impl PgExecutor<'_>,
        owner: impl Into<KeyOwner>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let owner = owner.into();
        match self {
            Self::Table => Ok(sqlx::query_scalar(
                "SELECT wrapped_key FROM dataset_keys WHERE dataset_id = $1",
            )
            .bind(owner)
            .fetch_optional(executor)
            .await?),
            Self::Directory(directory) => {
                let path = file_of(directory, owner);
                on_thread(move || match fs::read(&path) {
                    Ok(wrapped) => Ok(Some(wrapped)),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(failed(&path)(error).into()),
                })
                .await
            }
        }
    }

    /// Stores the key of an owner that the transaction of the connection makes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) async fn create(
        &self,
        connection: &mut PgConnection,
        owner: impl Into<KeyOwner>,
        wrapped: &[u8],
    ) -> Result<(), StoreError> {
        let owner = owner.into();
        if let Self::Directory(_) = self {
            lock(connection, owner).await?;
        }
        self.write(connection, owner, wrapped).await
    }

    /// Stores a key, or replaces it. In a directory it is on the disk when this
    /// returns, before the transaction of the connection commits.
    ///
    /// # Errors
    /// When the database or the file fails.
    pub(crate) async fn write(
        &self,
        connection: &mut PgConnection,
        owner: impl Into<KeyOwner>,
        wrapped: &[u8],
    ) -> Result<(), StoreError> {
        let owner = owner.into();
        match self {
            Self::Table => {
                sqlx::query(
                    "INSERT INTO dataset_keys (dataset_id, wrapped_key) VALUES ($1, $2)
                     ON CONFLICT (dataset_id) DO UPDATE SET wrapped_key = excluded.wrapped_key",
                )
                .bind(owner)
                .bind(wrapped)
                .execute(connection)
                .await?;
                Ok(())
            }
            Self::Directory(directory) => {
                let (directory, wrapped) = (directory.clone(), wrapped.to_owned());
                on_thread(move || {
                    let path = file_of(&directory, owner);
                    replace_file(&path, &wrapped)
                        .map_err(failed(&path))
                        .map_err(StoreError::from)
                })
                .await
            }
        }
    }

    /// Copies the keys of these owners to another directory, which exists. Returns whether all existed. The
    /// keys in a table are part of the database.
    ///
    /// # Errors
    /// When a file fails.
    pub async fn copy(&self, owners: &BTreeSet<Uuid>, to: &Path) -> Result<bool, StoreError> {
        let Self::Directory(directory) = self else {
            return Ok(true);
        };
        let (directory, to, owners) = (directory.clone(), to.to_owned(), owners.clone());
        on_thread(move || {
            for owner in owners {
                let path = file_of(&directory, KeyOwner(owner));
                match fs::read(&path) {
                    Ok(wrapped) => create_file(&file_of(&to, KeyOwner(owner)), &wrapped)?,
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                    Err(error) => return Err(failed(&path)(error).into()),
                }
            }
            Ok(true)
        })
        .await
    }

    /// Moves the keys of the table to the directory, after the restore of a database that had them in its
    /// table.
    ///
    /// # Errors
    /// When the database or a file fails.
    pub async fn take_from_table(&self, store: &Store) -> Result<(), StoreError> {
        let Self::Directory(_) = self else {
            return Ok(());
        };
        let keys: Vec<(KeyOwner, Vec<u8>)> =
            sqlx::query_as("SELECT dataset_id, wrapped_key FROM dataset_keys")
                .fetch_all(store.owner())
                .await?;
        if keys.is_empty() {
            return Ok(());
        }
        let mut connection = store.owner().acquire().await?;
        for (owner, wrapped) in keys {
            self.write(&mut connection, owner, &wrapped).await?;
        }
        sqlx::query("TRUNCATE dataset_keys")
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Destroys a key, if it exists. Must not run inside a transaction if the keys are in the table. Returns whether
    /// nothing is left of it: a table is rewritten when no older transaction sees the key.
    ///
    /// # Errors
    /// When the database or the file fails.
    pub(crate) async fn destroy(
        &self,
        store: &Store,
        owner: impl Into<KeyOwner>,
    ) -> Result<bool, StoreError> {
        let owner = owner.into();
        match self {
            Self::Table => {
                // The keys of its submissions, which it seals, are removed with the key of a dataset.
                sqlx::query(
                    "DELETE FROM dataset_keys WHERE dataset_id = $1
                     OR dataset_id IN (SELECT id FROM submissions WHERE dataset_id = $1)",
                )
                .bind(owner)
                .execute(&mut *store.connection().await?)
                .await?;
                rewrite_table(store).await
            }
            Self::Directory(directory) => {
                let path = file_of(directory, owner);
                on_thread(move || Ok(destroy_file(&path)?)).await?;
                Ok(true)
            }
        }
    }

    /// Removes the key of a submission whose dataset's key is destroyed: nothing can open it any more.
    ///
    /// # Errors
    /// When the database or the file fails.
    pub(crate) async fn remove(
        &self,
        store: &Store,
        submission: SubmissionId,
    ) -> Result<(), StoreError> {
        match self {
            Self::Table => {
                sqlx::query("DELETE FROM dataset_keys WHERE dataset_id = $1")
                    .bind(submission)
                    .execute(&mut *store.connection().await?)
                    .await?;
                Ok(())
            }
            Self::Directory(_) => self.destroy(store, submission).await.map(|_| ()),
        }
    }

    /// Whether the keys belong to the database with this mark. A directory without a mark gets it.
    ///
    /// # Errors
    /// When the directory cannot be read or written.
    pub(crate) async fn are_of(&self, mark: [u8; 32]) -> Result<bool, StoreError> {
        let Self::Directory(directory) = self else {
            return Ok(true);
        };
        let path = directory.join(MARK);
        on_thread(move || {
            let mark = hex::encode(mark);
            match create_file(&path, mark.as_bytes()) {
                Ok(()) => Ok(true),
                Err(KeyFileError::Io { source, .. })
                    if source.kind() == ErrorKind::AlreadyExists =>
                {
                    Ok(fs::read_to_string(&path).map_err(failed(&path))? == mark)
                }
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// The owners of keys in a directory that are not among the `live` ones, except for keys that were written
    /// in the last thirty days.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(crate) async fn of_no_owner(
        &self,
        live: BTreeSet<Uuid>,
    ) -> Result<HashSet<KeyOwner>, StoreError> {
        let Self::Directory(directory) = self else {
            return Ok(HashSet::new());
        };
        let directory = directory.clone();
        on_thread(move || {
            remove_unfinished(&directory, "", UNFINISHED)?;
            let mut found = HashSet::new();
            for entry in fs::read_dir(&directory).map_err(failed(&directory))? {
                let entry = entry.map_err(failed(&directory))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let id = name.strip_suffix(SUFFIX);
                let id = id.or_else(|| name.strip_suffix(DOOMED_SUFFIX));
                let id = id.and_then(|id| id.parse().ok());
                let written = entry.metadata().and_then(|metadata| metadata.modified());
                let age =
                    written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
                let is_old = age.is_ok_and(|age| age > STALE);
                found.extend(id.filter(|id| is_old && !live.contains(id)).map(KeyOwner));
            }
            Ok(found)
        })
        .await
    }
}

/// Locks the key of an owner until the end of a transaction that makes the owner.
async fn lock(connection: &mut PgConnection, owner: KeyOwner) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 17))")
        .bind(owner)
        .execute(connection)
        .await?;
    Ok(())
}

/// Locks the key of an owner until the end of the transaction. Returns `false` if a transaction that makes the
/// owner is in progress.
pub(super) async fn try_lock(
    connection: &mut PgConnection,
    owner: KeyOwner,
) -> Result<bool, StoreError> {
    let lock =
        sqlx::query_scalar("SELECT pg_try_advisory_xact_lock(hashtextextended($1::text, 17))");
    Ok(lock.bind(owner).fetch_one(connection).await?)
}

fn file_of(directory: &Path, owner: KeyOwner) -> PathBuf {
    directory.join(format!("{}{SUFFIX}", owner.0))
}

/// A file of mode 0600 with a temporary name beside the one that it is to become.
fn new_file(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut named = tempfile::Builder::new();
    named
        .prefix(&format!("{NEW_PREFIX}{name}."))
        .tempfile_in(directory_of(path))
}

/// Overwrites and removes what killed processes have left of writing a file with a secret. No process may be writing
/// it: its bytes would be overwritten.
///
/// # Errors
/// [`KeyFileError`].
pub fn remove_unfinished_of(path: &Path) -> Result<(), KeyFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    remove_unfinished(directory_of(path), &format!("{name}."), Duration::ZERO)
}

/// Overwrites and removes the files with a temporary name of a directory whose own names begin with `name`, if they are
/// old enough.
fn remove_unfinished(directory: &Path, name: &str, age: Duration) -> Result<(), KeyFileError> {
    let prefix = format!("{NEW_PREFIX}{name}");
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let entry = entry.map_err(failed(directory))?;
        let path = entry.path();
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = written.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed >= age));
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(&prefix);
        if is_unfinished && is_old {
            let file = OpenOptions::new().write(true).open(&path);
            file.and_then(overwrite).map_err(failed(&path))?;
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

/// Writes a file of mode 0600 under a temporary name and renames it, so that it is never incomplete. The
/// content of an earlier file is overwritten.
fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let earlier = OpenOptions::new().write(true).open(path).ok();
    let mut new = new_file(path)?;
    new.write_all(content)?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    sync_directory(directory_of(path))?;
    match earlier {
        Some(earlier) => overwrite(earlier),
        None => Ok(()),
    }
}

/// Writes a file that did not exist, of mode 0600, and syncs it. It gets its name once it is complete.
///
/// # Errors
/// [`KeyFileError`]; if the file exists, with [`ErrorKind::AlreadyExists`].
pub fn create_file(path: &Path, content: &[u8]) -> Result<(), KeyFileError> {
    let written = new_file(path).and_then(|mut file| {
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        Ok(())
    });
    written.map_err(failed(path))
}

/// Replaces a file with a secret: the new one is complete before it gets the name, and the old bytes are
/// overwritten.
///
/// # Errors
/// [`KeyFileError`].
pub fn replace_secret(path: &Path, content: &[u8]) -> Result<(), KeyFileError> {
    replace_file(path, content).map_err(failed(path))
}

/// Overwrites and removes a file, if it exists. It is renamed first, so that nobody reads the overwritten
/// content; a crash after that leaves it under the other name, where the next call finds it.
fn destroy_file(path: &Path) -> Result<(), KeyFileError> {
    let doomed = path.with_extension(&DOOMED_SUFFIX[1..]);
    match fs::rename(path, &doomed) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path)(error)),
        _ => {}
    }
    let file = match OpenOptions::new().write(true).open(&doomed) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(&doomed)(error)),
    };
    overwrite(file).map_err(failed(&doomed))?;
    match fs::remove_file(&doomed) {
        // Another task has overwritten it too.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&doomed)(error)),
        _ => {}
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    sync_directory(directory).map_err(failed(path))
}

/// Overwrites a file in place with random bytes, so that its blocks do not keep the key.
fn overwrite(mut file: File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    let mut noise = vec![0; length];
    random(&mut noise).map_err(|error: SealError| io::Error::other(error))?;
    file.write_all(&noise)?;
    file.sync_all()
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Damaged("a data key, whose thread panicked")),
    }
}

/// How long a deletion waits for transactions that began before it.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);

/// SQLSTATE of a lock that was not granted in time.
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Time between two checks of these transactions.
const SNAPSHOT_POLL: Duration = Duration::from_millis(20);

/// Time between two attempts to rewrite a table that is in use.
const REWRITE_PAUSE: Duration = Duration::from_secs(5);

/// One task at a time tries to rewrite a table that is in use. After a restart the cleanup does.
static REWRITING: Mutex<()> = Mutex::const_new(());

/// One deletion at a time ends the write-ahead log: a checkpoint of a busy server takes long, and several
/// deletions would take all connections for work on the tables.
static ENDING_THE_LOG: Mutex<()> = Mutex::const_new(());

/// Rewrites the table without the deleted rows. Then, in the background, because it takes long on a busy
/// server, ends the current file of the write-ahead log. Steps that the service may not do are left to the
/// operator.
///
/// A dump of the database holds a lock on the table, and a snapshot, as long as it runs. The deletion does not
/// wait for it, nor do readers of the table queue behind it. Returns whether the table is rewritten.
async fn rewrite_table(store: &Store) -> Result<bool, StoreError> {
    let is_rewritten = vacuum(store).await?;
    let store = store.clone();
    if is_rewritten {
        tokio::spawn(async move { end_the_log(&store).await });
        return Ok(true);
    }
    tracing::warn!(
        "a long transaction, such as a dump or an upload, keeps a destroyed key in its table until it ends"
    );
    if let Ok(turn) = REWRITING.try_lock() {
        tokio::spawn(async move {
            let _turn = turn;
            loop {
                tokio::time::sleep(REWRITE_PAUSE).await;
                match vacuum(&store).await {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => tracing::warn!(%error, "a destroyed key is still in its table"),
                }
            }
            end_the_log(&store).await;
        });
    }
    Ok(false)
}

/// Ends the current file of the write-ahead log.
async fn end_the_log(store: &Store) {
    let _turn = ENDING_THE_LOG.lock().await;
    for statement in ["CHECKPOINT", "SELECT pg_switch_wal()"] {
        if let Err(error) = sqlx::raw_sql(statement).execute(store.owner()).await {
            tracing::warn!(
                statement,
                %error,
                "the write-ahead log keeps a destroyed key until PostgreSQL reuses its files"
            );
        }
    }
}

/// Rewrites the table without deleted rows. Returns whether none is left: `VACUUM` keeps rows that a
/// transaction can still see, and the table may be locked.
async fn vacuum(store: &Store) -> Result<bool, StoreError> {
    let is_seen_by_none = wait_for_older_snapshots(store).await?;
    // The setting ends with the connection.
    let mut connection = store.owner().acquire().await?.detach();
    sqlx::query("SET lock_timeout = '500ms'")
        .execute(&mut connection)
        .await?;
    let rewritten = sqlx::query("VACUUM (FULL) dataset_keys")
        .execute(&mut connection)
        .await;
    match rewritten {
        Ok(_) => Ok(is_seen_by_none),
        Err(sqlx::Error::Database(error))
            if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Waits until no transaction can see what is already deleted. Returns `false` if one takes longer than
/// [`SNAPSHOT_WAIT`].
async fn wait_for_older_snapshots(store: &Store) -> Result<bool, StoreError> {
    let now: String = sqlx::query_scalar("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        .fetch_one(store.owner())
        .await?;
    let ended = async {
        loop {
            // A snapshot is not older than the oldest transaction that runs while it is taken.
            let older: bool = sqlx::query_scalar(
                "SELECT pg_snapshot_xmin(pg_current_snapshot()) < $1::xid8
                        OR EXISTS (SELECT FROM pg_stat_activity
                                   WHERE datname = current_database() AND backend_xmin IS NOT NULL
                                         AND age(backend_xmin) > age($1::xid8::xid))",
            )
            .bind(&now)
            .fetch_one(store.owner())
            .await?;
            if !older {
                return Ok(true);
            }
            tokio::time::sleep(SNAPSHOT_POLL).await;
        }
    };
    let ended = tokio::time::timeout(SNAPSHOT_WAIT, ended).await;
    ended.unwrap_or(Ok(false))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Seek, SeekFrom};
    use std::os::unix::fs::PermissionsExt;

    use super::{DataKeys, check_mode, create_file, destroy_file, replace_secret};

    #[test]
    fn a_destroyed_file_leaves_no_bytes_even_to_who_has_it_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        create_file(&path, b"secret secret secret").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert!(create_file(&path, b"other").is_err());
        let mut open = fs::File::open(&path).unwrap();
        replace_secret(&path, b"another secret").unwrap();
        let mut kept = Vec::new();
        open.read_to_end(&mut kept).unwrap();
        assert!(!kept.windows(6).any(|window| window == b"secret"));
        let mut open = fs::File::open(&path).unwrap();
        destroy_file(&path).unwrap();
        destroy_file(&path).unwrap();
        open.seek(SeekFrom::Start(0)).unwrap();
        let mut kept = Vec::new();
        open.read_to_end(&mut kept).unwrap();
        assert!(!kept.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn a_directory_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        DataKeys::directory(&path).unwrap();
        check_mode(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let message = DataKeys::directory(&path).unwrap_err().to_string();
        assert!(
            message.contains("0750") && message.contains("chmod go="),
            "{message}"
        );
    }
}
