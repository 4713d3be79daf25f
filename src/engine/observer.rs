//! How a run tells its progress and learns that it is to stop; handed in by the caller.

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading and encoding rows.
    Reading,
    /// Searching for the anonymous table.
    Searching,
    /// Checking the finished table.
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

/// Follows a run from another thread.
pub trait Observer: Send + Sync {
    /// The run is in `phase`, of which `fraction` (0 to 1) is done.
    fn progress(&self, phase: Phase, fraction: f64);

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
