//! A request to stop, shared between threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks running work to stop. Clones share one request; it cannot be taken back.
///
/// Long computations check it often enough to stop within a fraction of a second.
///
/// ```
/// use pais_core::cancellation::Cancellation;
///
/// let cancellation = Cancellation::new();
/// let shared = cancellation.clone();
/// cancellation.cancel();
/// assert!(shared.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// A request that has not been made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the request.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the request was made.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends work that the request asks to stop.
    ///
    /// # Errors
    /// [`Stopped`] once the request was made.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_cancelled() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }
}

/// Work ended because a request asked it to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;
