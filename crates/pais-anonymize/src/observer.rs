//! How a run reports its progress and learns that it has to stop. The caller provides both.

use std::time::{Duration, Instant};

use pais_core::cancellation::{Cancellation, Stopped};

/// The phase of a run. The phases occur in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reading and encoding rows.
    Reading,
    /// Searching for the anonymous table.
    Searching,
    /// Building the finished table, verifying and measuring it.
    Verifying,
    /// Writing the release.
    Writing,
}

impl Phase {
    /// The value of a job's `phase` field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Searching => "searching",
            Self::Verifying => "verifying",
            Self::Writing => "writing",
        }
    }
}

/// What a run has done since it began. Counts are totals, so reporting one twice or missing one is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Number of rows read.
    RowsRead(u64),
    /// Specializations performed, not counting the topmost table.
    StepsDone(u64),
}

/// Follows a run; its methods are called from the threads of the run.
pub trait Observer: Send + Sync {
    /// Called when the run is in `phase`, of which `fraction` (0 to 1) is done.
    fn progress(&self, phase: Phase, fraction: f64);

    /// The run has reached this count.
    fn counted(&self, _: Count) {}

    /// The request to stop; checked between passes over the rows.
    fn cancellation(&self) -> &Cancellation;

    /// Whether the run has to stop.
    fn must_stop(&self) -> bool {
        self.cancellation().is_cancelled()
    }

    /// Ends a run that has to stop.
    ///
    /// # Errors
    /// [`Stopped`].
    fn check(&self) -> Result<(), Stopped> {
        if self.must_stop() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }
}

/// An observer that ignores progress and never stops a run.
#[derive(Clone, Debug, Default)]
pub struct Unobserved(pub(crate) Cancellation);

impl Observer for Unobserved {
    fn progress(&self, _: Phase, _: f64) {}

    fn cancellation(&self) -> &Cancellation {
        &self.0
    }
}

/// An observer that also stops the observed work at a deadline. The progress of that work is not
/// passed on: it is a part of other work, which reports its own.
pub(crate) struct Deadline<'a> {
    inner: &'a dyn Observer,
    end: Option<Instant>,
}

impl<'a> Deadline<'a> {
    /// Stops when `inner` stops, and after `limit`; `None` for no limit.
    pub(crate) fn new(inner: &'a dyn Observer, began: Instant, limit: Option<Duration>) -> Self {
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
