//! The reports of a run, kept so that other threads can read its status, and the estimate of its
//! remaining time from its speed so far.
//!
//! No phase has a fixed share. The remaining time of the current phase follows from the time it has
//! taken so far and the fraction of it that is done. A phase that has not begun is expected to take
//! as long as reading took. As soon as the phase reports its fraction, that observation replaces
//! the expectation. The caller passes the time, as the time since the run began.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::observer::{Count, Phase};

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

    /// See [`crate::Observer::progress`].
    pub fn progress(&self, phase: Phase, fraction: f64) {
        self.estimate()
            .observe(self.began.elapsed(), phase, fraction);
    }

    /// See [`crate::Observer::counted`]. Counts never decrease.
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

/// Share of a phase that must be done before the observed time has the same weight as the
/// expected time.
const EXPECTED: f64 = 0.02;

/// If a phase reports nothing for longer than its estimated remaining time, it is expected to take
/// this share of the time without a report once more.
const OVERDUE: f64 = 0.25;

/// A new estimate replaces half of the previous one after this share of the estimated time.
const SMOOTHING: f64 = 0.05;

/// Upper bound of the reported progress. Only the end of the run itself is reported as 1.
const ALMOST: f64 = 0.99;

/// Estimates the remaining time and the progress of a run.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// Phases that the run goes through.
    phases: &'static [Phase],
    now: Option<Stage>,
    /// Seconds that reading took; `None` until it is over.
    reading: Option<f64>,
    looked: Duration,
    /// The remaining time returned last, in seconds.
    remaining: Option<f64>,
    /// The progress reported by a previous attempt.
    start: f64,
    progress: f64,
}

/// The current phase.
#[derive(Clone, Copy, Debug)]
struct Stage {
    phase: Phase,
    began: Duration,
    /// The fraction reported last, and in `reported` when that fraction was first reported.
    fraction: f64,
    reported: Duration,
}

impl Estimate {
    /// An estimate for a run that has not begun. `progress` is the progress reported by a previous
    /// attempt, 0 if there was none.
    pub(crate) fn new(phases: &'static [Phase], progress: f64) -> Self {
        let start = progress.clamp(0.0, 1.0);
        Self {
            phases,
            now: None,
            reading: None,
            looked: Duration::ZERO,
            remaining: None,
            start,
            progress: start,
        }
    }

    /// Records that at `elapsed` after its beginning the run was in `phase`, with `fraction` of it
    /// done, from 0 to 1. A phase earlier than the current one is ignored. A fraction may decrease,
    /// if unexpected work was found.
    pub(crate) fn observe(&mut self, elapsed: Duration, phase: Phase, fraction: f64) {
        if fraction.is_nan() {
            return;
        }
        let fraction = fraction.clamp(0.0, 1.0);
        match &mut self.now {
            Some(stage) if phase < stage.phase => {}
            Some(stage) if phase == stage.phase => {
                if fraction != stage.fraction {
                    stage.fraction = fraction;
                    stage.reported = elapsed;
                }
            }
            before => {
                if let Some(stage) = before
                    && stage.phase == Phase::Reading
                {
                    self.reading = Some(elapsed.saturating_sub(stage.began).as_secs_f64());
                }
                *before = Some(Stage {
                    phase,
                    // The time before the first report is part of the first phase.
                    began: before.map_or(Duration::ZERO, |_| elapsed),
                    fraction,
                    reported: elapsed,
                });
            }
        }
    }

