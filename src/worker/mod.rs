//! Runs: workers that take jobs from the durable queue, one attempt at a time under a lease.
//!
//! A job is claimed, its rows are opened and put together ([`load_rows`]), the engine runs on a
//! thread of its own, the release is packed ([`release_packing`]), and all that the run leaves behind
//! is written in one transaction. A heartbeat keeps the lease meanwhile. Whatever happens to a
//! worker, its job is either ended once or taken up again when the lease has run out.

pub mod attempt;
mod lease;
pub mod load_rows;
mod progress;
pub mod records;
pub mod release_packing;
mod upkeep;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::problem::{Code, Problem};
use crate::store::seal::KeyRing;
use crate::store::{Store, StoreError};

use worker::Worker;

/// How jobs are worked on.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// Jobs at a time.
    pub concurrency: usize,
    /// How long a silent worker keeps its job.
    pub lease: Duration,
    /// Longest time between two signs of life; they come more often, so that cancelling works
    /// within a second.
    pub heartbeat: Duration,
    /// How often an idle worker looks for jobs of other processes.
    pub poll: Duration,
    /// How often a job is begun before it is given up.
    pub max_attempts: u32,
}

impl Default for WorkerSettings {
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

/// Why work on a table stopped.
#[derive(Debug, Error)]
pub enum WorkError {
    /// It cannot be done, or was cancelled.
    #[error(transparent)]
    Problem(Problem),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread that did it panicked.
    #[error("the work ended in a panic")]
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

/// Starts the workers. From the cancellation of `shutdown` on they take no further jobs.
pub fn start(
    store: Store,
    keys: Arc<KeyRing>,
    settings: WorkerSettings,
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
        .spawn(upkeep::keep(store, pool.shutdown.clone(), wake));
    pool.tasks.close();
    pool
}

impl WorkerPool {
    /// Waits until the jobs under way have ended; for the grace of a shutdown.
    pub async fn drained(&self) {
        self.shutdown.cancelled().await;
        self.tasks.wait().await;
    }

    /// Stops at once: jobs under way go back to the queue, for the next process.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.interrupt.cancel();
        self.tasks.wait().await;
    }
}

/// Runs `work` on a thread that may block.
///
/// # Errors
/// Those of `work`; [`WorkError::Panicked`] when it panicked.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkError> + Send + 'static,
) -> Result<T, WorkError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(WorkError::Panicked),
        Err(_) => Err(Problem::new(Code::Cancelled, "the service is stopping").into()),
    }
}
