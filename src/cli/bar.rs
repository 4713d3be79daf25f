//! Shows the progress of a run on a terminal.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use pais_anonymize::{Count, Observer, Phase, RunProgress, RunStatus};
use pais_core::cancellation::Cancellation;

/// Time between two redraws of the line.
const TICK: Duration = Duration::from_millis(100);

/// Width of the bar, in characters.
const WIDTH: usize = 24;

/// A progress line on standard error. It shows nothing if standard error is not a terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
    run: Arc<RunProgress>,
    cancellation: Cancellation,
}

impl Bar {
    /// Starts the line for a run that begins now.
    pub(crate) fn new() -> Self {
        let run = Arc::new(RunProgress::new(true, 0.0));
        // Hidden where standard error is not a terminal.
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{status}") {
            let run = Arc::clone(&run);
            bar.set_style(style.with_key(
                "status",
                move |_: &ProgressState, out: &mut dyn Write| {
                    // If this write fails, the next redraw writes the line again.
                    let _ = out.write_str(&line(&run.status()));
                },
            ));
        }
        bar.enable_steady_tick(TICK);
        Self {
            bar,
            run,
            cancellation: Cancellation::new(),
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Bar {
    fn progress(&self, phase: Phase, fraction: f64) {
        self.run.progress(phase, fraction);
    }

    fn counted(&self, count: Count) {
        self.run.counted(count);
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

/// `searching [#########---------------] 1,000,000 rows, 7 steps, 2 s, about 3 s left`
fn line(snapshot: &RunStatus) -> String {
    let phase = snapshot.phase.map_or("", Phase::as_str);
    let done = (snapshot.progress.clamp(0.0, 1.0) * WIDTH as f64) as usize;
    let (full, open) = ("#".repeat(done), "-".repeat(WIDTH - done));
    let mut line = format!(
        "{phase:>9} [{full}{open}] {} rows",
        HumanCount(snapshot.rows_read)
    );
    // Writing to a string does not fail, so the results are ignored.
    if snapshot.steps_done > 0 {
        let _ = write!(line, ", {} steps", HumanCount(snapshot.steps_done));
    }
    let _ = write!(line, ", {}", time(snapshot.elapsed));
    if let Some(remaining) = snapshot.remaining {
        let _ = write!(line, ", about {} left", time(remaining));
    }
    line
}

/// A duration in seconds, in minutes and seconds, or in hours and minutes.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pais_anonymize::{Phase, RunStatus};

    use super::{line, time};

    #[test]
    fn the_line_shows_phase_rows_steps_and_time() {
        let mut snapshot = RunStatus {
            phase: None,
            progress: 0.0,
            rows_read: 0,
            steps_done: 0,
            elapsed: Duration::ZERO,
            remaining: None,
        };
        let bar = "-".repeat(24);
        assert_eq!(line(&snapshot), format!("          [{bar}] 0 rows, 0 s"));
        snapshot = RunStatus {
            phase: Some(Phase::Searching),
            progress: 0.5,
            rows_read: 1_000_000,
            steps_done: 7,
            elapsed: Duration::from_millis(2_400),
            remaining: Some(Duration::from_millis(2_600)),
        };
        assert_eq!(
            line(&snapshot),
            "searching [############------------] 1,000,000 rows, 7 steps, 2 s, about 3 s left"
        );
    }

    #[test]
    fn durations_use_the_two_largest_units() {
        assert_eq!(time(Duration::from_secs(59)), "59 s");
        assert_eq!(time(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(time(Duration::from_secs(7_260)), "2 h 1 min");
    }
}
