//! The reports of a run, kept so that other threads can read its status.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::estimate::Estimate;
use super::{Count, Phase};

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStatus {
    /// The current phase; `None` before the first one.
    pub phase: Option<Phase>,
    /// Share of the work done, 0 to 1; never decreases.
    pub progress: f64,
    /// Number of rows read.
    pub rows_read: u64,
    /// Number of specializations performed.
    pub steps_done: u64,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Estimated time until the end of the run; `None` while nothing is known.
    pub remaining: Option<Duration>,
}

/// Phases of a run that makes a release.
const WITH_RELEASE: &[Phase] = &[
    Phase::Reading,
    Phase::Searching,
    Phase::Verifying,
    Phase::Writing,
];

/// Phases of a run that writes steps, but no rows.
const WITHOUT_RELEASE: &[Phase] = &[Phase::Reading, Phase::Searching];

/// Collects the reports of a run since it began.
#[derive(Debug)]
pub struct RunProgress {
    began: Instant,
    estimate: Mutex<Estimate>,
    rows_read: AtomicU64,
    steps_done: AtomicU64,
}

impl RunProgress {
    /// Starts the clock of a run. `progress` is the progress reported by a previous attempt, 0 if
    /// there was none.
    pub fn new(makes_release: bool, progress: f64) -> Self {
        let phases = if makes_release {
            WITH_RELEASE
        } else {
            WITHOUT_RELEASE
        };
        Self {
            began: Instant::now(),
            estimate: Mutex::new(Estimate::new(phases, progress)),
            rows_read: AtomicU64::new(0),
            steps_done: AtomicU64::new(0),
        }
    }

    /// See [`super::Observer::progress`].
    pub fn progress(&self, phase: Phase, fraction: f64) {
        self.estimate()
            .observe(self.began.elapsed(), phase, fraction);
    }

    /// See [`super::Observer::counted`]. Counts never decrease.
    pub fn counted(&self, count: Count) {
        let (counter, count) = match count {
            Count::RowsRead(rows) => (&self.rows_read, rows),
            Count::StepsDone(steps) => (&self.steps_done, steps),
        };
        counter.fetch_max(count, Ordering::Relaxed);
    }

    /// Returns the current status of the run.
    pub fn status(&self) -> RunStatus {
        let mut estimate = self.estimate();
        let elapsed = self.began.elapsed();
        let (progress, remaining) = estimate.look(elapsed);
        RunStatus {
            phase: estimate.phase(),
            progress,
            rows_read: self.rows_read.load(Ordering::Relaxed),
            steps_done: self.steps_done.load(Ordering::Relaxed),
            elapsed,
            // A time longer than a `Duration` can represent is returned as unknown.
            remaining: remaining.and_then(|rest| Duration::try_from_secs_f64(rest).ok()),
        }
    }

    fn estimate(&self) -> MutexGuard<'_, Estimate> {
        // Every change leaves the estimate consistent, so a poisoned lock can be ignored.
        self.estimate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::RunProgress;
    use crate::{Count, Phase};

    #[test]
    fn counts_and_phases_are_reported_as_they_arrive() {
        let progress = RunProgress::new(true, 0.0);
        assert_eq!(progress.status().phase, None);
        assert_eq!(progress.status().remaining, None);
        progress.progress(Phase::Reading, 0.5);
        progress.counted(Count::RowsRead(20));
        progress.counted(Count::RowsRead(10));
        progress.counted(Count::StepsDone(3));
        let status = progress.status();
        assert_eq!(status.phase, Some(Phase::Reading));
        assert_eq!((status.rows_read, status.steps_done), (20, 3));
        assert!(status.remaining.is_some());
    }
}
