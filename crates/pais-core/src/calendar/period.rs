//! Ranges of dates widened to whole years.

use chrono::{Datelike, NaiveDate};

use super::{MILLISECONDS_OF_A_DAY, day_of_number, number_of_day};

/// The first day of the year of `lo`, and the last day of the year of `hi`.
pub(crate) fn whole_years_of_days(lo: i64, hi: i64) -> (i64, i64) {
    let of_year = |days: i64, month: u32, day: u32| {
        let year = day_of_number(days)?.year();
        number_of_day(NaiveDate::from_ymd_opt(year, month, day)?).ok()
    };
    (
        of_year(lo, 1, 1).unwrap_or(lo),
        of_year(hi, 12, 31).unwrap_or(hi),
    )
}

/// The first and the last millisecond of these years.
pub(crate) fn whole_years_of_moments(lo: i64, hi: i64) -> (i64, i64) {
    let day = |milliseconds: i64| milliseconds.div_euclid(MILLISECONDS_OF_A_DAY);
    let (first, last) = whole_years_of_days(day(lo), day(hi));
    (
        first * MILLISECONDS_OF_A_DAY,
        (last + 1) * MILLISECONDS_OF_A_DAY - 1,
    )
}
