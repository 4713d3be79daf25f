//! Ranges of age at a reference date over days and moments in ISO 8601.

use std::collections::BTreeSet;

use chrono::{Datelike, NaiveDate};

use super::declared::MOST_LEVELS;
use super::paths;
use crate::definition::TaxonomyNode;
use crate::taxonomy::Interval;

/// Years of each level where the definition gives none.
const DEFAULT_WIDTHS: [u32; 3] = [5, 10, 20];

/// Most years of a range.
const MOST_YEARS: u32 = 1_000;

/// Why these options make no hierarchy; `None` where they do.
pub(super) fn unfit(at: &str, widths: Option<&[u32]>) -> Option<&'static str> {
    if reference(at).is_none() {
        return Some("`at` must be a day of ISO 8601, such as 2026-01-01");
    }
    let widths = widths.unwrap_or(&DEFAULT_WIDTHS);
    let is_multiple = |pair: &[u32]| pair[1] > pair[0] && pair[1].is_multiple_of(pair[0]);
    let fits = (1..=MOST_LEVELS).contains(&widths.len())
        && widths.iter().all(|width| (1..=MOST_YEARS).contains(width))
        && widths.windows(2).all(is_multiple);
    (!fits).then_some(
        "`widths` must be 1 to 64 whole numbers of years, 1 to 1000, each a multiple of the one \
         before",
    )
}

/// The tree of ages at the reference date over days or moments in their one form. A range is
/// `[35,40)`: at least 35 and less than 40 completed years. It is negative where the date is after
/// the reference.
///
/// # Errors
/// A sentence where the reference is no day, which the check of the declaration excludes.
pub(super) fn ranges(
    values: &BTreeSet<String>,
    at: &str,
    widths: Option<&[u32]>,
) -> Result<TaxonomyNode, String> {
    let at = reference(at).ok_or("has no reference date")?;
    let widths = widths.unwrap_or(&DEFAULT_WIDTHS);
    let path = |value: &String| {
        let day = value
            .get(..10)
            .and_then(|day| day.parse::<NaiveDate>().ok());
        let age = day.map(|day| completed_years(day, at));
        // From the widest range on.
        let ranges = age.map(|age| widths.iter().rev().map(move |&width| range(age, width)));
        let mut path: Vec<String> = ranges.into_iter().flatten().collect();
        path.push(value.clone());
        path
    };
    Ok(paths::tree(values, values.iter().map(path)))
}

fn reference(at: &str) -> Option<NaiveDate> {
    // The parser of dates also takes days of one digit and spaces.
    let day: NaiveDate = at.parse().ok()?;
    (day.to_string() == at).then_some(day)
}

/// Birthdays from `day` until `at`; one on 29 February is counted on 1 March of other years.
fn completed_years(day: NaiveDate, at: NaiveDate) -> i32 {
    let is_before_birthday = (at.month(), at.day()) < (day.month(), day.day());
    at.year() - day.year() - i32::from(is_before_birthday)
}

fn range(age: i32, width: u32) -> String {
    let width = i64::from(width);
    let lo = i64::from(age).div_euclid(width) * width;
    Interval::half_open(lo as f64, (lo + width) as f64).to_string()
}
