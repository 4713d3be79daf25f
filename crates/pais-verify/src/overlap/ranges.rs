//! The raw values that each label of a released column covers, as a range of numbers.

use pais_core::definition::ColumnKind;
use pais_core::schema::SchemaColumn;
use pais_core::table::codes::CodeRange;
use pais_core::taxonomy::{Interval, MISSING_LABEL, SUPPRESSED_LABEL, Tree};

use crate::classes::Values;

/// The numbers of the raw values that each label of a column covers, by its number; `None` for a column of
/// sets, and for one with a label that is not of its domain. Values that the same labels cover may share one
/// number.
///
/// Missing cells are a value of their own after all others. Only `?` and labels that cover every
/// other value cover it: the root of a taxonomy, and an interval that encloses the declared domain,
/// or all others where none is declared.
pub(super) fn label_ranges(values: &Values, spec: &SchemaColumn) -> Option<Vec<CodeRange>> {
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

fn of_node(tree: &Tree, label: &str) -> Option<CodeRange> {
    let leaves = tree.leaf_count() as u32;
    match tree.find(label) {
        Some(id) => {
            let node = tree.node(id);
            match node.parent {
                // The root covers missing cells too.
                None => Some(CodeRange::new(0, leaves)),
                Some(_) => Some(CodeRange::new(node.first_leaf, node.end_leaf - 1)),
            }
        }
        None => (label == MISSING_LABEL).then_some(CodeRange::new(leaves, leaves)),
    }
}

/// `*` also covers a value that no label names.
fn of_flat(labels: &[&str]) -> Vec<CodeRange> {
    let last = labels.len() as u32;
    let range = |(number, label): (u32, &&str)| match *label {
        SUPPRESSED_LABEL => CodeRange::new(0, last),
        _ => CodeRange::new(number, number),
    };
    (0..).zip(labels).map(range).collect()
}

/// Ends of intervals have odd numbers, and what lies between two of them has an even one.
fn of_intervals(labels: &[&str], spec: &SchemaColumn) -> Option<Vec<CodeRange>> {
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
        None => CodeRange::new(missing, missing),
        Some(interval) if interval.encloses(&outermost) => CodeRange::new(0, missing),
        Some(interval) if interval.closed => {
            CodeRange::new(number(interval.lo), number(interval.hi))
        }
        Some(interval) => CodeRange::new(number(interval.lo), number(interval.hi) - 1),
    };
    Some(intervals.iter().map(range).collect())
}
