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
    let path = |value: &String| {
        let day = value
            .get(..10)
            .and_then(|day| day.parse::<NaiveDate>().ok());
        let periods = day.map(|day| levels.iter().map(move |&level| period(day, level)));
        let mut path: Vec<String> = periods.into_iter().flatten().collect();
        path.push(value.clone());
        path
    };
    paths::tree(values, values.iter().map(path))
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
