//! Places for uploads: in all, and for each organization, so that none can take all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ids::OrganizationId;
use crate::memory::{MemoryBudget, MemoryReservation, MemoryUse};
use crate::problem::{Code, Problem};

/// Memory of an upload, in bytes. The frames and the decoder need 10 MiB, most of it the window of
/// zstd. A chunk has 16 MiB of text while it is built, and as much again in each of its later forms:
/// encoded, compressed, sealed and waiting, and on its way to the database.
const UPLOAD_BYTES: u64 = 96 << 20;

/// What an upload holds while it is read: a place, and memory.
#[must_use]
pub(crate) struct Admission {
    _place: UploadPlace,
    _memory: MemoryReservation,
}

/// The places of this process. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct UploadPlaces {
    all: Arc<Semaphore>,
    /// 0 for no limit.
    per_organization: usize,
    of_organizations: Arc<Mutex<HashMap<OrganizationId, Arc<Semaphore>>>>,
    wait: Duration,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct UploadPlace {
    _all: OwnedSemaphorePermit,
    _organization: Option<OwnedSemaphorePermit>,
}

impl UploadPlaces {
    /// `all` places, of which one organization has at most `per_organization`; 0 for no such limit.
    /// An upload waits up to `wait`.
    pub(crate) fn new(all: usize, per_organization: usize, wait: Duration) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            per_organization,
            of_organizations: Arc::default(),
            wait,
        }
    }

    /// Number of places that are free.
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }

    /// Waits for a place for an upload and for its memory, with `extra_bytes` beside that of every
    /// upload. The first part of the body should have been received before.
    ///
    /// # Errors
    /// `busy` if neither is free in time.
    pub(crate) async fn admit(
        &self,
        organization: OrganizationId,
        memory: &MemoryBudget,
        extra_bytes: u64,
    ) -> Result<Admission, Problem> {
        let _place = self.acquire(organization).await?;
        // A small budget admits one upload at a time.
        let needed = (UPLOAD_BYTES + extra_bytes).min(memory.limit(MemoryUse::Requests));
        let _memory = memory.reserve(MemoryUse::Requests, needed).await?;
        Ok(Admission { _place, _memory })
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// `busy`, with the name of the limit, if none is free in time.
    async fn acquire(&self, organization: OrganizationId) -> Result<UploadPlace, Problem> {
        let deadline = tokio::time::Instant::now() + self.wait;
        let _organization = match self.places_of(organization) {
            Some(places) => Some(
                tokio::time::timeout_at(deadline, places.acquire_owned())
                    .await
                    .ok()
                    .and_then(Result::ok)
                    .ok_or_else(|| self.busy("organizations.uploads"))?,
            ),
            None => None,
        };
        // After that of the organization, so that a place is never held while it waits for its own
        // organization.
        let all = Arc::clone(&self.all).acquire_owned();
        match tokio::time::timeout_at(deadline, all).await {
            Ok(Ok(_all)) => Ok(UploadPlace {
                _all,
                _organization,
            }),
            _ => Err(self.busy("limits.uploads")),
        }
    }

    fn places_of(&self, organization: OrganizationId) -> Option<Arc<Semaphore>> {
        if self.per_organization == 0 {
            return None;
        }
        let mut places = self.of_organizations.lock();
        // Those that no upload has or waits for.
        places.retain(|_, places| Arc::strong_count(places) > 1);
        let new = || Arc::new(Semaphore::new(self.per_organization));
        Some(Arc::clone(places.entry(organization).or_insert_with(new)))
    }

    fn busy(&self, limit: &str) -> Problem {
        let detail = format!(
            "no place for an upload was free within {} s ({limit}); try again when others have ended",
            self.wait.as_secs()
        );
        Problem::new(Code::Busy, detail)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::UploadPlaces;
    use crate::ids::OrganizationId;

    #[tokio::test]
    async fn an_organization_has_its_own_limit_beside_that_of_all() {
        let places = UploadPlaces::new(3, 2, Duration::from_millis(20));
        let (one, two, three) = (
            OrganizationId::new(),
            OrganizationId::new(),
            OrganizationId::new(),
        );
        let first = places.acquire(one).await.unwrap();
        let _second = places.acquire(one).await.unwrap();
        let refused = places.acquire(one).await.unwrap_err();
        assert!(
            refused.detail.contains("organizations.uploads"),
            "{refused}"
        );
        let _other = places.acquire(two).await.unwrap();
        let refused = places.acquire(three).await.unwrap_err();
        assert!(refused.detail.contains("limits.uploads"), "{refused}");
        drop(first);
        let _third = places.acquire(three).await.unwrap();
        assert_eq!(places.free(), 0);
    }
}
