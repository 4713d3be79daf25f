//! The clock. It is passed in as a parameter so that tests can set the time.

use serde::de::{Deserialize, Deserializer, Error};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time, in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// Reads a time of a document, which may be null.
///
/// # Errors
/// For text that is not a date and time of RFC 3339, with an example of one.
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
