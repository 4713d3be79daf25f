//! The time, handed in so that tests can set it.

use std::sync::{Mutex, PoisonError};

use time::{Duration, OffsetDateTime};

/// Tells the time, in UTC.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> OffsetDateTime;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct FixedClock {
    now: Mutex<OffsetDateTime>,
}

impl FixedClock {
    /// A clock that shows `now`.
    pub fn new(now: OffsetDateTime) -> Self {
        Self {
            now: Mutex::new(now),
        }
    }

    /// Moves it by `step`, which may be negative.
    pub fn advance(&self, step: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now += step;
    }
}

impl Clock for FixedClock {
    fn now(&self) -> OffsetDateTime {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_moves_when_told() {
        let clock = FixedClock::new(OffsetDateTime::UNIX_EPOCH);
        clock.advance(Duration::hours(24));
        assert_eq!(
            clock.now(),
            OffsetDateTime::UNIX_EPOCH + Duration::hours(24)
        );
    }
}
