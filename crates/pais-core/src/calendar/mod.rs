//! Days and moments: how they are read from cells, their numbers for intervals, and their canonical form, ISO
//! 8601.
//!
//! - A day is `1987-09-03`; as a number, the days since 1970-01-01.
//! - A moment is `1987-09-03T10:15:00`, with a fraction to the millisecond if it has one; as a number, the
//!   milliseconds since 1970-01-01T00:00:00. It has no offset: a moment that is written with one is converted
//!   to UTC, so that equal moments are equal, and a moment without one stays as it is.
//!
//! Years are 1 to 9999 of the Gregorian calendar. All numbers are whole and below 2^53, so a 64-bit
//! floating-point number keeps them exactly.

mod format;
mod iso;
mod period;
#[cfg(test)]
mod tests;

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};

pub use format::{DateFormat, DateFormatError};
pub(crate) use iso::{is_canonical_day, is_canonical_moment};
pub use iso::{read_day, read_moment};
pub(crate) use period::{
    days_of_label, moments_of_label, whole_years_of_days, whole_years_of_moments,
};

/// Why a text is not a date. It does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotADate {
    /// It is not written as a date.
    Form,
    /// It is written as a date that is not in the calendar, or not in the years 1 to 9999.
    Calendar,
}

const YEARS: std::ops::RangeInclusive<i32> = 1..=9999;
const MILLISECONDS_OF_A_DAY: i64 = 86_400_000;

/// Days from 0001-01-01, the first day that chrono numbers, to 1970-01-01, plus one.
const EPOCH: i32 = 719_163;

fn number_of_day(day: NaiveDate) -> Result<i64, NotADate> {
    if YEARS.contains(&day.year()) {
        Ok(i64::from(day.num_days_from_ce()) - i64::from(EPOCH))
    } else {
        Err(NotADate::Calendar)
    }
}

/// The milliseconds of a moment; finer digits are cut off.
fn number_of_moment(moment: NaiveDateTime) -> Result<i64, NotADate> {
    if YEARS.contains(&moment.year()) {
        Ok(moment.and_utc().timestamp_millis())
    } else {
        Err(NotADate::Calendar)
    }
}

fn day_of_number(days: i64) -> Option<NaiveDate> {
    let number = i32::try_from(days).ok()?.checked_add(EPOCH)?;
    NaiveDate::from_num_days_from_ce_opt(number).filter(|day| YEARS.contains(&day.year()))
}

fn moment_of_number(milliseconds: i64) -> Option<NaiveDateTime> {
    let moment = DateTime::from_timestamp_millis(milliseconds)?.naive_utc();
    YEARS.contains(&moment.year()).then_some(moment)
}

/// Writes a day as ISO 8601. A number outside the years 1 to 9999, which no reader returns, is
/// written as it is.
pub(crate) fn write_day(f: &mut impl fmt::Write, days: i64) -> fmt::Result {
    match day_of_number(days) {
        Some(day) => write!(f, "{day}"),
        None => write!(f, "{days}"),
    }
}

/// Writes a moment as ISO 8601: without an offset, and with a fraction of a second only if there is one,
/// without trailing zeros. A number outside the years 1 to 9999 is written as it is.
pub(crate) fn write_moment(f: &mut impl fmt::Write, milliseconds: i64) -> fmt::Result {
    let Some(moment) = moment_of_number(milliseconds) else {
        return write!(f, "{milliseconds}");
    };
    write!(f, "{}", moment.format("%Y-%m-%dT%H:%M:%S"))?;
    match milliseconds.rem_euclid(1000) {
        0 => Ok(()),
        fraction => {
            let digits = format!("{fraction:03}");
            write!(f, ".{}", digits.trim_end_matches('0'))
        }
    }
}
