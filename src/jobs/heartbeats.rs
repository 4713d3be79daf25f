//! The heartbeats of this process. One thread with its own runtime and connections renews the leases
//! of all running jobs and the heartbeat of the process, so that a blocked main
//! runtime does not cost a lease. It reports progress and stops runs that must stop.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::db::claims::{self, Claim};
use crate::db::queue::{self, LeaseRenewal, RenewalReply};
use crate::db::{Store, instances};

use super::WorkerPoolSettings;
use super::progress::{Progress, StopReason};

/// Longest time between two heartbeats, and so the longest wait of a request to cancel.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// Time between the first heartbeats, at most ten per second, so that the progress of a short run
/// is visible.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The pause before the next heartbeat is the age of the attempt divided by this, within the limits
/// above. So the pauses grow with the age.
const AGE_PER_PAUSE: u32 = 8;

/// Leases that are due within this time are renewed together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Connections of the thread: one is in use, and one replaces it when it does not answer.
const CONNECTIONS: u32 = 2;

/// How long an attempt that has run for `age` waits before its next heartbeat.
fn pause(age: Duration, heartbeat: Duration) -> Duration {
    let longest = heartbeat.min(LONGEST_PAUSE);
    (age / AGE_PER_PAUSE).max(FIRST_PAUSE).min(longest)
}

/// The leases that the thread renews. Clones share them.
#[derive(Clone)]
pub(super) struct Heartbeats {
    shared: Arc<SharedLeases>,
    interrupt: CancellationToken,
    stop: CancellationToken,
}

struct SharedLeases {
    leases: Mutex<HashMap<Uuid, Held>>,
    added: Notify,
}

struct Held {
    claim: Claim,
    progress: Arc<Progress>,
    started: Instant,
    due: Instant,
    renewed: Instant,
}

/// A lease that is renewed until this is dropped.
pub(super) struct Lease {
    shared: Arc<SharedLeases>,
    token: Uuid,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.leases.lock().remove(&self.token);
    }
}

