//! What the ends of an interval are: numbers, days or moments.

use std::fmt;

use super::interval::number;
use super::round_range;
use crate::calendar::{
    read_day, read_moment, whole_years_of_days, whole_years_of_moments, write_day, write_moment,
};

/// The scale of a column without a taxonomy, whose intervals are grown during a run.
///
/// Every value is a number; dates are numbers of days or milliseconds since 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Decimal numbers.
    #[default]
    Number,
    /// Days, `1987-09-03`.
    Day,
    /// Moments, `1987-09-03T10:15:00`.
    Moment,
}

impl Scale {
    /// The value of a text in canonical form, or of an end of an interval; `None` for other text.
    pub(crate) fn value(self, text: &str) -> Option<f64> {
        match self {
            Self::Number => number(text),
            Self::Day => read_day(text).ok().map(|days| days as f64),
            Self::Moment => read_moment(text)
                .ok()
                .map(|milliseconds| milliseconds as f64),
        }
    }

    /// Writes a value.
    pub(super) fn write(self, f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
        match self {
            Self::Number => write!(f, "{value}"),
            Self::Day => write_day(f, value as i64),
            Self::Moment => write_moment(f, value as i64),
        }
    }

    /// The text of a value.
    pub fn text(self, value: f64) -> String {
        super::Interval::closed(value, value).on(self).to_string()
    }

    /// A range widened so that its ends are not exact values of a table: numbers to round ones,
    /// dates to whole years.
    pub fn widened(self, lo: f64, hi: f64) -> (f64, f64) {
        let (lo, hi) = match self {
            Self::Number => return round_range(lo, hi),
            Self::Day => whole_years_of_days(lo as i64, hi as i64),
            Self::Moment => whole_years_of_moments(lo as i64, hi as i64),
        };
        (lo as f64, hi as f64)
    }
}