    /// The current phase; `None` before the first report.
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.now.map(|stage| stage.phase)
    }

    /// Returns the progress of the run (0 to 1) and the seconds until its end (`None` while nothing
    /// is known), at `elapsed` after its beginning. The progress never decreases, and does not jump
    /// when the estimate does. It advances by the fraction of its remainder that the time since the
    /// last call is of that time plus the remaining time, but never exceeds the share of the total
    /// time that has elapsed.
    pub(crate) fn look(&mut self, elapsed: Duration) -> (f64, Option<f64>) {
        let since = elapsed.saturating_sub(self.looked).as_secs_f64();
        self.looked = self.looked.max(elapsed);
        let Some(found) = self.left(elapsed) else {
            return (self.progress, self.remaining);
        };
        let remaining = match self.remaining {
            Some(before) if found > 0.0 => {
                let before = (before - since).max(0.0);
                before + (found - before) * since / (since + SMOOTHING * found)
            }
            _ => found,
        };
        self.remaining = Some(remaining);
        if since > 0.0 {
            let moved = self.progress + (1.0 - self.progress) * since / (since + remaining);
            let gone = elapsed.as_secs_f64() / (elapsed.as_secs_f64() + remaining);
            let bound = self.start + (1.0 - self.start) * gone;
            self.progress = moved.min(bound).min(ALMOST).max(self.progress);
        }
        (self.progress, self.remaining)
    }

    /// The seconds left according to the phases, without smoothing.
    fn left(&self, elapsed: Duration) -> Option<f64> {
        let stage = self.now?;
        let expected = match self.reading {
            // A phase that is not in the list of phases is expected to take no time.
            Some(reading) if self.phases.contains(&stage.phase) => Some(reading),
            Some(_) => Some(0.0),
            None => None,
        };
        if expected.is_none() && stage.fraction <= 0.0 {
            return None;
        }
        let weight = expected.map_or(0.0, |_| EXPECTED);
        let spent = stage.reported.saturating_sub(stage.began).as_secs_f64();
        let whole = (weight * expected.unwrap_or(0.0) + spent) / (weight + stage.fraction);
        let open = 1.0 - stage.fraction;
        let silence = elapsed.saturating_sub(stage.reported).as_secs_f64();
        let here = (open * whole - silence).max(open * OVERDUE * silence);
        let ahead = self.phases.iter().filter(|&&phase| phase > stage.phase);
        Some(here + ahead.count() as f64 * self.reading.unwrap_or(whole))
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

#[cfg(test)]
mod estimate_tests {
    use std::time::Duration;

    use super::{ALMOST, Estimate};
    use crate::Phase::{self, Reading, Searching, Verifying, Writing};

    const ALL: &[Phase] = &[Reading, Searching, Verifying, Writing];

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Simulates a run whose phases take the given seconds. Each phase reports its fraction ten
    /// times per second, and the estimate is read as often. Returns (elapsed, progress, remaining).
    fn run(took: [f64; 4], done: impl Fn(f64) -> f64) -> Vec<(f64, f64, Option<f64>)> {
        let mut estimate = Estimate::new(ALL, 0.0);
        let mut seen = Vec::new();
        let mut began = 0.0;
        for (&phase, took) in ALL.iter().zip(took) {
            let ticks = (took * 10.0) as u32;
            for tick in 0..=ticks {
                let time = f64::from(tick) / 10.0;
                estimate.observe(at(began + time), phase, done(time / took));
                let (progress, remaining) = estimate.look(at(began + time));
                seen.push((began + time, progress, remaining));
            }
            began += took;
        }
        seen
    }

    #[test]
    fn nothing_is_reported_before_anything_is_known() {
        let mut estimate = Estimate::new(ALL, 0.0);
        assert_eq!(estimate.look(at(1.0)), (0.0, None));
        estimate.observe(at(1.0), Reading, 0.0);
        assert_eq!(estimate.look(at(2.0)), (0.0, None));
        assert_eq!(estimate.phase(), Some(Reading));
    }

    #[test]
    fn an_even_run_is_estimated_to_the_second() {
        for (elapsed, progress, remaining) in run([4.0; 4], |share| share) {
            if elapsed < 0.1 {
                continue;
            }
            let remaining = remaining.unwrap();
            assert!((remaining - (16.0 - elapsed)).abs() < 0.1, "{elapsed}");
            assert!((progress - elapsed / 16.0).abs() < 0.02, "{elapsed}");
        }
    }

    #[test]
    fn progress_neither_decreases_nor_jumps_and_the_remaining_time_reaches_zero() {
        for took in [
            [1.0, 30.0, 1.0, 1.0],
            [5.0, 1.0, 5.0, 5.0],
            [2.0, 2.0, 20.0, 1.0],
        ] {
            for done in [|share: f64| share, |share: f64| share * share, f64::sqrt] {
                let seen = run(took, done);
                for pair in seen.windows(2) {
                    let [(_, before, _), (_, now, remaining)] = pair else {
                        unreachable!("windows of two")
                    };
                    assert!(now >= before, "{pair:?}");
                    assert!(remaining.is_none_or(|rest| rest >= 0.0), "{pair:?}");
                    // Only in the last second the progress may jump.
                    assert!(now - before < 0.1 || remaining < &Some(1.0), "{pair:?}");
                }
                let (_, progress, remaining) = seen[seen.len() - 1];
                assert_eq!(remaining, Some(0.0), "{took:?}");
                assert!(progress > 0.9 && progress <= ALMOST, "{took:?}: {progress}");
            }
        }
    }

    #[test]
    fn the_observed_time_replaces_the_expected_time() {
        // Reading takes one second, the search takes 100.
        let seen = run([1.0, 100.0, 1.0, 1.0], |share| share);
        let error = |elapsed: f64| {
            let (_, _, remaining) = seen.iter().find(|(at, ..)| *at >= elapsed).unwrap();
            (remaining.unwrap() - (103.0 - elapsed)).abs() / (103.0 - elapsed)
        };
        assert!(error(1.5) > 0.5);
        assert!(error(11.0) < 0.3);
        assert!(error(51.0) < 0.1);
        assert!(error(81.0) < error(11.0));
    }

    #[test]
    fn a_phase_without_reports_is_not_taken_as_finished() {
        let mut estimate = Estimate::new(ALL, 0.0);
        estimate.observe(at(0.5), Reading, 0.5);
        estimate.observe(at(1.0), Searching, 0.0);
        let (_, first) = estimate.look(at(1.0));
        assert_eq!(first, Some(3.0));
        let mut before = 0.0;
        for tick in 1..1000 {
            let (progress, remaining) = estimate.look(at(1.0 + f64::from(tick) / 10.0));
            assert!(remaining.unwrap() >= 2.0, "verifying and writing are ahead");
            assert!(progress >= before && progress < ALMOST);
            before = progress;
        }
        assert!(before < 0.9, "{before}");
        // 100 seconds without a report: about 25 more for this phase, and the two phases ahead.
        let (_, late) = estimate.look(at(101.0));
        assert!((20.0..30.0).contains(&late.unwrap()), "{late:?}");
    }

    #[test]
    fn earlier_phases_are_ignored() {
        let mut estimate = Estimate::new(ALL, 0.0);
        estimate.observe(at(1.0), Reading, 1.0);
        estimate.observe(at(2.0), Searching, 0.5);
        let mut other = estimate.clone();
        other.observe(at(2.0), Searching, f64::NAN);
        other.observe(at(2.0), Reading, 0.1);
        assert_eq!(other.phase(), Some(Searching));
        assert_eq!(other.look(at(3.0)), estimate.look(at(3.0)));
        estimate.observe(at(4.0), Writing, 7.0);
        assert_eq!(estimate.look(at(4.0)).1, Some(0.0));
    }

    #[test]
    fn unexpected_work_increases_the_remaining_time_but_does_not_decrease_progress() {
        let mut estimate = Estimate::new(ALL, 0.0);
        estimate.observe(at(1.0), Reading, 1.0);
        estimate.observe(at(1.0), Searching, 0.0);
        estimate.observe(at(11.0), Searching, 0.8);
        let (progress, remaining) = estimate.look(at(11.0));
        estimate.observe(at(11.5), Searching, 0.4);
        let (now, longer) = estimate.look(at(11.5));
        assert!(longer > remaining, "{remaining:?} {longer:?}");
        assert!(now >= progress);
    }

    #[test]
    fn a_further_attempt_continues_from_the_progress_of_the_previous_one() {
        let mut estimate = Estimate::new(ALL, 0.6);
        assert_eq!(estimate.look(at(0.0)), (0.6, None));
        estimate.observe(at(1.0), Reading, 0.5);
        let (progress, remaining) = estimate.look(at(1.0));
        assert_eq!(remaining, Some(7.0));
        assert!(progress > 0.6 && progress < 0.7, "{progress}");
    }

    #[test]
    fn an_unlisted_phase_adds_no_time() {
        let mut estimate = Estimate::new(&[Reading, Searching], 0.0);
        estimate.observe(at(1.0), Reading, 1.0);
        estimate.observe(at(1.0), Searching, 0.0);
        assert_eq!(estimate.look(at(1.0)).1, Some(1.0));
        estimate.observe(at(2.0), Searching, 1.0);
        estimate.observe(at(2.0), Writing, 0.0);
        assert_eq!(estimate.look(at(2.0)).1, Some(0.0));
    }
}
