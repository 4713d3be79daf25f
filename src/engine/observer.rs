//! The observer of a run: receives its progress and can request a stop. The caller provides it.

/// The phase of a run. The phases occur in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reading and encoding rows.
    Reading,
    /// Searching for the anonymous table.
    Searching,
    /// Building the finished table, checking it and measuring its utility.
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

/// A count of the work that a run has done. Counts are totals since the beginning of the run, so a
/// repeated or a missed report does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Number of rows read.
    RowsRead(u64),
    /// Number of specializations performed; the topmost table does not count.
    StepsDone(u64),
}

/// Receives the progress of a run; may be shared between threads.
pub trait Observer: Send + Sync {
    /// Called when the run is in `phase`, of which `fraction` (0 to 1) is done.
    fn progress(&self, phase: Phase, fraction: f64);

    /// Called when the run has reached this count. Does nothing by default.
    fn counted(&self, _: Count) {}

    /// Whether the run should stop. Called at least every few milliseconds of work.
    fn must_stop(&self) -> bool;
}

/// An observer that ignores all reports and never requests a stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&self, _: Phase, _: f64) {}

    fn must_stop(&self) -> bool {
        false
    }
}
