//! Work of requests on whole tables: releases, profiles, rendering. It waits for a slot and for
//! memory, and it is stopped when its request ends or the service stops.

use std::sync::Arc;
use std::time::Duration;

use pais_anonymize::{Observer, Phase};
use pais_core::cancellation::Cancellation;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::ids::OrganizationId;
use crate::memory::{MemoryBudget, MemoryReservation, MemoryUse};
use crate::problem::{Code, Problem};

use super::WorkError;
use super::fair_slots::{FairSlot, FairSlots};

/// Number of requests that work on tables of one kind at the same time.
const WORKING: usize = 3;

/// Number of these of one organization. No more of its requests wait for a slot either, so another organization
/// is next.
const WORKING_PER_ORGANIZATION: usize = 2;

/// The kind of table that a request works on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TableKind {
    /// A raw table. A computation on it may take minutes.
    Raw,
    /// A released table to be rendered. It does not wait for raw ones.
    Released,
    /// The values of raw rows to be counted, for a job that is created. It does not wait for the other kinds.
    Counted,
}

/// The slots of this process, and the request to stop all work. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct TableSlots {
    raw: FairSlots,
    released: FairSlots,
    counted: FairSlots,
    memory: MemoryBudget,
    interrupt: CancellationToken,
}

/// Work on a table. The threads that do it share this, so that slot and memory are released when the last of
/// them has ended.
#[derive(Debug)]
pub(crate) struct TableWork {
    cancellation: Cancellation,
    _slot: FairSlot,
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

impl TableSlots {
    /// Free slots for work that takes its memory from `memory`.
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        Self {
            raw: FairSlots::new(WORKING, WORKING_PER_ORGANIZATION),
            released: FairSlots::new(WORKING, WORKING_PER_ORGANIZATION),
            counted: FairSlots::new(WORKING, WORKING_PER_ORGANIZATION),
            memory,
            interrupt: CancellationToken::new(),
        }
    }

    /// Begins work on a table that needs `bytes` of memory, on behalf of an organization. Waits up to
    /// `memory.wait_seconds` for a slot, and as long for memory.
    ///
    /// # Errors
    /// `busy` if neither is free in time; `limit_exceeded` if it never fits.
    pub(crate) async fn begin(
        &self,
        kind: TableKind,
        organization: OrganizationId,
        bytes: u64,
    ) -> Result<WorkGuard, WorkError> {
        let slots = match kind {
            TableKind::Raw => &self.raw,
            TableKind::Released => &self.released,
            TableKind::Counted => &self.counted,
        };
        let wait = self.memory.wait();
        let slot = slots.acquire(organization, wait).await;
        let slot = slot.map_err(|_| busy(wait))?;
        let memory = self.memory.reserve(MemoryUse::Tables, bytes).await?;
        let work = Arc::new(TableWork {
            cancellation: Cancellation::new(),
            _slot: slot,
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

    /// Stops all work, including work that begins later. Used at the end of the grace period of a shutdown.
    pub(crate) fn interrupt(&self) {
        self.interrupt.cancel();
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
