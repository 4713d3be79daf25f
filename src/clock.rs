//! The clock. It is passed in as a parameter so that tests can set the time.

use std::sync::{Mutex, PoisonError};

use serde::de::{Deserialize, Deserializer, Error};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time, in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// Reads a time of a document, which may be null.
///
/// # Errors
/// For text that is no date and time of RFC 3339, with an example of one.
pub(crate) fn optional_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<OffsetDateTime>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(deserializer)?;
    let time = text.map(|text| OffsetDateTime::parse(&text, &Rfc3339));
    time.transpose().map_err(|_| {
        D::Error::custom(
            "a time has a date, a time of day and an offset, such as `2030-01-31T00:00:00Z`",
        )
    })
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
