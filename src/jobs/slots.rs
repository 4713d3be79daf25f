//! The slots of the jobs that run in this process, so that a job can run alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::db::claims::{Claimable, Isolation};

/// The slots. A job that shares its process takes one, a job that runs alone takes all.
///
/// Slots are given in the order of requests: a job that waits until it is alone is not overtaken by later ones.
/// After it, the others have the next turn.
#[derive(Debug)]
pub(super) struct WorkerSlots {
    free: Arc<Semaphore>,
    number: u32,
    /// Held while a worker waits until it is alone. The others do not wait for the same.
    waiting_exclusive: Mutex<()>,
    /// Whether the job that was claimed last runs alone.
    last_was_exclusive: AtomicBool,
}

/// Slots, which are returned when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct WorkerSlot {
    _permit: OwnedSemaphorePermit,
}

impl WorkerSlots {
    pub(super) fn new(number: usize) -> Self {
        let number = number.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            free: Arc::new(Semaphore::new(number)),
            number: number as u32,
            waiting_exclusive: Mutex::const_new(()),
            last_was_exclusive: AtomicBool::new(false),
        }
    }

    /// What a worker tries to claim, in this order.
    pub(super) fn order(&self, claimable: Claimable) -> impl Iterator<Item = Isolation> + use<> {
        let (shared, exclusive) = (
            claimable.shared.then_some(Isolation::Shared),
            claimable.exclusive.then_some(Isolation::Exclusive),
        );
        let order = if self.last_was_exclusive.load(Ordering::Relaxed) {
            [shared, exclusive]
        } else {
            [exclusive, shared]
        };
        order.into_iter().flatten()
    }

    /// Waits for slots. `None` if another worker waits until it is alone, as this one would.
    pub(super) async fn take(&self, isolation: Isolation) -> Option<WorkerSlot> {
        let (_first, number) = match isolation {
            Isolation::Shared => (None, 1),
            Isolation::Exclusive => (Some(self.waiting_exclusive.try_lock().ok()?), self.number),
        };
        let permit = self.free.clone().acquire_many_owned(number).await;
        // Nothing closes the semaphore.
        Some(WorkerSlot {
            _permit: permit.ok()?,
        })
    }

    /// A job was claimed.
    pub(super) fn claimed(&self, isolation: Isolation) {
        let exclusive = isolation == Isolation::Exclusive;
        self.last_was_exclusive.store(exclusive, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::{Claimable, Isolation, WorkerSlots};

    const BOTH: Claimable = Claimable {
        shared: true,
        exclusive: true,
    };

    #[tokio::test]
    async fn a_job_alone_waits_for_the_others_and_the_others_for_it() {
        let slots = Arc::new(WorkerSlots::new(2));
        let running = slots.take(Isolation::Shared).await.unwrap();
        let exclusive = tokio::spawn({
            let slots = slots.clone();
            async move { slots.take(Isolation::Exclusive).await.unwrap() }
        });
        tokio::task::yield_now().await;
        // Another worker does not wait for the same, and nothing starts meanwhile.
        assert!(slots.take(Isolation::Exclusive).await.is_none());
        let wait = Duration::from_millis(20);
        let started = timeout(wait, slots.take(Isolation::Shared)).await;
        assert!(started.is_err() && !exclusive.is_finished());
        drop(running);
        let exclusive = exclusive.await.unwrap();
        assert!(timeout(wait, slots.take(Isolation::Shared)).await.is_err());
        drop(exclusive);
        assert!(slots.take(Isolation::Shared).await.is_some());
    }

    #[test]
    fn jobs_exclusive_and_shared_take_turns() {
        let slots = WorkerSlots::new(2);
        let first = |slots: &WorkerSlots| slots.order(BOTH).next();
        assert_eq!(first(&slots), Some(Isolation::Exclusive));
        slots.claimed(Isolation::Exclusive);
        assert_eq!(first(&slots), Some(Isolation::Shared));
        slots.claimed(Isolation::Shared);
        assert_eq!(first(&slots), Some(Isolation::Exclusive));
        assert_eq!(slots.order(Claimable::default()).next(), None);
    }
}
