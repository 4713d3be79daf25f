//! How far a run is, on a terminal.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use pais_anonymize::{Count, Observer, Phase, RunStatus, RunProgress};

/// Time between two drawings.
const TICK: Duration = Duration::from_millis(100);

/// Characters of the bar.
const WIDTH: usize = 24;

/// A line on standard error where that is a terminal, nothing elsewhere.
pub struct Bar {
    bar: ProgressBar,
    tally: Arc<RunProgress>,
}

impl Bar {
    /// A run begins.
    pub fn new() -> Self {
        let tally = Arc::new(RunProgress::new(true, 0.0));
        if !std::io::stderr().is_terminal() {
            let hidden = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            return Self { bar: hidden, tally };
        }
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{standing}") {
            let tally = Arc::clone(&tally);
            bar.set_style(style.with_key(
                "standing",
                move |_: &ProgressState, out: &mut dyn Write| {
                    // What cannot be drawn is drawn the next time.
                    let _ = out.write_str(&line(&tally.look()));
                },
            ));
        }
        bar.enable_steady_tick(TICK);
        Self { bar, tally }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Bar {
    fn progress(&self, phase: Phase, fraction: f64) {
        self.tally.progress(phase, fraction);
    }

    fn counted(&self, count: Count) {
        self.tally.counted(count);
    }

    fn must_stop(&self) -> bool {
        false
    }
}

/// `searching [#########---------------] 1,000,000 rows, 7 steps, 2 s, about 3 s left`
fn line(standing: &RunStatus) -> String {
    let phase = standing.phase.map_or("", Phase::as_str);
    let done = (standing.progress.clamp(0.0, 1.0) * WIDTH as f64) as usize;
    let (full, open) = ("#".repeat(done), "-".repeat(WIDTH - done));
    let mut line = format!(
        "{phase:>9} [{full}{open}] {} rows",
        HumanCount(standing.rows_read)
    );
    // Neither is ever wrong: a string takes all that is written to it.
    if standing.steps_done > 0 {
        let _ = write!(line, ", {} steps", HumanCount(standing.steps_done));
    }
    let _ = write!(line, ", {}", time(standing.elapsed));
    if let Some(remaining) = standing.remaining {
        let _ = write!(line, ", about {} left", time(remaining));
    }
    line
}

/// Seconds, or minutes and seconds, or hours and minutes.
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
    fn the_line_tells_phase_rows_steps_and_time() {
        let mut standing = RunStatus {
            phase: None,
            progress: 0.0,
            rows_read: 0,
            steps_done: 0,
            elapsed: Duration::ZERO,
            remaining: None,
        };
        let bar = "-".repeat(24);
        assert_eq!(line(&standing), format!("          [{bar}] 0 rows, 0 s"));
        standing = RunStatus {
            phase: Some(Phase::Searching),
            progress: 0.5,
            rows_read: 1_000_000,
            steps_done: 7,
            elapsed: Duration::from_millis(2_400),
            remaining: Some(Duration::from_millis(2_600)),
        };
        assert_eq!(
            line(&standing),
            "searching [############------------] 1,000,000 rows, 7 steps, 2 s, about 3 s left"
        );
    }

    #[test]
    fn times_are_read_at_a_glance() {
        assert_eq!(time(Duration::from_secs(59)), "59 s");
        assert_eq!(time(Duration::from_secs(61)), "1 min 1 s");
        assert_eq!(time(Duration::from_secs(7_260)), "2 h 1 min");
    }
}
