//! The one user of PostgreSQL: what the service knows, as queries with typed answers.
//!
//! Every function takes the organization on whose behalf it works, and answers `None` alike for
//! what does not exist and for what belongs to another.

pub mod audit;
pub mod datasets;
pub mod grants;
pub mod idempotency;
pub mod jobs;
pub mod organizations;
pub mod queue;
pub mod readiness;
pub mod releases;
pub mod seal;
pub mod submissions;
pub mod taxonomies;
pub mod tokens;

use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Postgres, Transaction};
use thiserror::Error;

use crate::clock::Clock;

/// The migrations, built in.
pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// What can go wrong between the service and its database.
#[derive(Debug, Error)]
pub enum StoreError {
    /// PostgreSQL refused or could not be reached.
    #[error("the database did not answer as expected")]
    Database(#[from] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error("the database could not be migrated; check that no newer version has used it")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A data key or a chunk cannot be made or opened.
    #[error(transparent)]
    Seal(#[from] seal::SealError),
    /// What is stored does not read back.
    #[error("stored data of {what} is damaged")]
    Damaged {
        /// Which thing, without values.
        what: &'static str,
    },
}

impl StoreError {
    /// Whether there is no database to ask, so that trying again may help.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Database(
                sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_)
            )
        )
    }
}

/// Whether a statement failed because a unique constraint or index of this name holds.
pub fn violates(error: &sqlx::Error, constraint: &str) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.constraint() == Some(constraint))
}

/// A connection pool with the clock that stamps what is written.
#[derive(Clone)]
pub struct Store {
    pool: PgPool,
    clock: Arc<dyn Clock>,
}

impl Store {
    /// Connects lazily with at most `max_connections`.
    pub fn new(options: PgConnectOptions, max_connections: u32, clock: Arc<dyn Clock>) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(std::time::Duration::from_secs(10))
            .connect_lazy_with(options);
        Self { pool, clock }
    }

    /// As [`Store::new`], from a URL such as `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// When it is no such URL.
    pub fn from_url(
        url: &str,
        max_connections: u32,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Ok(Self::new(url.parse()?, max_connections, clock))
    }

    /// Applies what migrations are missing.
    ///
    /// # Errors
    /// When the database cannot be reached or was used by a newer version.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        Ok(MIGRATOR.run(&self.pool).await?)
    }

    /// The pool.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The time that is written, in the microseconds that PostgreSQL keeps, so that the answer
    /// to a request and what is read back later agree.
    pub fn now(&self) -> time::OffsetDateTime {
        self.clock.now().truncate_to_microsecond()
    }

    /// A transaction; rolled back unless committed.
    ///
    /// It is begun on a task of its own: a caller that goes away between the statement and its
    /// answer would otherwise give the connection back to the pool inside a transaction.
    ///
    /// # Errors
    /// When no connection is to be had.
    pub async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        let pool = self.pool.clone();
        let begun = tokio::spawn(async move { pool.begin().await }).await;
        // The task is not aborted, so it ends otherwise only by a panic or with the runtime.
        Ok(begun.unwrap_or(Err(sqlx::Error::WorkerCrashed))?)
    }

    /// Closes the pool.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
