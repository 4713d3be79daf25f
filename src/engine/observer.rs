//! How a run tells its progress and learns that it is to stop; handed in by the caller.

/// What a run is doing; the phases come in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reading and encoding rows.
    Reading,
    /// Searching for the anonymous table.
    Searching,
    /// Making the finished table, checking and measuring it.
    Verifying,
    /// Writing the release.
    Writing,
}

impl Phase {
    /// The word in a job's `phase`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Searching => "searching",
            Self::Verifying => "verifying",
            Self::Writing => "writing",
        }
    }
}

/// What a run has done since it began. Counts stand for the whole of it, so that telling one
/// again, or one of many, does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Rows read.
    RowsRead(u64),
    /// Specializations performed; the topmost table is none.
    StepsDone(u64),
}

/// Follows a run from another thread.
pub trait Observer: Send + Sync {
    /// The run is in `phase`, of which `fraction` (0 to 1) is done.
    fn progress(&self, phase: Phase, fraction: f64);

    /// The run has come to this count.
    fn counted(&self, _: Count) {}

    /// Whether the run is to stop; asked at least every few milliseconds of work.
    fn must_stop(&self) -> bool;
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&self, _: Phase, _: f64) {}

    fn must_stop(&self) -> bool {
        false
    }
}
