//! The progress of a split, and the request to stop it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::error::RunError;
use crate::observer::{Observer, Phase};

/// Reports the progress to the observer and asks it for cancellation.
pub(super) struct SplitProgress<'a> {
    observer: &'a dyn Observer,
    rows: usize,
    done: AtomicUsize,
    stopped: AtomicBool,
}

impl<'a> SplitProgress<'a> {
    pub(super) fn new(observer: &'a dyn Observer, rows: usize) -> Self {
        Self {
            observer,
            rows,
            done: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Counts rows whose groups are final.
    pub(super) fn done(&self, rows: usize) {
        let before = self.done.fetch_add(rows, Relaxed);
        // At most about a thousand reports.
        let step = self.rows / 1000 + 1;
        if before / step != (before + rows) / step {
            let done = (before + rows) as f64 / self.rows.max(1) as f64;
            self.observer.progress(Phase::Searching, done.min(1.0));
        }
    }

    pub(super) fn stop_if_asked(&self) -> Result<(), RunError> {
        if !self.stopped.load(Relaxed) && self.observer.must_stop() {
            self.stopped.store(true, Relaxed);
        }
        if self.stopped.load(Relaxed) {
            Err(RunError::Cancelled)
        } else {
            Ok(())
        }
    }
}
