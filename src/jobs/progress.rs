//! What a run and its heartbeat tell each other: how far it is, and whether it is to stop.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;

use pais_anonymize::{Count, Observer, Phase, RunStatus, RunProgress};
use crate::store::queue::{Claim, Counts, Sign};

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

/// A run's progress, written by its threads and read by its heartbeat.
#[derive(Debug)]
pub(super) struct Progress {
    tally: RunProgress,
    /// 0 to go on.
    stop: AtomicU8,
}

impl Progress {
    /// The attempt that was claimed begins.
    pub(super) fn of(claim: &Claim) -> Self {
        let makes_release = claim.definition.get("release") == Some(&Value::Bool(true));
        Self {
            tally: RunProgress::new(makes_release, claim.progress),
            stop: AtomicU8::new(0),
        }
    }

    /// What the heartbeat writes of the run as it stands.
    pub(super) fn now(&self) -> Sign {
        let standing = self.tally.look();
        Sign {
            progress: standing.progress,
            phase: standing.phase.map(Phase::as_str),
            counts: counts(&standing),
            remaining: standing.remaining,
        }
    }

    /// Rows read and steps done.
    pub(super) fn counts(&self) -> Counts {
        counts(&self.tally.look())
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

fn counts(standing: &RunStatus) -> Counts {
    Counts {
        rows_read: standing.rows_read,
        steps_done: standing.steps_done,
    }
}

impl Observer for Progress {
    fn progress(&self, phase: Phase, fraction: f64) {
        self.tally.progress(phase, fraction);
    }

    fn counted(&self, count: Count) {
        self.tally.counted(count);
    }

    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::{Progress, Stop};
    use pais_core::definition::DatasetId;
    use crate::ids::{JobId, OrganizationId};
    use pais_anonymize::{Count, Observer, Phase};
    use crate::store::queue::{Claim, Counts};

    fn progress() -> Progress {
        Progress::of(&Claim {
            job: JobId::new(),
            organization: OrganizationId(Uuid::nil()),
            dataset: DatasetId(Uuid::nil()),
            definition: json!({ "release": true }),
            submissions: Vec::new(),
            attempt: 2,
            token: Uuid::nil(),
            progress: 0.25,
        })
    }

    #[test]
    fn a_heartbeat_tells_what_the_run_told() {
        let progress = progress();
        let first = progress.now();
        assert_eq!((first.progress, first.phase), (0.25, None));
        assert_eq!(first.remaining, None);
        progress.counted(Count::RowsRead(7));
        progress.counted(Count::StepsDone(2));
        progress.progress(Phase::Searching, 0.5);
        let now = progress.now();
        assert_eq!(now.phase, Some("searching"));
        assert!(now.progress >= 0.25 && now.progress < 1.0);
        assert!(now.remaining.is_some());
        let counts = Counts {
            rows_read: 7,
            steps_done: 2,
        };
        assert_eq!((now.counts, progress.counts()), (counts, counts));
    }

    #[test]
    fn the_first_reason_to_stop_stands() {
        let progress = progress();
        assert!(!progress.must_stop());
        progress.stop(Stop::Cancelled);
        progress.stop(Stop::ShuttingDown);
        assert_eq!(progress.stopped(), Some(Stop::Cancelled));
    }
}
