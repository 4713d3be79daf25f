//! The places of the jobs that run in this process, so that a job can run alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::db::claims::{Claimable, Company};

/// The places. A job in company takes one, a job that runs alone takes all.
///
/// Places are given in the order in which they are asked for: a job that waits until it is alone is
/// not overtaken by later ones. After it, the others have the next turn.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    number: u32,
    /// Held while a worker waits until it is alone. The others do not wait for the same.
    waiting_alone: Mutex<()>,
    /// Whether the job that was claimed last runs alone.
    last_was_alone: AtomicBool,
}

/// Places, which are returned when this is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(number: usize) -> Self {
        let number = number.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            free: Arc::new(Semaphore::new(number)),
            number: number as u32,
            waiting_alone: Mutex::const_new(()),
            last_was_alone: AtomicBool::new(false),
        }
    }

    /// What a worker tries to claim, in this order.
    pub(super) fn order(&self, claimable: Claimable) -> impl Iterator<Item = Company> + use<> {
        let (shared, alone) = (
            claimable.shared.then_some(Company::Shared),
            claimable.alone.then_some(Company::Alone),
        );
        let order = if self.last_was_alone.load(Ordering::Relaxed) {
            [shared, alone]
        } else {
            [alone, shared]
        };
        order.into_iter().flatten()
    }

    /// Waits for places. `None` if another worker waits until it is alone, as this one would.
    pub(super) async fn take(&self, company: Company) -> Option<Place> {
        let (_first, number) = match company {
            Company::Shared => (None, 1),
            Company::Alone => (Some(self.waiting_alone.try_lock().ok()?), self.number),
        };
        let permit = self.free.clone().acquire_many_owned(number).await;
        // Nothing closes the semaphore.
        Some(Place {
            _permit: permit.ok()?,
        })
    }

    /// A job was claimed.
    pub(super) fn claimed(&self, company: Company) {
        let alone = company == Company::Alone;
        self.last_was_alone.store(alone, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::{Claimable, Company, Places};

    const BOTH: Claimable = Claimable {
        shared: true,
        alone: true,
    };

    #[tokio::test]
    async fn a_job_alone_waits_for_the_others_and_the_others_for_it() {
        let places = Arc::new(Places::new(2));
        let running = places.take(Company::Shared).await.unwrap();
        let alone = tokio::spawn({
            let places = places.clone();
            async move { places.take(Company::Alone).await.unwrap() }
        });
        tokio::task::yield_now().await;
        // Another worker does not wait for the same, and nothing starts meanwhile.
        assert!(places.take(Company::Alone).await.is_none());
        let wait = Duration::from_millis(20);
        let started = timeout(wait, places.take(Company::Shared)).await;
        assert!(started.is_err() && !alone.is_finished());
        drop(running);
        let alone = alone.await.unwrap();
        assert!(timeout(wait, places.take(Company::Shared)).await.is_err());
        drop(alone);
        assert!(places.take(Company::Shared).await.is_some());
    }

    #[test]
    fn jobs_alone_and_in_company_take_turns() {
        let places = Places::new(2);
        let first = |places: &Places| places.order(BOTH).next();
        assert_eq!(first(&places), Some(Company::Alone));
        places.claimed(Company::Alone);
        assert_eq!(first(&places), Some(Company::Shared));
        places.claimed(Company::Shared);
        assert_eq!(first(&places), Some(Company::Alone));
        assert_eq!(places.order(Claimable::default()).next(), None);
    }
}
