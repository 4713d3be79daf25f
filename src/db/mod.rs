//! The database layer: queries with typed results. Only this module uses PostgreSQL.
//!
//! A function takes the organization on whose behalf it works, and returns `None` both for what does not exist and for
//! what belongs to another organization; or it takes an id that was found for the organization. It fails when the database fails; its
//! documentation names further errors only.

pub mod approvals;
pub mod audit;
pub mod audit_archive;
pub mod audit_chain;
pub mod backup;
pub mod claims;
mod data_key_table;
pub mod data_keys;
pub mod dataset_revisions;
pub mod datasets;
pub mod definition_at_rest;
pub mod deletion;
pub mod editions;
pub mod grants;
pub mod idempotency;
pub mod instances;
pub mod jobs;
pub mod key_ring;
pub mod legal_holds;
pub mod located_objects;
mod locked_release;
pub mod migration_state;
mod new_release;
pub mod officers;
pub mod open_ring;
pub mod organizations;
pub mod people;
pub mod policies;
pub mod publications;
pub mod queue;
pub mod quotas;
pub mod reclaim;
pub mod release_files;
pub mod releases;
pub mod runs;
pub mod seal;
pub mod service_keys;
pub mod service_role;
pub mod sessions;
pub mod submissions;
pub mod taxonomies;
pub mod token_validity;
pub mod tokens;
mod trees;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::types::PgInterval;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgPoolOptions, PgSeverity};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use thiserror::Error;
use uuid::Uuid;

use crate::clock::Clock;
use crate::problem::Problem;

use crate::storage::secret_file::KeyFileError;
use data_keys::DataKeys;

pub use jobs::JobStatus;
pub use service_role::RowScope;

/// The migrations, which are built into the program.
pub(crate) static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// An error of the database layer.
#[derive(Debug, Error)]
pub enum StoreError {
    /// PostgreSQL returned an error or could not be reached.
    #[error("a database query failed")]
    Database(#[from] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error("the database could not be migrated; check that no newer version has used it")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A data key or a chunk could not be sealed or opened.
    #[error(transparent)]
    Seal(#[from] pais_seal::SealError),
    /// The file of a data key cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// A value cannot be written as JSON.
    #[error("a value could not be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The organization has used up its share.
    #[error(transparent)]
    Quota(#[from] quotas::QuotaError),
    /// The token of the caller was revoked or has expired since the request began.
    #[error("the token of the request has ended meanwhile")]
    TokenEnded,
    /// The policy of the organization forbids it.
    #[error("the policy of the organization forbids it")]
    BelowPolicy(Box<Problem>),
    /// Another submission has taken the place of one whose rows are to be released.
    #[error("another submission has taken the place of one that is to be released")]
    SubmissionReplaced(Box<Problem>),
    /// The service key of the database is not the one of this process.
    #[error(
        "the database was replaced while the service runs, by a restored one; restart the service"
    )]
    Replaced,
    /// The directory of data keys is that of another database, whose keys must not be destroyed.
    #[error(
        "the directory of data keys (encryption.data_key_dir) belongs to another database; give each database a \
         directory of its own. If this database was restored from a dump and these are its keys, remove the file \
         `database` there"
    )]
    KeysOfAnother,
    /// Stored data cannot be decoded; names the kind of data without values.
    #[error("stored data of {0} is damaged")]
    Damaged(&'static str),
}

impl StoreError {
    /// Whether the database could not be reached, so that a retry may help.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => {
                // The server was shut down, has crashed, or is still starting; or the session ended for another
                // reason of the server, such as a full disk while it began.
                let is_down = matches!(error.code().as_deref(), Some("57P01" | "57P02" | "57P03"));
                let error = error.try_downcast_ref::<PgDatabaseError>();
                is_down
                    || error.is_some_and(|it| {
                        matches!(it.severity(), PgSeverity::Fatal | PgSeverity::Panic)
                    })
            }
            Self::Database(error) => matches!(
                error,
                sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_)
            ),
            _ => false,
        }
    }

    /// Whether it comes again each time: what is stored is damaged, or the database does not take a statement or one of
    /// its values.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::Seal(_) | Self::Json(_) => true,
            Self::Database(sqlx::Error::Database(error)) => {
                // Data exceptions, violated constraints, and errors of syntax or rights.
                let code = error.code().unwrap_or_default();
                ["22", "23", "42"]
                    .iter()
                    .any(|class| code.starts_with(class))
            }
            Self::Database(error) => matches!(
                error,
                sqlx::Error::TypeNotFound { .. }
                    | sqlx::Error::ColumnNotFound(_)
                    | sqlx::Error::ColumnDecode { .. }
                    | sqlx::Error::Decode(_)
                    | sqlx::Error::Encode(_)
            ),
            _ => false,
        }
    }

    /// Whether the disk of the database, or that of the key files, is full.
    pub(crate) fn is_storage_full(&self) -> bool {
        if let Self::KeyFile(KeyFileError::Io { source, .. }) = self {
            let kind = source.kind();
            return matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        }
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return false;
        };
        match error.code().as_deref() {
            // disk_full
            Some("53100") => true,
            // out_of_memory and io_error, which some versions report for a full disk.
            Some("53200" | "58030") => {
                let message = error.message();
                let full = ["No space left on device", "Disk quota exceeded"];
                full.iter().any(|reason| message.contains(reason))
            }
            _ => false,
        }
    }
}

/// Whether a statement failed because it violates the unique constraint or index of this name.
pub(crate) fn violates(error: &sqlx::Error, constraint: &str) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.constraint() == Some(constraint))
}

/// Longest time to wait for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of connections for work on the tables themselves.
const OWNER_CONNECTIONS: u32 = 2;

