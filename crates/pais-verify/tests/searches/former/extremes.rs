//! The smallest group and the greatest confidence over all qids of a search.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::profiles::ValueCount;
use super::qid_search::{FoundQids, GroupVisitor};

/// The smallest group and the greatest confidence found so far, shared by all threads and by
/// several searches.
pub(super) struct Extremes<'s> {
    smallest: AtomicU32,
    /// Number of records with a sensitive value and number of records of its group, packed.
    greatest: AtomicU64,
    stop: &'s (dyn Fn() -> bool + Sync),
    stopped: AtomicBool,
}

impl<'s> Extremes<'s> {
    pub(super) fn new(stop: &'s (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            smallest: AtomicU32::new(u32::MAX),
            greatest: AtomicU64::new(pack(0, 1)),
            stop,
            stopped: AtomicBool::new(false),
        }
    }

    /// Records of the smallest group so far. Later searches find no smaller one, because they do
    /// not look for it.
    pub(super) fn take_smallest(&self) -> u32 {
        self.smallest.swap(0, Relaxed)
    }

    /// The greatest confidence so far: records with the value, and records of the group.
    pub(super) fn greatest(&self) -> (u32, u32) {
        unpack(self.greatest.load(Relaxed))
    }

    /// Whether the caller asked to stop. The extremes are then those of a part of the table.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
}

fn pack(most: u32, of: u32) -> u64 {
    u64::from(most) << 32 | u64::from(of)
}

fn unpack(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

impl GroupVisitor for &Extremes<'_> {
    const NAMES_VALUES: bool = false;

    #[inline]
    fn size_matters(&self, records: u32) -> bool {
        records < self.smallest.load(Relaxed)
    }

    #[inline]
    fn confidence_matters(&self, most: u32, records: u32) -> bool {
        let (best, of) = unpack(self.greatest.load(Relaxed));
        u64::from(most) * u64::from(of) > u64::from(best) * u64::from(records)
    }

    #[inline]
    fn group(&mut self, records: u32, most: Option<ValueCount>, _: impl FnOnce() -> FoundQids) {
        if self.size_matters(records) {
            self.smallest.fetch_min(records, Relaxed);
        }
        let Some(ValueCount { records: most, .. }) = most else {
            return;
        };
        let mut best = self.greatest.load(Relaxed);
        loop {
            let (most_records, of) = unpack(best);
            if u64::from(most) * u64::from(of) <= u64::from(most_records) * u64::from(records) {
                return;
            }
            match self
                .greatest
                .compare_exchange_weak(best, pack(most, records), Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(current) => best = current,
            }
        }
    }

    fn should_stop(&self) -> bool {
        if !self.stopped.load(Relaxed) && (self.stop)() {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}
