//! The made trees: trees in which each value has a path of labels, trees over intervals of numbers, and trees
//! over labels in a declared order.

use std::collections::{BTreeMap, HashSet};

use chrono::{Datelike, NaiveDate};

use crate::definition::{CalendarLevel, ColumnKind, TaxonomyNode};
use crate::taxonomy::interval::number;
use crate::taxonomy::{Interval, TreeLimits};

/// Distinct values, each with its number of rows.
pub(in crate::schema) type Values = BTreeMap<String, u64>;

/// Maximum number of levels of a hierarchy that is made.
pub(super) const MOST_LEVELS: usize = 64;

/// Lengths of prefixes if the definition gives none. They do not depend on the values, so that no value decides
/// which prefixes others have.
const DEFAULT_LENGTHS: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 40, 80, 160, 320, 640];

/// Characters that mask a hidden one, in this order of preference.
pub(super) const MASKS: [char; 5] = ['*', '#', '\u{2022}', '\u{d7}', '\u{2588}'];

/// The end of a value from which characters are hidden.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A node by the labels below it; a value has none.
#[derive(Default)]
struct Children(BTreeMap<String, Children>);

impl Children {
    fn add(&mut self, path: impl IntoIterator<Item = String>) {
        let mut at = self;
        for label in path {
            at = at.0.entry(label).or_default();
        }
    }

    fn node(self, label: String) -> TaxonomyNode {
        let children = self.0.into_iter();
        TaxonomyNode {
            label,
            children: children.map(|(label, below)| below.node(label)).collect(),
        }
    }
}

/// A free label: `first`, with as many marks after it as needed.
pub(super) fn free_label(first: &str, mark: char, is_taken: impl Fn(&str) -> bool) -> String {
    let mut label = first.to_owned();
    while is_taken(&label) {
        label.push(mark);
    }
    label
}

/// The tree over these values, each below the labels that `above` gives, from the child of the root downwards.
/// The root is `*`, repeated until no value is equal to it.
pub(super) fn tree(values: &Values, above: impl Fn(&str) -> Vec<String>) -> TaxonomyNode {
    let root = free_label("*", '*', |label| values.contains_key(label));
    let mut children = Children::default();
    for value in values.keys() {
        children.add(above(value).into_iter().chain([value.clone()]));
    }
    children.node(root)
}

fn longest(values: &Values) -> usize {
    let lengths = values.keys().map(|value| value.chars().count());
    lengths.max().unwrap_or(0)
}

fn prefix(value: &str, length: usize) -> &str {
    let end = value.char_indices().nth(length).map(|(at, _)| at);
    &value[..end.unwrap_or(value.len())]
}

/// Prefixes of the values, of these lengths in characters: `123*` over `1234`. A value has no prefix
/// as long as itself. The mark at the end is one that no value ends with, so a
/// prefix is never taken for a value.
pub(super) fn prefixes(values: &Values, lengths: Option<&[u32]>) -> TaxonomyNode {
    let mark = free_label("*", '*', |mark| {
        values.keys().any(|value| value.ends_with(mark))
    });
    let lengths = lengths.unwrap_or(&DEFAULT_LENGTHS).iter();
    let mut lengths: Vec<usize> = lengths.map(|&length| length as usize).collect();
    lengths.sort_unstable();
    tree(values, |value| {
        let own = value.chars().count();
        let shorter = lengths.iter().filter(|&&length| length < own);
        shorter
            .map(|&length| format!("{}{mark}", prefix(value, length)))
            .collect()
    })
}

