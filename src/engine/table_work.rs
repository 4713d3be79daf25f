//! Work of requests on whole tables: releases, profiles, rendering. It waits for a place and for
//! memory, and it is stopped when its request ends or the service stops.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pais_anonymize::{Observer, Phase};
use pais_core::cancellation::Cancellation;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::ids::OrganizationId;
use crate::memory::{MemoryBudget, MemoryReservation, MemoryUse};
use crate::problem::{Code, Problem};

use super::WorkError;

/// Number of requests that work on tables of one kind at the same time.
const WORKING: usize = 3;

/// Number of these of one organization. It has also no more waiting for a place, so another
/// organization is next.
const WORKING_PER_ORGANIZATION: usize = 2;

/// The kind of table that a request works on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TableKind {
    /// A raw table. A computation on it may take minutes.
    Raw,
    /// A released table to be rendered. It does not wait for raw ones.
    Released,
}

/// The places of this process, and the request to stop all work. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct TablePlaces {
    raw: Places,
    released: Places,
    memory: MemoryBudget,
    interrupt: CancellationToken,
}

#[derive(Clone, Debug)]
struct Places {
    all: Arc<Semaphore>,
    of_organizations: Arc<Mutex<HashMap<OrganizationId, Arc<Semaphore>>>>,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
struct Place {
    _all: OwnedSemaphorePermit,
    _organization: OwnedSemaphorePermit,
}

/// Work on a table. The threads that do it share this, so that place and memory are free when the last
/// of them has ended.
#[derive(Debug)]
pub(crate) struct TableWork {
    cancellation: Cancellation,
    _place: Place,
    _memory: MemoryReservation,
}

impl Observer for TableWork {
    fn progress(&self, _: Phase, _: f64) {}

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

/// The part of a request in its work: when this is dropped, the work stops.
#[derive(Debug)]
#[must_use]
pub(crate) struct WorkGuard {
    work: Arc<TableWork>,
    _interrupted: AbortOnDropHandle<()>,
}

impl WorkGuard {
    /// The work, to be shared with its threads.
    pub(crate) fn share(&self) -> Arc<TableWork> {
        self.work.clone()
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        self.work.cancellation.cancel();
    }
}

impl TablePlaces {
    /// Free places for work that takes its memory from `memory`.
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        Self {
            raw: Places::new(),
            released: Places::new(),
            memory,
            interrupt: CancellationToken::new(),
        }
    }

    /// Begins work on a table that needs `bytes` of memory, on behalf of an organization. Waits up to
    /// `memory.wait_seconds` for a place and for memory.
    ///
    /// # Errors
    /// `busy` if neither is free in time; `limit_exceeded` if it never fits.
    pub(crate) async fn begin(
        &self,
        kind: TableKind,
        organization: OrganizationId,
        bytes: u64,
    ) -> Result<WorkGuard, WorkError> {
        let places = match kind {
            TableKind::Raw => &self.raw,
            TableKind::Released => &self.released,
        };
        let wait = self.memory.wait();
        let place = tokio::time::timeout(wait, places.acquire(organization)).await;
        // Nothing closes the semaphores.
        let Ok(Some(place)) = place else {
            return Err(busy(wait).into());
        };
        let memory = self.memory.reserve(MemoryUse::Tables, bytes).await?;
        let work = Arc::new(TableWork {
            cancellation: Cancellation::new(),
            _place: place,
            _memory: memory,
        });
        let (interrupt, cancellation) = (self.interrupt.clone(), work.cancellation.clone());
        let interrupted = tokio::spawn(async move {
            interrupt.cancelled().await;
            cancellation.cancel();
        });
        Ok(WorkGuard {
            work,
            _interrupted: AbortOnDropHandle::new(interrupted),
        })
    }

    /// Stops all work, and what begins later. For the end of the grace period of a shutdown.
    pub(crate) fn interrupt(&self) {
        self.interrupt.cancel();
    }
}

impl Places {
    fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(WORKING)),
            of_organizations: Arc::default(),
        }
    }

    fn of(&self, organization: OrganizationId) -> Arc<Semaphore> {
        let mut places = self.of_organizations.lock();
        // Those that no request has or waits for.
        places.retain(|_, places| Arc::strong_count(places) > 1);
        let new = || Arc::new(Semaphore::new(WORKING_PER_ORGANIZATION));
        places.entry(organization).or_insert_with(new).clone()
    }

    /// Waits for a place of the organization and then for one of all, so that none is held while its
    /// organization has no more.
    async fn acquire(&self, organization: OrganizationId) -> Option<Place> {
        let own = self.of(organization).acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place {
            _all: all,
            _organization: own,
        })
    }
}

fn busy(wait: Duration) -> Problem {
    let detail = format!(
        "other releases, profiles or downloads are being computed, and none has ended within {} s \
         (memory.wait_seconds); {WORKING} are computed at the same time, {WORKING_PER_ORGANIZATION} \
         of one organization; try again",
        wait.as_secs()
    );
    Problem::new(Code::Busy, detail)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::Places;
    use crate::ids::OrganizationId;

    #[tokio::test]
    async fn an_organization_with_many_requests_does_not_hold_up_another() {
        let places = Places::new();
        let (one, two) = (OrganizationId::new(), OrganizationId::new());
        let held = [places.acquire(one).await, places.acquire(one).await];
        let wait = Duration::from_millis(20);
        assert!(timeout(wait, places.acquire(one)).await.is_err());
        let other = timeout(wait, places.acquire(two)).await.unwrap();
        assert!(other.is_some());
        drop(held);
        assert!(places.acquire(one).await.is_some());
    }
}