impl Heartbeats {
    /// Starts the thread. When `interrupt` is cancelled, all runs are asked to stop. The thread ends
    /// after [`Heartbeats::stop`], and then the receiver gets a message.
    ///
    /// # Errors
    /// When the operating system starts no thread.
    pub(super) fn start(
        store: &Store,
        settings: WorkerPoolSettings,
        interrupt: CancellationToken,
    ) -> io::Result<(Self, oneshot::Receiver<()>)> {
        let heartbeats = Self {
            shared: Arc::new(SharedLeases {
                leases: Mutex::default(),
                added: Notify::new(),
            }),
            interrupt,
            stop: CancellationToken::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (ended, end) = oneshot::channel();
        let thread = Thread {
            heartbeats: heartbeats.clone(),
            settings,
        };
        let store = store.clone();
        std::thread::Builder::new()
            .name("heartbeats".to_owned())
            .spawn(move || {
                runtime.block_on(thread.run(&store));
                // Nobody waits if the pool was dropped.
                let _ = ended.send(());
            })?;
        Ok((heartbeats, end))
    }

    /// Renews the lease of a claim from now on.
    pub(super) fn keep(&self, claim: Claim, progress: Arc<Progress>) -> Lease {
        let (token, now) = (claim.token, Instant::now());
        if self.interrupt.is_cancelled() {
            progress.stop(StopReason::ShuttingDown);
        }
        let held = Held {
            claim,
            progress,
            started: now,
            due: now + FIRST_PAUSE,
            renewed: now,
        };
        self.shared.leases.lock().insert(token, held);
        self.shared.added.notify_one();
        Lease {
            shared: self.shared.clone(),
            token,
        }
    }

    /// The claims whose leases are renewed.
    pub(super) fn held(&self) -> Vec<Claim> {
        let leases = self.shared.leases.lock();
        leases.values().map(|held| held.claim.clone()).collect()
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// The work of the thread.
struct Thread {
    heartbeats: Heartbeats,
    settings: WorkerPoolSettings,
}

impl Thread {
    async fn run(self, store: &Store) {
        let store = store.with_own_pool(CONNECTIONS);
        let Heartbeats {
            shared,
            interrupt,
            stop,
        } = &self.heartbeats;
        let interrupted = async {
            interrupt.cancelled().await;
            for held in shared.leases.lock().values() {
                held.progress.stop(StopReason::ShuttingDown);
            }
            std::future::pending().await
        };
        tokio::select! {
            () = self.beat(&store) => {}
            () = interrupted => {}
            () = stop.cancelled() => {}
        }
        // A connection that does not answer must not delay the end of the process.
        let _ = timeout(Duration::from_secs(1), store.close()).await;
    }

    async fn beat(&self, store: &Store) {
        let shared = &self.heartbeats.shared;
        let mut next_sign = Instant::now();
        loop {
            let next = self.next_due().min(next_sign);
            tokio::select! {
                () = sleep_until(next) => {}
                () = shared.added.notified() => continue,
            }
            self.stop_overdue();
            // The sign of life is sent first: a lease that is lost meanwhile is one of a live process.
            if next_sign <= Instant::now() {
                next_sign = Instant::now() + self.settings.heartbeat;
                self.give_sign_of_life(store).await;
            }
            self.renew(store).await;
        }
    }

    fn next_due(&self) -> Instant {
        let leases = self.heartbeats.shared.leases.lock();
        let due = leases.values().map(|held| held.due).min();
        due.unwrap_or_else(|| Instant::now() + self.settings.heartbeat)
    }

    /// Stops the runs that have exceeded their time limit.
    fn stop_overdue(&self) {
        for held in self.heartbeats.shared.leases.lock().values() {
            if held.progress.running_for() > self.settings.max_run {
                held.progress.stop(StopReason::TimedOut);
            }
        }
    }

    async fn give_sign_of_life(&self, store: &Store) {
        let given = async {
            let mut connection = store.connection().await?;
            instances::renew(&mut connection, store.instance()).await
        };
        match timeout(self.settings.lease, given).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the sign of life could not be written"
            ),
            Err(_) => tracing::warn!("the database does not answer to the sign of life"),
        }
    }

    /// Renews the leases that are due.
    async fn renew(&self, store: &Store) {
        let sent = Instant::now();
        let renewals: Vec<LeaseRenewal> = {
            let leases = self.heartbeats.shared.leases.lock();
            let due = leases.values().filter(|held| held.due <= sent + TOGETHER);
            due.map(Held::renewal).collect()
        };
        if renewals.is_empty() {
            return;
        }
        let lease = self.settings.lease;
        let not_renewed = || vec![RenewalReply::NotRenewed; renewals.len()];
        let replies = match timeout(lease, queue::renew_leases(store, lease, &renewals)).await {
            Ok(Ok(replies)) => replies,
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "leases could not be renewed"
                );
                not_renewed()
            }
            Err(_) => {
                tracing::warn!("the database does not answer to heartbeats");
                not_renewed()
            }
        };
        for (renewal, reply) in renewals.iter().zip(replies) {
            if self.take_reply(renewal.token, reply, sent) == Some(RenewalReply::Lost) {
                // This process is alive: the job did not end it.
                let taken_back = claims::take_back_attempt(store, renewal.job, renewal.token);
                if !matches!(timeout(lease, taken_back).await, Ok(Ok(()))) {
                    tracing::warn!(job = %renewal.job, "the attempt of a lost lease stays counted");
                }
            }
        }
    }

    /// Acts on the reply to a renewal that was sent at `sent`, and returns it; `None` if the attempt has ended.
    fn take_reply(&self, token: Uuid, reply: RenewalReply, sent: Instant) -> Option<RenewalReply> {
        let mut leases = self.heartbeats.shared.leases.lock();
        let held = leases.get_mut(&token)?;
        held.due = Instant::now() + pause(held.started.elapsed(), self.settings.heartbeat);
        match reply {
            RenewalReply::Held => held.renewed = sent,
            RenewalReply::CancelRequested => {
                held.renewed = sent;
                held.progress.stop(StopReason::Cancelled);
            }
            RenewalReply::Lost => {
                lose(held);
                leases.remove(&token);
            }
            RenewalReply::NotRenewed if held.renewed.elapsed() >= self.settings.lease => {
                lose(held);
            }
            RenewalReply::NotRenewed => {}
        }
        Some(reply)
    }
}

/// Stops a run that another process may have.
fn lose(held: &Held) {
    if held.progress.stopped() != Some(StopReason::LeaseLost) {
        metrics::counter!("pais_leases_lost_total").increment(1);
    }
    held.progress.stop(StopReason::LeaseLost);
}

impl Held {
    fn renewal(&self) -> LeaseRenewal {
        LeaseRenewal {
            job: self.claim.job,
            token: self.claim.token,
            state: self.progress.now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;

    #[test]
    fn heartbeats_slow_down_with_age_from_ten_per_second() {
        let ms = Duration::from_millis;
        let second = Duration::from_secs(1);
        assert_eq!(pause(Duration::ZERO, second), ms(100));
        assert_eq!(pause(ms(1600), second), ms(200));
        assert_eq!(pause(Duration::from_secs(60), second), ms(400));
        assert_eq!(pause(Duration::from_secs(60), ms(250)), ms(250));
    }
}
