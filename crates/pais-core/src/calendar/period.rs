//! Periods of the calendar: their labels, `1987-W36`, `1987-09`, `1987-Q3`, `1987` and `1980s`, and
//! ranges widened to whole years.

use chrono::{Datelike, Days, Months, NaiveDate, Weekday};

use super::{MILLISECONDS_OF_A_DAY, day_of_number, is_canonical_day, number_of_day};

/// The first and the last day of a day or a period of the calendar, as numbers of days. `None` for
/// any other text, and for a period that is not in the years 1 to 9999.
pub(crate) fn days_of_label(label: &str) -> Option<(i64, i64)> {
    let (first, next) = ends(label)?;
    let last = next.pred_opt()?;
    Some((number_of_day(first).ok()?, number_of_day(last).ok()?))
}

/// The first and the last millisecond of a day or a period of the calendar.
pub(crate) fn moments_of_label(label: &str) -> Option<(i64, i64)> {
    let (first, last) = days_of_label(label)?;
    Some((
        first * MILLISECONDS_OF_A_DAY,
        (last + 1) * MILLISECONDS_OF_A_DAY - 1,
    ))
}

/// The first day of a period, and the first day after it.
fn ends(label: &str) -> Option<(NaiveDate, NaiveDate)> {
    if is_canonical_day(label) {
        let day: NaiveDate = label.parse().ok()?;
        return Some((day, day.succ_opt()?));
    }
    let (year, rest) = label.split_at_checked(4)?;
    let year: i32 = digits(year)?;
    let of_month = |month: u32| NaiveDate::from_ymd_opt(year, month, 1);
    let months = |first: NaiveDate, months: u32| {
        let next = first.checked_add_months(Months::new(months))?;
        Some((first, next))
    };
    match rest.strip_prefix('-') {
        None if rest.is_empty() => months(of_month(1)?, 12),
        None => match (rest, year % 10) {
            // The first decade has no year 0.
            ("s", 0) if year == 0 => months(NaiveDate::from_ymd_opt(1, 1, 1)?, 9 * 12),
            ("s", 0) => months(of_month(1)?, 120),
            _ => None,
        },
        Some(rest) if rest.len() == 2 && rest.starts_with('Q') => {
            let quarter: u32 = digits(&rest[1..])?;
            let is_quarter = (1..=4).contains(&quarter);
            months(of_month(is_quarter.then(|| 3 * quarter - 2)?)?, 3)
        }
        Some(rest) if rest.len() == 3 && rest.starts_with('W') => {
            let week = digits(&rest[1..])?;
            let first = NaiveDate::from_isoywd_opt(year, week, Weekday::Mon)?;
            Some((first, first.checked_add_days(Days::new(7))?))
        }
        Some(rest) if rest.len() == 2 => months(of_month(digits(rest)?)?, 1),
        Some(_) => None,
    }
}

fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok())?
}

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

#[cfg(test)]
mod tests {
    use super::days_of_label;
    use crate::calendar::write_day;

    #[test]
    fn a_period_has_a_first_and_a_last_day() {
        for (label, first, last) in [
            ("1987-09-03", "1987-09-03", "1987-09-03"),
            ("1987-W01", "1986-12-29", "1987-01-04"),
            ("1988-02", "1988-02-01", "1988-02-29"),
            ("1987-Q3", "1987-07-01", "1987-09-30"),
            ("1987-Q4", "1987-10-01", "1987-12-31"),
            ("1987", "1987-01-01", "1987-12-31"),
            ("1980s", "1980-01-01", "1989-12-31"),
            ("0000s", "0001-01-01", "0009-12-31"),
            ("9990s", "9990-01-01", "9999-12-31"),
        ] {
            let (lo, hi) = days_of_label(label).unwrap();
            let mut text = String::new();
            write_day(&mut text, lo).unwrap();
            text.push(' ');
            write_day(&mut text, hi).unwrap();
            assert_eq!(text, format!("{first} {last}"), "{label}");
        }
        for label in [
            "",
            "*",
            "?",
            "198",
            "1987-Q5",
            "1987-Q0",
            "1987-13",
            "1987-W54",
            "1987s",
            "1987-9",
            "1987-02-30",
            "19870",
            "ééééé",
        ] {
            assert_eq!(days_of_label(label), None, "{label}");
        }
    }
}
