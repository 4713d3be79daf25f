//! Periods of the calendar over days and moments in ISO 8601.

use std::collections::BTreeSet;

use chrono::{Datelike, NaiveDate};

use super::paths;
use crate::definition::{CalendarLevel, ColumnKind, TaxonomyNode};

const DEFAULT_LEVELS: [CalendarLevel; 4] = [
    CalendarLevel::Month,
    CalendarLevel::Quarter,
    CalendarLevel::Year,
    CalendarLevel::Decade,
];

/// The tree of the periods of these levels over days or moments in their one form.
pub(super) fn periods(
    values: &BTreeSet<String>,
    kind: ColumnKind,
    levels: Option<&[CalendarLevel]>,
) -> TaxonomyNode {
    let mut levels = levels.unwrap_or(&DEFAULT_LEVELS).to_vec();
    // From the longest period on. A day is the value itself in a column of days.
    levels.sort_unstable_by(|one, other| other.cmp(one));
    levels.retain(|&level| level != CalendarLevel::Day || kind == ColumnKind::Datetime);
    paths::tree(values, |value| {
        let day = day_of(value);
        let periods = day.map(|day| levels.iter().map(move |&level| period(day, level)));
        periods.into_iter().flatten().collect()
    })
}

/// The day of a day or moment in its one form.
pub(super) fn day_of(value: &str) -> Option<NaiveDate> {
    value.get(..10)?.parse().ok()
}

/// The label of the period that a day is in.
fn period(day: NaiveDate, level: CalendarLevel) -> String {
    let year = day.year();
    match level {
        CalendarLevel::Day => day.to_string(),
        CalendarLevel::Week => {
            let week = day.iso_week();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        CalendarLevel::Month => format!("{year:04}-{:02}", day.month()),
        CalendarLevel::Quarter => format!("{year:04}-Q{}", day.month0() / 3 + 1),
        CalendarLevel::Year => format!("{year:04}"),
        CalendarLevel::Decade => format!("{:04}s", year / 10 * 10),
    }
}
