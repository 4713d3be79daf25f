//! Where the wrapped data keys of the datasets are, and the sealed keys of their submissions. They are
//! kept where they can be destroyed: a deleted row remains in the files of a table and in the
//! write-ahead log for a time.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use pais_core::definition::{DatasetId, SubmissionId};

use super::data_key_table::rewrite_table;
use super::{Store, StoreError};
use crate::storage::secret_file::{
    DOOMED_SUFFIX, KeyFileError, check_mode, create_file, destroy_file, failed, remove_unfinished,
    replace_secret,
};

/// End of the name of a key file; before it is the id of the dataset.
const SUFFIX: &str = ".key";

/// The age at which a key file without an owner is considered left over. A younger one may be of an owner that is being
/// created, or of one that a database which was put back to an earlier state does not have. Keys of deleted rows do
/// not wait for it.
const STALE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file in a directory of keys that says to which database they belong.
const MARK: &str = "database";

/// The age at which a key file that was not written completely is left over.
const UNFINISHED: Duration = Duration::from_secs(60 * 60);

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
    /// A directory with a file for each dataset and each submission. A file is overwritten before it is removed.
    Directory(PathBuf),
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
                on_thread(move || Ok(replace_secret(&file_of(&directory, owner), &wrapped)?)).await
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

    /// Destroys keys, those that exist. Must not run inside a transaction if the keys are in the table. Returns those
    /// of which nothing is left: a table is rewritten when no older transaction sees a key, and a file that cannot be
    /// overwritten is logged.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn destroy(
        &self,
        store: &Store,
        owners: &[KeyOwner],
    ) -> Result<Vec<KeyOwner>, StoreError> {
        let owners = owners.to_vec();
        match self {
            Self::Table => {
                // The keys of its submissions, which it seals, are removed with the key of a dataset.
                sqlx::query(
                    "DELETE FROM dataset_keys WHERE dataset_id = ANY($1)
                     OR dataset_id IN (SELECT id FROM submissions WHERE dataset_id = ANY($1))",
                )
                .bind(&owners)
                .execute(&mut *store.connection().await?)
                .await?;
                let is_rewritten = rewrite_table(store).await?;
                Ok(if is_rewritten { owners } else { Vec::new() })
            }
            Self::Directory(directory) => {
                let directory = directory.clone();
                on_thread(move || {
                    let is_destroyed = |owner: &KeyOwner| {
                        let destroyed = destroy_file(&file_of(&directory, *owner));
                        let failed = destroyed.inspect_err(|error| {
                            tracing::warn!(
                                error = error as &dyn std::error::Error,
                                "the file of a key could not be destroyed"
                            );
                        });
                        failed.is_ok()
                    };
                    Ok(owners.into_iter().filter(is_destroyed).collect())
                })
                .await
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
            Self::Directory(_) => self.destroy(store, &[submission.into()]).await.map(|_| ()),
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

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Damaged("a data key, whose thread panicked")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::DataKeys;

    #[test]
    fn a_directory_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        DataKeys::directory(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let message = DataKeys::directory(&path).unwrap_err().to_string();
        assert!(
            message.contains("0750") && message.contains("chmod go="),
            "{message}"
        );
    }
}
