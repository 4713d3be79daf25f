//! The service layer: everything that a request does beyond parsing it and answering it.
//!
//! [`Service`] has one method for each operation of the API, in the file of its resource. It checks
//! what was sent, calls the worker's engine and the store, and returns their types. It does not use
//! HTTP types: `crate::api` parses requests, calls a method, and writes the response.

pub mod drafts;
pub mod error;
pub mod idempotency;
pub mod ingest;
pub mod large_documents;
pub mod limits;
pub mod page;
pub mod streams;
pub mod table_format;
pub mod token_lifetime;
pub mod watch;

mod audit;
mod bounds;
mod composition_tables;
pub mod compositions;
mod data_package;
pub mod dataset_changes;
mod datasets;
mod grants;
pub mod jobs;
mod legal_holds;
mod organizations;
pub mod packages;
mod policies;
mod profile;
pub mod releases;
mod rendered_tables;
mod report_links;
mod report_pages;
mod report_view;
mod risk;
mod shared_polls;
mod steps;
pub mod submissions;
mod table_work;
mod taxonomies;
mod text;
mod tokens;
mod upload_places;
mod withdrawals;

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::db::key_ring::KeyRing;
use crate::db::{RowScope, Store, readiness};
use crate::memory::MemoryBudget;
use crate::roles::Caller;
use crate::storage::Storage;

pub use error::ServiceError;
pub use limits::ServiceLimits;

use large_documents::LargeDocuments;
use table_work::TablePlaces;
use upload_places::UploadPlaces;
use watch::Watching;

/// The operations of the API, and the state that they share. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    /// The database.
    pub store: Store,
    /// Wraps and unwraps the datasets' keys.
    pub keys: Arc<KeyRing>,
    /// Limits on what a client sends.
    pub limits: ServiceLimits,
    /// The memory of the process for what clients send.
    pub memory: MemoryBudget,
    /// Wakes the workers of this process when a job is created or cancelled.
    pub wake: Arc<Notify>,
    /// Cancelled when the service stops; ends streams.
    pub shutdown: CancellationToken,
    /// The disks.
    pub storage: Arc<Storage>,
    /// Places for work on tables.
    tables: TablePlaces,
    /// What is watched by event streams.
    watching: Watching,
    /// Places of uploads.
    uploads: UploadPlaces,
    /// Threads and memory for large documents.
    pub documents: LargeDocuments,
}

impl Service {
    /// Creates the service layer.
    pub fn new(
        store: Store,
        keys: Arc<KeyRing>,
        limits: ServiceLimits,
        memory: MemoryBudget,
        storage: Arc<Storage>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            store,
            keys,
            limits,
            documents: LargeDocuments::new(memory.clone()),
            memory,
            wake: Arc::new(Notify::new()),
            shutdown,
            storage,
            tables: TablePlaces::new(CancellationToken::new()),
            watching: Watching::new(limits.streams),
            uploads: UploadPlaces::new(
                limits.concurrent_uploads,
                limits.uploads_per_organization,
                limits.upload_wait,
            ),
        }
    }

    /// The same operations, with the rows of the database that the caller may come to.
    pub fn of(&self, caller: Caller) -> Self {
        Self {
            store: self.store.within(RowScope::of(caller)),
            ..self.clone()
        }
    }

    /// Number of uploads that can begin without waiting.
    pub fn free_uploads(&self) -> usize {
        self.uploads.free()
    }

    /// Whether the database has all migrations.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_migrated(&self) -> Result<bool, ServiceError> {
        Ok(readiness::is_migrated(&mut *self.store.connection().await?).await?)
    }
}