/// One more character of the values is hidden on each level. Labels are as long as the longest
/// value, so labels of different levels differ.
///
/// # Errors
/// A sentence for values that contain every mask character.
pub(super) fn masks(values: &Values, side: Side) -> Result<TaxonomyNode, String> {
    let is_free = |mask: &&char| !values.keys().any(|value| value.contains(**mask));
    let mask = MASKS.iter().find(is_free);
    let mask =
        mask.ok_or("has no character for hidden ones, since values have all of * # • × █")?;
    let width = longest(values);
    let hidden = |shown: usize| -> String { std::iter::repeat_n(*mask, width - shown).collect() };
    Ok(tree(values, |value| {
        let characters: Vec<char> = value.chars().collect();
        let masked = |shown: usize| match side {
            Side::Right => String::from_iter(&characters[..shown]) + &hidden(shown),
            Side::Left => {
                let shown_from = characters.len() - shown;
                hidden(shown) + &String::from_iter(&characters[shown_from..])
            }
        };
        (1..characters.len()).map(masked).collect()
    }))
}

/// Groups the values of fewer than `below` rows under one node next to the others. Does so even without others:
/// missing cells are below the root too, so the root is not the label of rare values.
pub(super) fn rare(values: &Values, below: u64) -> TaxonomyNode {
    let mut label = "(rare)".to_owned();
    while values.contains_key(&label) {
        label = format!("({label})");
    }
    tree(values, |value| {
        let is_rare = values.get(value).is_some_and(|&rows| rows < below);
        Vec::from_iter(is_rare.then(|| label.clone()))
    })
}

const DEFAULT_LEVELS: [CalendarLevel; 4] = [
    CalendarLevel::Month,
    CalendarLevel::Quarter,
    CalendarLevel::Year,
    CalendarLevel::Decade,
];

/// The tree of the periods of these levels over days or moments in canonical form.
pub(super) fn periods(
    values: &Values,
    kind: ColumnKind,
    levels: Option<&[CalendarLevel]>,
) -> TaxonomyNode {
    let mut levels = levels.unwrap_or(&DEFAULT_LEVELS).to_vec();
    // Longest period first. A day is the value itself in a column of days.
    levels.sort_unstable_by(|one, other| other.cmp(one));
    levels.retain(|&level| level != CalendarLevel::Day || kind == ColumnKind::Datetime);
    tree(values, |value| {
        let day = day_of(value);
        let periods = day.map(|day| levels.iter().map(move |&level| period(day, level)));
        periods.into_iter().flatten().collect()
    })
}

