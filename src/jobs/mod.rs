//! The workers, which take jobs from the durable queue and run one attempt at a time under a lease.
//!
//! A worker claims a job and loads its rows ([`crate::engine::load_rows`]). It runs the engine on a separate thread,
//! packs the release (`engine::release_packing`), and writes all results in one transaction. Meanwhile the
//! thread of the heartbeats renews the lease. Even if a worker dies, its job either ends exactly once,
//! or another worker claims it when the lease has expired.

mod gauges;
mod heartbeats;
mod job_worker;
mod progress;
mod slots;
pub mod upkeep;

pub use job_worker::end_exhausted;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::db::claims::ClaimRules;
use crate::db::key_ring::KeyRing;
use crate::db::quotas::Quotas;
use crate::db::{Store, queue};
use crate::executors::ExecutorSet;
use crate::ids::{JobId, OrganizationId};
use crate::memory::MemoryBudget;
use crate::storage::Storage;

use heartbeats::Heartbeats;
use job_worker::Worker;
use slots::WorkerSlots;

/// How long the runs may take to stop when they are interrupted.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// How long the thread of the heartbeats may take to end.
const HEARTBEATS_WAIT: Duration = Duration::from_secs(2);

/// The settings of the workers.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPoolSettings {
    /// Number of jobs that run at the same time; 0 for a process that runs none.
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
    /// Longest time that a job may run, without its wait for memory.
    pub max_run: Duration,
    /// Number of jobs of one organization that run at the same time; 0 for no limit.
    pub running_per_organization: u32,
    /// Maximum memory for the tables of one job, in bytes.
    pub job_bytes: u64,
    /// The shares of each organization, which the jobs of editions keep.
    pub quotas: Quotas,
}

impl WorkerPoolSettings {
    fn claim_rules(&self) -> ClaimRules {
        ClaimRules {
            lease: self.lease,
            max_attempts: self.max_attempts,
            running_per_organization: self.running_per_organization,
        }
    }
}

/// The workers of this process.
pub struct WorkerPool {
    store: Store,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    interrupt: CancellationToken,
    heartbeats: Heartbeats,
    heartbeats_end: Option<oneshot::Receiver<()>>,
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.heartbeats.stop();
    }
}

/// What the workers share with requests. Clones share it too.
#[derive(Clone)]
pub struct Resources {
    /// The database.
    pub store: Store,
    /// Wraps and unwraps the datasets' keys.
    pub keys: Arc<KeyRing>,
    /// Wakes the workers when a job is created or cancelled.
    pub wake: Arc<Notify>,
    /// The memory budget of the process.
    pub memory: MemoryBudget,
    /// The disks.
    pub storage: Arc<Storage>,
    /// The executors that count the rows of large tables.
    pub executors: ExecutorSet,
    /// Receives the job of each attempt that ends.
    pub attempts: watch::Sender<Option<JobKey>>,
}

/// A job of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobKey {
    /// The organization.
    pub organization: OrganizationId,
    /// The job.
    pub job: JobId,
}

/// Starts the workers. When `shutdown` is cancelled, they claim no further jobs.
///
/// # Errors
/// When the operating system starts no thread for the heartbeats.
pub fn start(
    resources: Resources,
    settings: WorkerPoolSettings,
    shutdown: CancellationToken,
) -> io::Result<WorkerPool> {
    let interrupt = CancellationToken::new();
    let (heartbeats, end) = Heartbeats::start(&resources.store, settings, interrupt.clone())?;
    let pool = WorkerPool {
        store: resources.store.clone(),
        tasks: TaskTracker::new(),
        shutdown: shutdown.child_token(),
        interrupt,
        heartbeats,
        heartbeats_end: Some(end),
    };
    let slots = Arc::new(WorkerSlots::new(settings.concurrency));
    for _ in 0..settings.concurrency {
        let worker = Worker {
            resources: resources.clone(),
            settings,
            slots: slots.clone(),
            heartbeats: pool.heartbeats.clone(),
            shutdown: pool.shutdown.clone(),
        };
        pool.tasks.spawn(worker.work());
    }
    let Resources {
        store,
        keys,
        wake,
        memory,
        storage,
        ..
    } = resources;
    let (tasks, shutdown) = (&pool.tasks, || pool.shutdown.clone());
    tasks.spawn(upkeep::chain_events(
        store.clone(),
        keys.clone(),
        shutdown(),
    ));
    tasks.spawn(gauges::measure(
        store.clone(),
        memory,
        storage.clone(),
        shutdown(),
    ));
    tasks.spawn(upkeep::remove_files(
        store.clone(),
        storage.clone(),
        shutdown(),
    ));
    tasks.spawn(upkeep::keep(store, keys, storage, shutdown(), wake));
    tasks.close();
    Ok(pool)
}

impl WorkerPool {
    /// Waits until `shutdown` is cancelled and then until the running jobs have ended. Used in the grace period
    /// of a shutdown.
    pub async fn drained(&self) {
        self.shutdown.cancelled().await;
        self.tasks.wait().await;
    }

    /// Stops at once. The running jobs return to the queue, for the next process, even if their
    /// threads do not stop: what such a thread writes later is refused.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        self.interrupt.cancel();
        if timeout(STOP_WAIT, self.tasks.wait()).await.is_err() {
            for claim in self.heartbeats.held() {
                let returned = timeout(STOP_WAIT, queue::requeue(&self.store, &claim)).await;
                let returned = matches!(returned, Ok(Ok(_)));
                tracing::warn!(job = %claim.job, returned, "a run did not stop in time");
            }
        }
        self.heartbeats.stop();
        if let Some(end) = self.heartbeats_end.take() {
            // The thread waits for nothing but a connection that does not answer.
            let _ = timeout(HEARTBEATS_WAIT, end).await;
        }
    }
}
