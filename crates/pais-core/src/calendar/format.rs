//! Date formats in the notation of `strftime`, checked when a column is declared.

use std::fmt::Write;
use std::sync::Arc;

use chrono::format::{
    DelayedFormat, Fixed, Item, Numeric, ParseErrorKind, Parsed, StrftimeItems, parse,
};
use chrono::{Datelike, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use thiserror::Error;

use super::{NotADate, number_of_day, number_of_moment, read_day, read_moment};

/// Maximum number of bytes of a format.
const MOST_BYTES: usize = 100;

/// Maximum number of bytes of a cell that is read by a format.
const MOST_CELL_BYTES: usize = 200;

/// Why a format is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DateFormatError {
    /// It is empty or too long.
    #[error("a format has 1 to 100 bytes")]
    Length,
    /// The specifier after `%` is unknown.
    #[error("the format has a specifier that strftime does not define; use %d.%m.%Y, for example")]
    Unknown,
    /// `%f` reads `.5` as five nanoseconds.
    #[error("write `%.f` for a fraction of a second; `%f` is a number of nanoseconds")]
    Nanoseconds,
    /// A time zone name does not determine an offset.
    #[error("a time zone name (%Z) does not give an offset; use %z, or leave it out")]
    ZoneName,
    /// A text of this format does not determine a date.
    #[error("the format does not determine {0}; write {1}, for example")]
    Undetermined(&'static str, &'static str),
    /// ISO 8601, which every column takes, would read the text as another date.
    #[error(
        "texts in this format are also valid ISO 8601 dates with another meaning; use another format"
    )]
    Ambiguous,
}

/// A format for reading cells.
#[derive(Clone, Debug)]
pub struct DateFormat {
    items: Arc<[Item<'static>]>,
}

impl DateFormat {
    /// A format of days.
    ///
    /// # Errors
    /// If it cannot read a day, or ISO 8601 reads the same text differently.
    pub fn of_days(format: &str) -> Result<Self, DateFormatError> {
        let format = Self::new(format)?;
        let sample = sample().map(|moment| moment.date());
        let text = format.sample_text()?;
        if format.day(&text).ok() != sample.and_then(|day| number_of_day(day).ok()) {
            return Err(DateFormatError::Undetermined("a day", "%d.%m.%Y"));
        }
        if read_day(&text).is_ok_and(|iso| Ok(iso) != format.day(&text)) {
            Err(DateFormatError::Ambiguous)
        } else {
            Ok(format)
        }
    }

    /// A format of moments.
    ///
    /// # Errors
    /// If it cannot read a moment, or ISO 8601 reads the same text differently.
    pub fn of_moments(format: &str) -> Result<Self, DateFormatError> {
        let format = Self::new(format)?;
        let text = format.sample_text()?;
        let minute = |milliseconds: i64| milliseconds.div_euclid(60_000);
        let sample = sample().and_then(|moment| number_of_moment(moment).ok());
        if format.moment(&text).ok().map(minute) != sample.map(minute) {
            let (what, example) = ("a day and a time", "%d.%m.%Y %H:%M:%S");
            return Err(DateFormatError::Undetermined(what, example));
        }
        if read_moment(&text).is_ok_and(|iso| Ok(iso) != format.moment(&text)) {
            Err(DateFormatError::Ambiguous)
        } else {
            Ok(format)
        }
    }

    fn new(format: &str) -> Result<Self, DateFormatError> {
        if format.trim().is_empty() || format.len() > MOST_BYTES {
            return Err(DateFormatError::Length);
        }
        let items = StrftimeItems::new(format).parse_to_owned();
        let items = items.map_err(|_| DateFormatError::Unknown)?;
        for item in &items {
            match item {
                Item::Numeric(Numeric::Nanosecond, _) => return Err(DateFormatError::Nanoseconds),
                Item::Fixed(Fixed::TimezoneName) => return Err(DateFormatError::ZoneName),
                _ => {}
            }
        }
        Ok(Self {
            items: items.into(),
        })
    }

    /// The text that the format writes for a moment whose parts all differ.
    fn sample_text(&self) -> Result<String, DateFormatError> {
        let Some(moment) = sample() else {
            return Err(DateFormatError::Unknown);
        };
        let (date, time) = (Some(moment.date()), Some(moment.time()));
        let shown = DelayedFormat::new_with_offset(date, time, &Utc, self.items.iter());
        let mut text = String::new();
        // `to_string` would panic for items that cannot be shown.
        write!(text, "{shown}").map_err(|_| DateFormatError::Unknown)?;
        Ok(text)
    }

    /// Reads a day.
    ///
    /// # Errors
    /// If the text is not a day in this format.
    pub fn day(&self, text: &str) -> Result<i64, NotADate> {
        let parsed = self.parsed(text)?;
        let day = parsed
            .to_naive_date()
            .map_err(|error| reason(error.kind()))?;
        number_of_day(with_whole_year(day, text)?)
    }

    /// Reads a moment. One with an offset is converted to UTC.
    ///
    /// # Errors
    /// If the text is not a moment in this format.
    pub fn moment(&self, text: &str) -> Result<i64, NotADate> {
        let parsed = self.parsed(text)?;
        let offset = parsed.offset().unwrap_or(0);
        let local: NaiveDateTime = parsed
            .to_naive_datetime_with_offset(offset)
            .map_err(|error| reason(error.kind()))?;
        if parsed.timestamp().is_none() {
            with_whole_year(local.date(), text)?;
        }
        // A leap second (60), which hospital clocks do not show, is read as the next second.
        let moment = local.checked_sub_signed(TimeDelta::seconds(i64::from(offset)));
        number_of_moment(moment.ok_or(NotADate::Calendar)?)
    }

    fn parsed(&self, text: &str) -> Result<Parsed, NotADate> {
        if text.len() > MOST_CELL_BYTES {
            return Err(NotADate::Form);
        }
        let mut parsed = Parsed::new();
        parse(&mut parsed, text, self.items.iter()).map_err(|error| reason(error.kind()))?;
        Ok(parsed)
    }
}

/// A year below 1000 must be written with four digits: `87` is not the year 87.
fn with_whole_year(day: NaiveDate, text: &str) -> Result<NaiveDate, NotADate> {
    let year = day.year();
    if year >= 1000 || text.contains(&format!("{year:04}")) {
        Ok(day)
    } else {
        Err(NotADate::Form)
    }
}

fn reason(kind: ParseErrorKind) -> NotADate {
    match kind {
        ParseErrorKind::OutOfRange | ParseErrorKind::Impossible => NotADate::Calendar,
        _ => NotADate::Form,
    }
}

/// 2001-02-03 04:05:06.5: its parts differ, and each would be valid in place of another.
fn sample() -> Option<NaiveDateTime> {
    NaiveDate::from_ymd_opt(2001, 2, 3)?.and_hms_milli_opt(4, 5, 6, 500)
}