/// The day of a day or moment in canonical form.
fn day_of(value: &str) -> Option<NaiveDate> {
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

/// Default number of years of each level.
const DEFAULT_WIDTHS: [u32; 3] = [5, 10, 20];

/// Maximum number of years of a range.
const MOST_YEARS: u32 = 1_000;

/// The option with which no hierarchy can be made, and what it must be; `None` if it can.
pub(super) fn unfit_ages(at: &str, widths: Option<&[u32]>) -> Option<(&'static str, &'static str)> {
    if reference(at).is_none() {
        let detail = "`at` must be a day of ISO 8601, such as 2026-01-01";
        return Some(("at", detail));
    }
    let widths = widths.unwrap_or(&DEFAULT_WIDTHS);
    let is_multiple = |pair: &[u32]| pair[1] > pair[0] && pair[1].is_multiple_of(pair[0]);
    let fits = (1..=MOST_LEVELS).contains(&widths.len())
        && widths.iter().all(|width| (1..=MOST_YEARS).contains(width))
        && widths.windows(2).all(is_multiple);
    let detail = "`widths` must be 1 to 64 whole numbers of years, 1 to 1000, each a multiple of the \
                  one before";
    (!fits).then_some(("widths", detail))
}

/// The tree of ages at the reference date over days or moments in canonical form. A range is `[35,40)`: at
/// least 35 and less than 40 completed years. It is negative where the date is after the reference.
///
/// # Errors
/// A sentence if the reference is not a day; the check of the declaration excludes this.
pub(super) fn ages(
    values: &Values,
    at: &str,
    widths: Option<&[u32]>,
) -> Result<TaxonomyNode, String> {
    let at = reference(at).ok_or("has no reference date")?;
    let widths = widths.unwrap_or(&DEFAULT_WIDTHS);
    Ok(tree(values, |value| {
        let age = day_of(value).map(|day| completed_years(day, at));
        // Widest range first.
        let ranges = age.map(|age| widths.iter().rev().map(move |&width| range(age, width)));
        ranges.into_iter().flatten().collect()
    }))
}

fn reference(at: &str) -> Option<NaiveDate> {
    // The parser of dates also takes days of one digit and spaces.
    let day: NaiveDate = at.parse().ok()?;
    (day.to_string() == at).then_some(day)
}

/// Birthdays from `day` until `at`; a birthday on 29 February counts on 1 March in other years.
fn completed_years(day: NaiveDate, at: NaiveDate) -> i32 {
    let is_before_birthday = (at.month(), at.day()) < (day.month(), day.day());
    at.year() - day.year() - i32::from(is_before_birthday)
}

fn range(age: i32, width: u32) -> String {
    let width = i64::from(width);
    let lo = i64::from(age).div_euclid(width) * width;
    Interval::half_open(lo as f64, (lo + width) as f64).to_string()
}

/// Number of intervals of the shortest default width that most of the numbers span; for a definition without
/// widths.
const DEFAULT_INTERVALS: f64 = 20.0;

/// Maximum number of intervals of the shortest default width that all numbers span.
const MOST_DEFAULT_INTERVALS: f64 = 10_000.0;

/// The position of a value of a column of numbers, or of an interval of them.
pub(super) fn position(value: &str) -> Option<f64> {
    let middle = |interval: Interval| interval.lo + (interval.hi - interval.lo) / 2.0;
    number(value).or_else(|| Interval::parse(value).map(middle))
}

/// These widths, or the default ones.
pub(super) fn widths_or_default(widths: Option<&[f64]>, values: &Values) -> Vec<f64> {
    widths.map_or_else(|| default_widths(values), <[f64]>::to_vec)
}

/// The widths of intervals if the definition gives none: a power of ten and ten times as much.
///
/// They depend on the numbers between the first and the last decile of the rows, so that a few rows cannot
/// decide them. Only numbers very far from these increase them.
pub(super) fn default_widths(values: &Values) -> Vec<f64> {
    let numbers = values.iter();
    let numbers = numbers.filter_map(|(value, &rows)| Some((position(value)?, rows)));
    let mut numbers: Vec<(f64, u64)> = numbers.collect();
    numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let rows: u64 = numbers.iter().map(|(_, rows)| rows).sum();
    let at = |row: u64| {
        let mut before = 0;
        let found = numbers.iter().find(|(_, rows)| {
            before += rows;
            before > row
        });
        found.map_or(0.0, |(number, _)| *number)
    };
    let ends = numbers.first().zip(numbers.last());
    let all = ends.map_or(0.0, |((least, _), (most, _))| most - least);
    let last = rows.saturating_sub(1);
    // The first and the last decile of evenly spread numbers are 0.8 of their range apart.
    let most = 1.25 * (at(last - last / 10) - at(last / 10));
    let most = if most > 0.0 { most } else { all };
    let span = (most / DEFAULT_INTERVALS).max(f64::MIN_POSITIVE);
    let mut width = 10f64.powf(span.log10().ceil()).max(1e-6);
    while all / width > MOST_DEFAULT_INTERVALS {
        width *= 10.0;
    }
    vec![width, 10.0 * width]
}

/// A tree over the intervals that the numbers span: those of the first width are the leaves, those
/// of each further one are above.
///
/// # Errors
/// A sentence for more intervals than a taxonomy can have.
pub(super) fn ranges(
    values: &Values,
    start: Option<f64>,
    widths: &[f64],
    limits: TreeLimits,
) -> Result<TaxonomyNode, String> {
    let numbers = || values.keys().filter_map(|value| position(value));
    let least = numbers().fold(f64::INFINITY, f64::min);
    let most = numbers().fold(f64::NEG_INFINITY, f64::max);
    let start = start.unwrap_or(0.0);
    let (Some(&leaf), Some(&widest)) = (widths.first(), widths.last()) else {
        return Err("has no width".to_owned());
    };
    let step = |value: f64, width: f64| ((value - start) / width).floor();
    let (first, last) = (step(least, widest), step(most, widest) + 1.0);
    let leaves = (last - first) * (widest / leaf).round();
    if !leaves.is_finite() || leaves >= limits.leaves as f64 {
        return Err(format!(
            "would have more than {} intervals; give greater widths",
            limits.leaves
        ));
    }
    let end = |index: f64| start + index * widest;
    // A root must have more than one part.
    let last = match widths.len() {
        1 => last.max(first + 2.0),
        _ => last,
    };
    let mut nodes = Vec::new();
    let mut index = first;
    while index < last {
        nodes.push(interval((end(index), end(index + 1.0)), widths));
        index += 1.0;
    }
    if let (1, Some(only)) = (nodes.len(), nodes.first()) {
        return Ok(only.clone());
    }
    Ok(TaxonomyNode {
        label: Interval::half_open(end(first), end(last)).to_string(),
        children: nodes,
    })
}

/// The interval between two ends, over those of the shorter widths.
fn interval((lo, hi): (f64, f64), widths: &[f64]) -> TaxonomyNode {
    let mut children = Vec::new();
    if let [shorter @ .., width] = widths
        && let Some(&below) = shorter.last()
    {
        let parts = (width / below).round() as u64;
        // One part would repeat the label of the whole.
        if parts > 1 {
            let end = |part: u64| lo + part as f64 * below;
            children.extend((0..parts).map(|part| {
                let hi = if part + 1 == parts { hi } else { end(part + 1) };
                interval((end(part), hi), shorter)
            }));
        }
    }
    TaxonomyNode {
        label: Interval::half_open(lo, hi).to_string(),
        children,
    }
}

/// Between the first and the last label of an interval.
const TO: &str = "..";

/// How many of the remaining nodes of a level the next parent gets. A node that would be left alone joins its
/// neighbours; if that would be all nodes, the level is halved.
fn group_size(left: usize, fanout: usize, is_first: bool) -> usize {
    match left {
        left if left == fanout + 1 && is_first => left.div_ceil(2),
        left if left == fanout + 1 => left,
        left => left.min(fanout),
    }
}

/// A tree over labels in their order; a node has up to `fanout` children, or one more so that no node is left
/// alone. An interval is `low..medium`, the whole is `*`.
pub(super) fn ordered(labels: &[String], fanout: usize) -> TaxonomyNode {
    let leaves: HashSet<&str> = labels.iter().map(String::as_str).collect();
    // Each node with its first and last label.
    let mut level: Vec<(TaxonomyNode, &str, &str)> = labels
        .iter()
        .map(|label| (TaxonomyNode::from(&**label), &**label, &**label))
        .collect();
    while level.len() > fanout {
        let mut above = Vec::with_capacity(level.len().div_ceil(fanout));
        let mut nodes = level.into_iter();
        while nodes.len() > 0 {
            let size = group_size(nodes.len(), fanout, above.is_empty());
            let group: Vec<_> = nodes.by_ref().take(size).collect();
            let ends = group.first().zip(group.last());
            let Some((first, last)) = ends.map(|(one, other)| (one.1, other.2)) else {
                break;
            };
            if let [_] = group.as_slice() {
                above.extend(group);
                continue;
            }
            let label = format!("{first}{TO}{last}");
            let label = free_label(&label, '.', |label| leaves.contains(label));
            let children = group.into_iter().map(|(node, ..)| node).collect();
            above.push((TaxonomyNode { label, children }, first, last));
        }
        level = above;
    }
    TaxonomyNode {
        label: free_label("*", '*', |label| leaves.contains(label)),
        children: level.into_iter().map(|(node, ..)| node).collect(),
    }
}
