<<<<<<< HEAD:crates/pais-anonymize/src/observer.rs
//! How a run reports its progress and learns that it has to stop. The caller provides both.

use pais_core::cancellation::Cancellation;
=======
//! The observer of a run: receives its progress and can request a stop. The caller provides it.
>>>>>>> prose-3:src/engine/observer.rs

/// The phase of a run. The phases occur in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reading and encoding rows.
    Reading,
    /// Searching for the anonymous table.
    Searching,
<<<<<<< HEAD:crates/pais-anonymize/src/observer.rs
    /// Building the finished table, verifying and measuring it.
=======
    /// Building the finished table, checking it and measuring its utility.
>>>>>>> prose-3:src/engine/observer.rs
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

<<<<<<< HEAD:crates/pais-anonymize/src/observer.rs
/// What a run has done since it began. Counts are totals, so that it does no harm to report one
/// twice or to miss one.
=======
/// A count of the work that a run has done. Counts are totals since the beginning of the run, so a
/// repeated or a missed report does no harm.
>>>>>>> prose-3:src/engine/observer.rs
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Number of rows read.
    RowsRead(u64),
<<<<<<< HEAD:crates/pais-anonymize/src/observer.rs
    /// Specializations performed, not counting the topmost table.
    StepsDone(u64),
}

/// Follows a run; its methods are called from the threads of the run.
=======
    /// Number of specializations performed; the topmost table does not count.
    StepsDone(u64),
}

/// Receives the progress of a run; may be shared between threads.
>>>>>>> prose-3:src/engine/observer.rs
pub trait Observer: Send + Sync {
    /// Called when the run is in `phase`, of which `fraction` (0 to 1) is done.
    fn progress(&self, phase: Phase, fraction: f64);

<<<<<<< HEAD:crates/pais-anonymize/src/observer.rs
    /// The run has reached this count.
    fn counted(&self, _: Count) {}

    /// The request to stop; checked at least every few milliseconds of work.
    fn cancellation(&self) -> &Cancellation;

    /// Whether the run has to stop.
    fn must_stop(&self) -> bool {
        self.cancellation().is_cancelled()
    }
}

/// An observer that ignores progress and never stops a run.
#[derive(Clone, Debug, Default)]
pub struct Unobserved(Cancellation);
=======
    /// Called when the run has reached this count. Does nothing by default.
    fn counted(&self, _: Count) {}

    /// Whether the run should stop. Called at least every few milliseconds of work.
    fn must_stop(&self) -> bool;
}

/// An observer that ignores all reports and never requests a stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;
>>>>>>> prose-3:src/engine/observer.rs

impl Observer for Unobserved {
    fn progress(&self, _: Phase, _: f64) {}

    fn cancellation(&self) -> &Cancellation {
        &self.0
    }
}
