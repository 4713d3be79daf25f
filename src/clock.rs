//! The clock. It is passed in as a parameter so that tests can set the time.

use std::sync::{Mutex, PoisonError};

use time::{Duration, OffsetDateTime};

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time, in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}

/// A clock that changes only when a test advances it.
#[derive(Debug)]
pub struct FixedClock {
    now: Mutex<OffsetDateTime>,
}

impl FixedClock {
    /// Creates a clock that returns `now`.
    pub fn new(now: OffsetDateTime) -> Self {
        Self {
            now: Mutex::new(now),
        }
    }

    /// Advances the clock by `step`, which may be negative.
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
    fn a_fixed_clock_changes_when_advanced() {
        let clock = FixedClock::new(OffsetDateTime::UNIX_EPOCH);
        clock.advance(Duration::hours(24));
        assert_eq!(
            clock.now(),
            OffsetDateTime::UNIX_EPOCH + Duration::hours(24)
        );
    }
}
