//! Slots for work that runs at the same time: in total, and for each organization, so that none can take all of
//! them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::ids::OrganizationId;

/// The slots of this process for one kind of work. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct FairSlots {
    all: Arc<Semaphore>,
    /// 0 for no limit.
    per_organization: usize,
    of_organizations: Arc<Mutex<HashMap<OrganizationId, Arc<Semaphore>>>>,
}

/// A slot, which is free again when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct FairSlot {
    _all: OwnedSemaphorePermit,
    _organization: Option<OwnedSemaphorePermit>,
}

/// The limit that kept a slot from becoming free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotLimit {
    Organization,
    All,
}

impl FairSlots {
    /// `all` slots. One organization takes at most `per_organization` of them; 0 means no such limit.
    pub(crate) fn new(all: usize, per_organization: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            per_organization,
            of_organizations: Arc::default(),
        }
    }

    /// Number of slots that are free.
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }

    /// Waits up to `wait` for a slot of the organization and then for one of all slots, so that none is held
    /// while its organization has no more.
    ///
    /// # Errors
    /// The limit that was reached.
    pub(crate) async fn acquire(
        &self,
        organization: OrganizationId,
        wait: Duration,
    ) -> Result<FairSlot, SlotLimit> {
        let deadline = Instant::now() + wait;
        // Nothing closes the semaphores.
        let acquired = async |slots: Arc<Semaphore>| {
            let permit = timeout_at(deadline, slots.acquire_owned()).await;
            permit.ok().and_then(Result::ok)
        };
        let _organization = match self.of(organization) {
            Some(own) => Some(acquired(own).await.ok_or(SlotLimit::Organization)?),
            None => None,
        };
        let _all = acquired(self.all.clone()).await.ok_or(SlotLimit::All)?;
        Ok(FairSlot {
            _all,
            _organization,
        })
    }

    fn of(&self, organization: OrganizationId) -> Option<Arc<Semaphore>> {
        if self.per_organization == 0 {
            return None;
        }
        let mut slots = self.of_organizations.lock();
        // Removes the slots that no request has or waits for.
        slots.retain(|_, slots| Arc::strong_count(slots) > 1);
        let new = || Arc::new(Semaphore::new(self.per_organization));
        Some(slots.entry(organization).or_insert_with(new).clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FairSlots, SlotLimit};
    use crate::ids::OrganizationId;

    const WAIT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn an_organization_has_its_own_limit_beside_that_of_all() {
        let slots = FairSlots::new(3, 2);
        let acquire = async |organization| slots.acquire(organization, WAIT).await;
        let [one, two, three] = std::array::from_fn(|_| OrganizationId::new());
        let first = acquire(one).await.unwrap();
        let _second = acquire(one).await.unwrap();
        assert_eq!(acquire(one).await.unwrap_err(), SlotLimit::Organization);
        let _other = acquire(two).await.unwrap();
        assert_eq!(acquire(three).await.unwrap_err(), SlotLimit::All);
        drop(first);
        let _third = acquire(three).await.unwrap();
        assert_eq!(slots.free(), 0);
    }

    #[tokio::test]
    async fn without_a_limit_one_organization_can_take_all() {
        let slots = FairSlots::new(2, 0);
        let one = OrganizationId::new();
        let _held = [
            slots.acquire(one, WAIT).await,
            slots.acquire(one, WAIT).await,
        ];
        assert_eq!(slots.acquire(one, WAIT).await.unwrap_err(), SlotLimit::All);
    }
}
