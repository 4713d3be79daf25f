//! The time limit of a thorough search.

use std::time::{Duration, Instant};

use pais_core::cancellation::Cancellation;

use crate::observer::{Observer, Phase};

/// An observer that also stops the work it watches at a time. The progress of that work is not
/// passed on: the thorough search reports its own.
pub(super) struct Deadline<'a> {
    inner: &'a dyn Observer,
    end: Option<Instant>,
}

impl<'a> Deadline<'a> {
    /// Stops when `inner` stops, and after `limit`; `None` for no limit.
    pub(super) fn new(inner: &'a dyn Observer, began: Instant, limit: Option<Duration>) -> Self {
        Self {
            inner,
            end: limit.and_then(|limit| began.checked_add(limit)),
        }
    }
}

impl Observer for Deadline<'_> {
    fn progress(&self, _: Phase, _: f64) {}

    fn cancellation(&self) -> &Cancellation {
        self.inner.cancellation()
    }

    fn must_stop(&self) -> bool {
        self.inner.must_stop() || self.end.is_some_and(|end| Instant::now() >= end)
    }
}