/// How long such a connection is kept open without use.
const OWNER_IDLE: Duration = Duration::from_secs(10);

/// Connections to the database with the rows that they are shown, and the clock for the timestamps.
#[derive(Clone)]
pub struct Store {
    pool: PgPool,
    owner: PgPool,
    scope: RowScope,
    clock: Arc<dyn Clock>,
    instance: Uuid,
    data_keys: DataKeys,
}

/// The connections of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolConnections {
    /// In use.
    pub used: u32,
    /// Open and idle.
    pub idle: u32,
    /// Maximum number of open connections.
    pub limit: u32,
}

impl Store {
    /// Creates a pool with at most `max_connections` connections, which work under the role of the
    /// service, and two more for work on the tables themselves. It connects when first used. Every row
    /// is shown; [`Store::within`] restricts that.
    pub fn new(options: PgConnectOptions, max_connections: u32, clock: Arc<dyn Clock>) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sessions::keep_alive(connection).await?;
                    service_role::assume(connection).await
                })
            })
            .connect_lazy_with(options.clone());
        let owner = PgPoolOptions::new()
            .max_connections(OWNER_CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(OWNER_IDLE)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sessions::keep_alive(connection).await?;
                    RowScope::Service.set(connection).await
                })
            })
            .connect_lazy_with(options);
        Self {
            pool,
            owner,
            scope: RowScope::Service,
            clock,
            instance: Uuid::now_v7(),
            data_keys: DataKeys::Table,
        }
    }

    /// The same store with the data keys in another place than its table.
    pub fn with_data_keys(self, data_keys: DataKeys) -> Self {
        Self { data_keys, ..self }
    }

    /// Where the wrapped data keys of the datasets are.
    pub fn data_keys(&self) -> &DataKeys {
        &self.data_keys
    }

    /// Like [`Store::new`], with a URL such as `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// When the URL is invalid.
    pub fn from_url(
        url: &str,
        max_connections: u32,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Ok(Self::new(url.parse()?, max_connections, clock))
    }

    /// The same store, which is shown only the rows of this scope.
    pub fn within(&self, scope: RowScope) -> Self {
        Self {
            scope,
            ..self.clone()
        }
    }

    /// Applies the missing migrations, and prepares the role of the service.
    ///
    /// # Errors
    /// When the database cannot be reached or was used by a newer version.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        MIGRATOR.run(&self.owner).await?;
        self.prepare_role().await
    }

    /// Prepares the role of the service, which a backup of a database does not contain. Must be called
    /// before [`Store::connection`] and [`Store::begin`].
    pub async fn prepare_role(&self) -> Result<(), StoreError> {
        if !service_role::prepare(&self.owner).await? {
            tracing::warn!(
                role = service_role::SERVICE_ROLE,
                "the database user may not create the role of the service, and works as the owner of the \
                 tables; see docs/operations.md"
            );
        }
        Ok(())
    }

    /// A connection under the role of the service, which is shown the rows of this store's scope. It
    /// costs a round trip; a transaction does not.
    ///
    /// # Errors
    /// When no connection is available.
    pub async fn connection(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        self.scope.set(&mut connection).await?;
        Ok(connection)
    }

    /// The connections of the user that owns the tables, for work on the tables themselves: migrations,
    /// `VACUUM`, and the write-ahead log.
    pub fn owner(&self) -> &PgPool {
        &self.owner
    }

    /// The id of this process among those that use the database.
    pub fn instance(&self) -> Uuid {
        self.instance
    }

    /// The connections of the pool.
    pub(crate) fn connections(&self) -> PoolConnections {
        let idle = self.pool.num_idle() as u32;
        PoolConnections {
            used: self.pool.size().saturating_sub(idle),
            idle,
            limit: self.pool.options().get_max_connections(),
        }
    }

    /// The same database with a pool of its own, which has at most `max_connections` connections and
    /// belongs to the current runtime.
    pub(crate) fn with_own_pool(&self, max_connections: u32) -> Self {
        let options = (*self.pool.connect_options()).clone();
        Self {
            instance: self.instance,
            scope: self.scope,
            data_keys: self.data_keys.clone(),
            ..Self::new(options, max_connections, self.clock.clone())
        }
    }

    /// The current time for timestamps. It is truncated to microseconds, the precision of
    /// PostgreSQL, so that the answer to a request and the stored value are equal.
    pub fn now(&self) -> time::OffsetDateTime {
        self.clock.now().truncate_to_microsecond()
    }

    /// Begins a transaction. It is rolled back unless it is committed.
    ///
    /// It begins on a separate task. Otherwise a caller that is cancelled between the statement and
    /// its answer would return the connection to the pool inside a transaction.
    ///
    /// # Errors
    /// When no connection is available.
    pub async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        let pool = self.pool.clone();
        // Of words of this program and a UUID.
        let statement = AssertSqlSafe(self.scope.begin_statement());
        let begun = tokio::spawn(async move { pool.begin_with(statement).await }).await;
        // Nothing aborts the task, so joining it fails only after a panic or when the runtime ends.
        Ok(begun.unwrap_or(Err(sqlx::Error::WorkerCrashed))?)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        tokio::join!(self.pool.close(), self.owner.close());
    }
}

fn pg_interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::{KeyFileError, StoreError};

    #[test]
    fn a_key_file_that_has_no_space_is_a_full_disk() {
        let error = |kind: ErrorKind| {
            StoreError::from(KeyFileError::Io {
                path: "dataset-keys".into(),
                source: kind.into(),
            })
        };
        assert!(error(ErrorKind::StorageFull).is_storage_full());
        assert!(!error(ErrorKind::PermissionDenied).is_storage_full());
    }
}
