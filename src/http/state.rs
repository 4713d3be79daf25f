//! What every handler may use.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::store::Store;
use crate::store::seal::KeyRing;
use pais_core::taxonomy::TreeLimits;

use super::rate::RateLimiter;

/// Bounds on what a client sends, from the configuration's `limits`.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Bytes of a decoded upload.
    pub upload_bytes: u64,
    /// Bytes of a decoded JSON body.
    pub json_bytes: usize,
    /// Bytes that the tables of one job may take in memory.
    pub job_bytes: u64,
    /// Columns of a dataset.
    pub columns: usize,
    /// Size of a taxonomy.
    pub taxonomy: TreeLimits,
    /// Uploads read at once; further ones wait.
    pub concurrent_uploads: usize,
}

/// What every handler may use; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The database.
    pub store: Store,
    /// Opens and seals data keys.
    pub keys: Arc<KeyRing>,
    /// Bounds on what a client sends.
    pub limits: HttpLimits,
    /// Bounds how often a token is used; `None` for no bound.
    pub rate: Option<Arc<RateLimiter>>,
    /// Where rendered tables are kept while they are served.
    pub spool: Arc<PathBuf>,
    /// Ends streams when the service stops.
    pub shutdown: CancellationToken,
    /// Free places for uploads.
    pub uploads: Arc<tokio::sync::Semaphore>,
    /// Wakes the workers of this process when a job arrives or is cancelled.
    pub wake: Arc<tokio::sync::Notify>,
}
