//! The memory budget of the process: everything that grows with what clients send is reserved here before it is
//! allocated. Also: sizes of memory in arguments, and protection of the memory from other processes.
//!
//! There are two kinds of use. *Tables* (jobs, releases, profiles, rendering) are large and wait for each
//! other. *Requests* (uploads, JSON bodies) are small, and together use at most a quarter of the budget; a
//! waiting table does not block them.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use serde::Deserialize;
use tokio::sync::Notify;

use crate::problem::{Code, Problem};

/// A number of bytes: a whole number of `MiB` or `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemorySize(
    /// The bytes.
    pub u64,
);

impl TryFrom<String> for MemorySize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("MiB", 20), ("GiB", 30)];
        let bytes = units.iter().find_map(|(unit, shift)| {
            let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            number.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
        });
        bytes
            .map(Self)
            .ok_or_else(|| "expected a whole number of MiB or GiB, such as 256MiB".to_owned())
    }
}

/// Switches core dumps off, and keeps other processes of the same user from reading this one's memory.
/// Called before a key is read. Failures are logged: the keys are then as safe as the system's settings.
pub fn forbid_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let limited = setrlimit(Resource::Core, none);
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(hidden) {
        tracing::warn!(%error, "core dumps could not be switched off");
    }
}

/// A use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUse {
    /// Whole tables.
    Tables,
    /// What a request holds while it is read.
    Requests,
}

/// The part of the budget that requests may use together: a quarter.
const REQUESTS_SHARE: u64 = 4;

/// Why memory is not reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// It would never fit.
    #[error(
        "this needs about {} MiB of memory, more than the {} MiB that memory.process_bytes allows for it",
        .needed.div_ceil(1 << 20), .limit >> 20
    )]
    TooLarge {
        /// The requested amount, in bytes.
        needed: u64,
        /// The maximum amount for this use, in bytes.
        limit: u64,
    },
    /// It did not fit in time.
    #[error(
        "the memory of the service is in use (memory.process_bytes); try again in a few seconds"
    )]
    Busy,
}

impl From<MemoryError> for Problem {
    fn from(error: MemoryError) -> Self {
        let code = match error {
            MemoryError::TooLarge { .. } => Code::LimitExceeded,
            MemoryError::Busy => Code::Busy,
        };
        Self::new(code, error.to_string())
    }
}

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
    wait: Duration,
}

#[derive(Debug)]
struct Shared {
    total: u64,
    /// The bytes of each [`MemoryUse`].
    used: Mutex<[u64; 2]>,
    freed: Notify,
    /// Held by the first of those who wait for however long, so that a large table gets its memory before small
    /// ones that came later.
    turn: tokio::sync::Mutex<()>,
}

/// Reserved memory, which is returned when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct MemoryReservation {
    shared: Arc<Shared>,
    purpose: MemoryUse,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of `total` bytes. A request waits up to `wait` for memory.
    pub fn new(total: u64, wait: Duration) -> Self {
        let shared = Shared {
            total,
            used: Mutex::default(),
            freed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            wait,
        }
    }

    /// The maximum amount that one use can reserve, in bytes.
    pub fn limit(&self, purpose: MemoryUse) -> u64 {
        let requests = self.shared.total / REQUESTS_SHARE;
        match purpose {
            MemoryUse::Requests => requests,
            MemoryUse::Tables => self.shared.total - requests,
        }
    }

    /// Longest wait of a request for memory.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// The bytes in use.
    pub fn used(&self) -> u64 {
        self.shared.used.lock().iter().sum()
    }

    /// Reserves memory; waits up to the configured time.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn reserve(
        &self,
        purpose: MemoryUse,
        bytes: u64,
    ) -> Result<MemoryReservation, MemoryError> {
        let reserving = self.reserve_once_free(purpose, bytes);
        match tokio::time::timeout(self.wait, reserving).await {
            Ok(reserved) => reserved,
            Err(_) => Err(MemoryError::Busy),
        }
    }

    /// Reserves memory for tables; waits until it is free, in the order of the calls. What waits for a limited time
    /// ([`Self::reserve`]) can overtake it.
    ///
    /// # Errors
    /// [`MemoryError::TooLarge`].
    pub(crate) async fn reserve_in_turn(
        &self,
        bytes: u64,
    ) -> Result<MemoryReservation, MemoryError> {
        let _turn = self.shared.turn.lock().await;
        self.reserve_once_free(MemoryUse::Tables, bytes).await
    }

    async fn reserve_once_free(
        &self,
        purpose: MemoryUse,
        bytes: u64,
    ) -> Result<MemoryReservation, MemoryError> {
        let limit = self.limit(purpose);
        if bytes > limit {
            let needed = bytes;
            return Err(MemoryError::TooLarge { needed, limit });
        }
        loop {
            let freed = self.shared.freed.notified();
            if self.take(purpose, bytes) {
                return Ok(MemoryReservation {
                    shared: self.shared.clone(),
                    purpose,
                    bytes,
                });
            }
            freed.await;
        }
    }

    fn take(&self, purpose: MemoryUse, bytes: u64) -> bool {
        let limit = self.limit(purpose);
        let mut used = self.shared.used.lock();
        let used = &mut used[purpose as usize];
        let fits = *used + bytes <= limit;
        if fits {
            *used += bytes;
        }
        fits
    }
}

impl MemoryReservation {
    /// The reserved bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shared.used.lock()[self.purpose as usize] -= self.bytes;
        self.shared.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MemoryBudget, MemoryError, MemorySize, MemoryUse};

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!("256MiB".parse(), Ok(MemorySize(256 << 20)));
        assert_eq!("2 GiB".parse(), Ok(MemorySize(2 << 30)));
        for text in [
            "",
            "256",
            "1.5GiB",
            "MiB",
            "-1MiB",
            "0MiB",
            "99999999999999GiB",
        ] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn what_never_fits_is_refused_and_what_does_not_fit_now_waits() {
        let budget = MemoryBudget::new(4000, Duration::from_millis(20));
        let refused = budget.reserve(MemoryUse::Tables, 3001).await.unwrap_err();
        let (needed, limit) = (3001, 3000);
        assert_eq!(refused, MemoryError::TooLarge { needed, limit });
        let first = budget.reserve(MemoryUse::Tables, 2000).await.unwrap();
        let busy = budget.reserve(MemoryUse::Tables, 1001).await.unwrap_err();
        assert_eq!(busy, MemoryError::Busy);
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve_in_turn(1001).await }
        });
        tokio::task::yield_now().await;
        let later = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve_in_turn(1).await }
        });
        tokio::task::yield_now().await;
        // Requests do not wait behind the table.
        let request = budget.reserve(MemoryUse::Requests, 1000).await.unwrap();
        assert!(budget.reserve(MemoryUse::Requests, 1).await.is_err());
        drop(budget.reserve(MemoryUse::Tables, 1000).await.unwrap());
        // What came later fits beside the first one, and waits for its turn.
        assert!(!later.is_finished());
        drop(first);
        let second = waiting.await.unwrap().unwrap();
        let third = later.await.unwrap().unwrap();
        assert_eq!(
            (second.bytes(), third.bytes(), budget.used()),
            (1001, 1, 2002)
        );
        drop((second, third, request));
        assert_eq!(budget.used(), 0);
    }
}
