//! What a run and its heartbeat tell each other: how far it is, and whether it is to stop.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::engine::{Observer, Phase};

/// Why a run is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The holder wants it cancelled.
    Cancelled = 1,
    /// Another worker may have the job.
    LeaseLost = 2,
    /// The service is stopping.
    ShuttingDown = 3,
}

/// A run's progress, written by its thread and read by its heartbeat.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The bits of a number from 0 to 1; those of numbers that are not negative sort like them.
    done: AtomicU64,
    /// 0 before the first phase.
    phase: AtomicU8,
    /// 0 to go on.
    stop: AtomicU8,
}

const PHASES: [Phase; 4] = [
    Phase::Reading,
    Phase::Searching,
    Phase::Verifying,
    Phase::Writing,
];

/// Where each phase begins, as a share of the whole; the last one ends at 1.
const BEGINS: [f64; 5] = [0.0, 0.2, 0.75, 0.9, 1.0];

impl Progress {
    /// Share of the work done and the phase under way; the share never shrinks.
    pub(super) fn now(&self) -> (f64, Option<&'static str>) {
        let done = f64::from_bits(self.done.load(Ordering::Relaxed));
        let phase = usize::from(self.phase.load(Ordering::Relaxed));
        let phase = phase.checked_sub(1).and_then(|index| PHASES.get(index));
        (done, phase.map(|phase| phase.as_str()))
    }

    /// Asks the run to stop; the first reason stands.
    pub(super) fn stop(&self, reason: Stop) {
        let _ = self
            .stop
            .compare_exchange(0, reason as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Why the run was asked to stop.
    pub(super) fn stopped(&self) -> Option<Stop> {
        [Stop::Cancelled, Stop::LeaseLost, Stop::ShuttingDown]
            .into_iter()
            .find(|&reason| reason as u8 == self.stop.load(Ordering::Relaxed))
    }
}

impl Observer for Progress {
    fn progress(&self, phase: Phase, fraction: f64) {
        let index = PHASES.iter().position(|&other| other == phase).unwrap_or(0);
        let (from, to) = (BEGINS[index], BEGINS[index + 1]);
        let done = from + (to - from) * fraction.clamp(0.0, 1.0);
        // A NaN would sort above every number.
        if done >= 0.0 {
            self.done.fetch_max(done.to_bits(), Ordering::Relaxed);
        }
        self.phase.store(index as u8 + 1, Ordering::Relaxed);
    }

    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Stop};
    use crate::engine::{Observer, Phase};

    #[test]
    fn progress_never_goes_back() {
        let progress = Progress::default();
        assert_eq!(progress.now(), (0.0, None));
        progress.progress(Phase::Searching, 0.5);
        let (half, phase) = progress.now();
        assert_eq!(phase, Some("searching"));
        progress.progress(Phase::Reading, 0.1);
        progress.progress(Phase::Reading, f64::NAN);
        assert_eq!(progress.now(), (half, Some("reading")));
        progress.progress(Phase::Writing, 7.0);
        assert_eq!(progress.now(), (1.0, Some("writing")));
    }

    #[test]
    fn the_first_reason_to_stop_stands() {
        let progress = Progress::default();
        assert!(!progress.must_stop());
        progress.stop(Stop::Cancelled);
        progress.stop(Stop::ShuttingDown);
        assert_eq!(progress.stopped(), Some(Stop::Cancelled));
    }
}
