//! The raw values that each label of a released column covers, as a range of numbers.

use pais_core::definition::ColumnKind;
use pais_core::schema::SchemaColumn;
use pais_core::taxonomy::{Interval, MISSING_LABEL, Tree};

use crate::former::classes::Values;

/// The first and the last raw value that a label covers, by number. Values that the same labels
/// cover may have one number together.
pub(super) type LabelRange = (u32, u32);

/// The label that covers all values of a column without a taxonomy.
const ANY_LABEL: &str = "*";

/// The range of each label of a column, by its number; `None` for a column of sets, and for one with
/// a label that is not of its domain.
///
/// Missing cells are a value of their own after all others. Only `?` and labels that cover every
/// other value cover it: the root of a taxonomy, and an interval that encloses the declared domain,
/// or all others where none is declared.
pub(super) fn label_ranges(values: &Values, spec: &SchemaColumn) -> Option<Vec<LabelRange>> {
    // A set is matched by each of its items.
    if spec.kind() == ColumnKind::Set {
        return None;
    }
    let labels: Option<Vec<&str>> = (0..values.count() as u32)
        .map(|label| values.text(label))
        .collect();
    let labels = labels?;
    match (spec.tree(), spec.kind().scale()) {
        (Some(tree), _) => labels.iter().map(|label| of_node(tree, label)).collect(),
        (None, Some(_)) => of_intervals(&labels, spec),
        (None, None) => Some(of_flat(&labels)),
    }
}

fn of_node(tree: &Tree, label: &str) -> Option<LabelRange> {
    let leaves = tree.leaf_count() as u32;
    match tree.find(label) {
        Some(id) => {
            let node = tree.node(id);
            match node.parent {
                // The root covers missing cells too.
                None => Some((0, leaves)),
                Some(_) => Some((node.first_leaf, node.end_leaf - 1)),
            }
        }
        None => (label == MISSING_LABEL).then_some((leaves, leaves)),
    }
}

/// `*` also covers a value that no label names.
fn of_flat(labels: &[&str]) -> Vec<LabelRange> {
    let last = labels.len() as u32;
    let range = |(number, label): (u32, &&str)| match *label {
        ANY_LABEL => (0, last),
        _ => (number, number),
    };
    (0..).zip(labels).map(range).collect()
}

/// Ends of intervals have odd numbers, and what lies between two of them has an even one.
fn of_intervals(labels: &[&str], spec: &SchemaColumn) -> Option<Vec<LabelRange>> {
    let scale = spec.kind().scale()?;
    let intervals: Option<Vec<Option<Interval>>> = labels
        .iter()
        .map(|label| match *label {
            MISSING_LABEL => Some(None),
            label => Interval::parse_on(label, scale).map(Some),
        })
        .collect();
    let intervals = intervals?;
    let known = || intervals.iter().flatten();
    let mut ends: Vec<f64> = known().flat_map(|it| [it.lo, it.hi]).collect();
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let missing = 2 * ends.len() as u32 + 1;
    let outermost = match spec.domain() {
        Some((lo, hi)) => Interval::closed(lo, hi),
        None => Interval::closed(*ends.first().unwrap_or(&0.0), *ends.last().unwrap_or(&0.0)),
    };
    let outermost = outermost.on(scale);
    let number = |end: f64| 2 * ends.partition_point(|&other| other < end) as u32 + 1;
    let range = |interval: &Option<Interval>| match interval {
        None => (missing, missing),
        Some(interval) if interval.encloses(&outermost) => (0, missing),
        Some(interval) if interval.closed => (number(interval.lo), number(interval.hi)),
        Some(interval) => (number(interval.lo), number(interval.hi) - 1),
    };
    Some(intervals.iter().map(range).collect())
}
