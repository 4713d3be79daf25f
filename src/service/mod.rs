//! The service layer: everything that a request does beyond parsing it and answering it.
//!
//! [`Service`] has one method for each operation of the API, in the file of its resource. It checks
//! what was sent, calls the worker's engine and the store, and returns their types. It does not use
//! HTTP types: `crate::http` parses requests, calls a method, and writes the response.

pub mod error;
pub mod idempotency;
pub mod ingest;
pub mod limits;
pub mod page;
pub mod table_format;
pub mod table_permits;
pub mod watch;

mod audit;
mod datasets;
mod grants;
pub mod jobs;
mod organizations;
mod profile;
pub mod releases;
mod rendered_tables;
mod report_view;
mod steps;
mod storage_upkeep;
pub mod submissions;
mod taxonomies;
mod text;
mod token_lifetime;
mod tokens;

use std::sync::Arc;

use tokio::sync::{Mutex, Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::storage::Storage;
use crate::store::seal::KeyRing;
use crate::store::{Store, readiness};

pub use error::ServiceError;
pub use limits::ServiceLimits;
pub use token_lifetime::TokenLifetime;

use table_permits::TablePermits;

/// The operations of the API, and the state that they share. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    /// The database.
    pub store: Store,
    /// Wraps and unwraps the datasets' keys.
    pub keys: Arc<KeyRing>,
    /// Limits on what a client sends.
    pub limits: ServiceLimits,
    /// Wakes the workers of this process when a job is created or cancelled.
    pub wake: Arc<Notify>,
    /// Cancelled when the service stops; ends streams.
    pub shutdown: CancellationToken,
    /// The disk, and the directory of rendered tables and temporary files.
    pub storage: Arc<Storage>,
    /// Held while the rows of deleted datasets are removed.
    reclaiming: Arc<Mutex<()>>,
    /// Permits to hold a table in memory.
    permits: TablePermits,
    /// Permits to read an upload.
    uploads: Arc<Semaphore>,
}

impl Service {
    /// Creates the service layer.
    pub fn new(
        store: Store,
        keys: Arc<KeyRing>,
        limits: ServiceLimits,
        storage: Arc<Storage>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            store,
            keys,
            limits,
            wake: Arc::new(Notify::new()),
            shutdown,
            storage,
            reclaiming: Arc::default(),
            permits: TablePermits::default(),
            uploads: Arc::new(Semaphore::new(limits.concurrent_uploads)),
        }
    }

    /// Number of uploads that can begin without waiting.
    pub fn free_uploads(&self) -> usize {
        self.uploads.available_permits()
    }

    /// Whether the database has all migrations.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_migrated(&self) -> Result<bool, ServiceError> {
        Ok(readiness::is_migrated(&self.store).await?)
    }
}
