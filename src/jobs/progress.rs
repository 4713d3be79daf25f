//! The state that a run and its heartbeat share: the progress of the run, and whether it must stop.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::allocator::return_freed_pages;
use crate::db::claims::Claim;
use crate::db::jobs::AttemptCounts;
use crate::db::queue::AttemptState;
use pais_anonymize::{Count, Observer, Phase, RunProgress, RunStatus};
use pais_core::cancellation::Cancellation;

/// Why a run must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The holder cancelled the job.
    Cancelled,
    /// The lease is lost, so another worker may have the job.
    LeaseLost,
    /// The service is stopping.
    ShuttingDown,
    /// It has run for longer than a job may.
    TimedOut,
}

/// The progress of a run. The threads of the run write it; its heartbeat reads it.
#[derive(Debug)]
pub(super) struct Progress {
    run: RunProgress,
    /// Unset while the run may continue.
    stop: OnceLock<StopReason>,
    cancellation: Cancellation,
    /// Cancelled together with `cancellation`, for waiting tasks.
    stopping: CancellationToken,
    /// When the run began, after it got its memory.
    began: OnceLock<Instant>,
    /// By phase, the microseconds that the run had taken when it was last in it; 0 if it never was.
    last_in: [AtomicU64; PHASES.len()],
}

/// The phases in their order.
const PHASES: [Phase; 4] = [
    Phase::Reading,
    Phase::Searching,
    Phase::Verifying,
    Phase::Writing,
];

/// When a run was in a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseTime {
    pub(super) phase: Phase,
    pub(super) from: SystemTime,
    pub(super) to: SystemTime,
}

impl PhaseTime {
    /// How long it was in it.
    pub(super) fn took(&self) -> Duration {
        self.to.duration_since(self.from).unwrap_or_default()
    }
}

impl Progress {
    /// The progress of an attempt that begins now.
    pub(super) fn new(claim: &Claim) -> Self {
        let release = claim.definition.shown.get("release");
        let makes_release = matches!(release, Some(Value::Bool(true) | Value::Object(_)));
        Self {
            run: RunProgress::new(makes_release, claim.progress),
            stop: OnceLock::new(),
            cancellation: Cancellation::new(),
            stopping: CancellationToken::new(),
            began: OnceLock::new(),
            last_in: Default::default(),
        }
    }

    /// The phases that the run reached.
    pub(super) fn phases(&self) -> Vec<PhaseTime> {
        let began = SystemTime::now() - self.running_for();
        let mut from = Duration::ZERO;
        let mut phases = Vec::new();
        for (&phase, last_in) in PHASES.iter().zip(&self.last_in) {
            let last_in = Duration::from_micros(last_in.load(Ordering::Relaxed));
            if last_in.is_zero() {
                continue;
            }
            let to = last_in.max(from);
            phases.push(PhaseTime {
                phase,
                from: began + from,
                to: began + to,
            });
            from = to;
        }
        phases
    }

    /// The run has its memory and begins.
    pub(super) fn begin(&self) {
        let _ = self.began.set(Instant::now());
    }

    /// How long it has run. Zero while it waits for memory.
    pub(super) fn running_for(&self) -> Duration {
        self.began.get().map(Instant::elapsed).unwrap_or_default()
    }

    /// The current state of the run, as the heartbeat writes it.
    pub(super) fn now(&self) -> AttemptState {
        let snapshot = self.run.status();
        AttemptState {
            progress: snapshot.progress,
            phase: snapshot.phase.map(Phase::as_str),
            counts: counts(&snapshot),
            remaining: snapshot.remaining,
        }
    }

    /// Rows read and steps done.
    pub(super) fn counts(&self) -> AttemptCounts {
        counts(&self.run.status())
    }

    /// Asks the run to stop. The first reason is kept; later ones are ignored.
    pub(super) fn stop(&self, reason: StopReason) {
        let _ = self.stop.set(reason);
        self.cancellation.cancel();
        self.stopping.cancel();
    }

    /// Waits until the run must stop.
    pub(super) async fn stop_requested(&self) {
        self.stopping.cancelled().await;
    }

    /// Why the run was asked to stop; `None` if it was not.
    pub(super) fn stopped(&self) -> Option<StopReason> {
        self.stop.get().copied()
    }
}

fn counts(snapshot: &RunStatus) -> AttemptCounts {
    AttemptCounts {
        rows_read: snapshot.rows_read,
        steps_done: snapshot.steps_done,
    }
}

impl Observer for Progress {
    fn progress(&self, phase: Phase, fraction: f64) {
        self.run.progress(phase, fraction);
        let now = (self.running_for().as_micros() as u64).max(1);
        let before = self.last_in[phase as usize].fetch_max(now, Ordering::Relaxed);
        if before == 0 {
            // Memory freed by the previous phase would add to what this one allocates.
            return_freed_pages();
        }
    }

    fn counted(&self, count: Count) {
        self.run.counted(count);
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::{Progress, StopReason};
    use crate::db::claims::Claim;
    use crate::db::definition_at_rest::DefinitionAtRest;
    use crate::db::jobs::AttemptCounts;
    use crate::ids::{JobId, OrganizationId};
    use pais_anonymize::{Count, Observer, Phase};
    use pais_core::definition::DatasetId;

    fn progress() -> Progress {
        Progress::new(&Claim {
            job: JobId::new(),
            organization: OrganizationId(Uuid::nil()),
            dataset: DatasetId(Uuid::nil()),
            definition: DefinitionAtRest {
                shown: json!({ "release": true }),
                sealed: None,
            },
            submissions: Vec::new(),
            attempt: 2,
            token: Uuid::nil(),
            progress: 0.25,
            trace: None,
        })
    }

    #[test]
    fn a_heartbeat_reports_what_the_run_reported() {
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
        let counts = AttemptCounts {
            rows_read: 7,
            steps_done: 2,
        };
        assert_eq!((now.counts, progress.counts()), (counts, counts));
    }

    #[test]
    fn the_first_reason_to_stop_is_kept() {
        let progress = progress();
        assert!(!progress.must_stop());
        progress.stop(StopReason::Cancelled);
        progress.stop(StopReason::ShuttingDown);
        assert_eq!(progress.stopped(), Some(StopReason::Cancelled));
    }
}
