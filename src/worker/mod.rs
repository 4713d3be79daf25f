//! The workers, which take jobs from the durable queue and run one attempt at a time under a lease.
//!
//! A worker claims a job and loads its rows ([`load_rows`]). It runs the engine on a separate thread,
//! packs the release ([`release_packing`]), and writes all results in one transaction. Meanwhile a
//! heartbeat renews the lease. Even if a worker dies, its job either ends exactly once, or another
//! worker claims it when the lease has expired.

pub mod attempt;
mod job_worker;
mod lease;
pub mod load_rows;
mod progress;
pub mod records;
pub mod release_packing;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::problem::{Code, Problem};
use crate::storage::Storage;
use crate::store::key_ring::KeyRing;
use crate::store::{Store, StoreError};

use job_worker::Worker;

/// The settings of the workers.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPoolSettings {
    /// Number of jobs that run at the same time.
    pub concurrency: usize,
    /// Duration of a lease: how long a worker keeps its job without a heartbeat.
    pub lease: Duration,
    /// Longest time between two heartbeats. They are sent more often than this, so that a job is
    /// cancelled within a second.
    pub heartbeat: Duration,
    /// How often an idle worker checks the queue for jobs that other processes have created.
    pub poll: Duration,
    /// Number of attempts at a job before it fails.
    pub max_attempts: u32,
}

impl Default for WorkerPoolSettings {
    fn default() -> Self {
        Self {
            concurrency: 1,
            lease: Duration::from_secs(8),
            heartbeat: Duration::from_secs(2),
            poll: Duration::from_secs(1),
            max_attempts: 3,
        }
    }
}

/// Why work on a table ended without a result.
#[derive(Debug, Error)]
pub enum WorkError {
    /// It is not possible, or it was cancelled.
    #[error(transparent)]
    Problem(Problem),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread that did the work panicked.
    #[error("the thread that did the work panicked")]
    Panicked,
}

impl<E: Into<Problem>> From<E> for WorkError {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

/// The workers of this process.
pub struct WorkerPool {
    tasks: TaskTracker,
    shutdown: CancellationToken,
    interrupt: CancellationToken,
}

/// Starts the workers. When `shutdown` is cancelled, they claim no further jobs.
pub fn start(
    store: Store,
    keys: Arc<KeyRing>,
    storage: Arc<Storage>,
    settings: WorkerPoolSettings,
    wake: Arc<Notify>,
    shutdown: CancellationToken,
) -> WorkerPool {
    let pool = WorkerPool {
        tasks: TaskTracker::new(),
        shutdown: shutdown.child_token(),
        interrupt: CancellationToken::new(),
    };
    for _ in 0..settings.concurrency.max(1) {
        let worker = Worker {
            store: store.clone(),
            keys: keys.clone(),
            settings,
            wake: wake.clone(),
            shutdown: pool.shutdown.clone(),
            interrupt: pool.interrupt.clone(),
        };
        pool.tasks.spawn(worker.work());
    }
    pool.tasks
        .spawn(upkeep::keep(store, storage, pool.shutdown.clone(), wake));
    pool.tasks.close();
    pool
}

impl WorkerPool {
    /// Waits until `shutdown` is cancelled and then until the running jobs have ended. For the grace
    /// period of a shutdown.
    pub async fn drained(&self) {
        self.shutdown.cancelled().await;
        self.tasks.wait().await;
    }

    /// Stops at once. The running jobs return to the queue, for the next process.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.interrupt.cancel();
        self.tasks.wait().await;
    }
}

/// Runs `work` on a thread that may block. Returns its result.
///
/// # Errors
/// Those of `work`; [`WorkError::Panicked`] if it panicked.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkError> + Send + 'static,
) -> Result<T, WorkError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(WorkError::Panicked),
        Err(_) => Err(Problem::new(Code::Cancelled, "the service is stopping").into()),
    }
}
