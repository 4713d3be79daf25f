//! What an upload waits for: a slot, and memory.

use std::time::Duration;

use crate::engine::fair_slots::{FairSlot, FairSlots, SlotLimit};
use crate::ids::OrganizationId;
use crate::memory::{MemoryBudget, MemoryReservation, MemoryUse};
use crate::problem::{Code, Problem};

/// Memory of an upload, in bytes. The frames and the decoder need 10 MiB, mostly the window of zstd. A chunk
/// has 16 MiB of text while it is built, and the same amount in each of its later forms: encoded, compressed,
/// sealed and waiting, and in transit to the database.
const UPLOAD_BYTES: u64 = 96 << 20;

/// What an upload holds while it is read: a slot, and memory.
#[must_use]
pub(crate) struct UploadAdmission {
    _slot: FairSlot,
    _memory: MemoryReservation,
}

/// The slots of this process. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct UploadSlots {
    slots: FairSlots,
    wait: Duration,
}

impl UploadSlots {
    /// `all` slots, of which one organization has at most `per_organization`; 0 for no such limit.
    /// An upload waits up to `wait`.
    pub(crate) fn new(all: usize, per_organization: usize, wait: Duration) -> Self {
        Self {
            slots: FairSlots::new(all, per_organization),
            wait,
        }
    }

    /// Number of slots that are free.
    pub(crate) fn free(&self) -> usize {
        self.slots.free()
    }

    /// Waits for a slot for an upload and for its memory, with `extra_bytes` in addition to that of every
    /// upload. The first part of the body should have been received before.
    ///
    /// # Errors
    /// `busy` if neither is free in time.
    pub(crate) async fn admit(
        &self,
        organization: OrganizationId,
        memory: &MemoryBudget,
        extra_bytes: u64,
    ) -> Result<UploadAdmission, Problem> {
        let slot = self.slots.acquire(organization, self.wait).await;
        let _slot = slot.map_err(|limit| self.busy(limit))?;
        // A small budget admits one upload at a time.
        let needed = (UPLOAD_BYTES + extra_bytes).min(memory.limit(MemoryUse::Requests));
        let _memory = memory.reserve(MemoryUse::Requests, needed).await?;
        Ok(UploadAdmission { _slot, _memory })
    }

    fn busy(&self, limit: SlotLimit) -> Problem {
        let limit = match limit {
            SlotLimit::Organization => "organizations.uploads",
            SlotLimit::All => "limits.uploads",
        };
        let detail = format!(
            "no place for an upload was free within {} s ({limit}); try again when others have ended",
            self.wait.as_secs()
        );
        Problem::new(Code::Busy, detail)
    }
}
