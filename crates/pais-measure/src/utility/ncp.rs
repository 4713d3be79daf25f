//! NCP, the normalized certainty penalty: the share of the domain that a released value covers
//! (Xu et al., KDD'06, Section 2.2; used by the 2014 paper, Sections 3 and 6).
//!
//! Domains are those that the schema declares, or that the released labels show. Raw rows are not
//! available here, so that the result discloses nothing that the release does not.

use std::collections::{BTreeMap, BTreeSet};

use pais_core::definition::{ColumnKind, TaxonomyNode};
use pais_core::schema::SchemaColumn;
use pais_core::table::{Form, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL, NodeId, SUPPRESSED_LABEL, Scale, Tree};

use super::node_ncp::node_ncp;

/// The domain that the labels of a released column are measured in.
enum LabelDomain<'a> {
    /// A declared taxonomy, with the NCP of each node.
    Taxonomy(&'a Tree, Vec<f64>),
    /// The labels of a hierarchy that is made from values, with the NCP of each.
    Shown(BTreeMap<String, f64>),
    /// The width of a declared domain, or of the range of the released labels.
    Interval(f64, Scale),
    /// No taxonomy: `*` above values that nobody declared.
    Flat,
}

impl<'a> LabelDomain<'a> {
    fn new(spec: &'a SchemaColumn, labels: &BTreeSet<&str>) -> Self {
        let missing = labels.contains(MISSING_LABEL);
        match spec.tree() {
            Some(_) if spec.has_made_tree() && spec.kind() == ColumnKind::Numeric => {
                let (lo, hi) = range(labels, Scale::Number);
                Self::Interval(hi - lo, Scale::Number)
            }
            Some(tree) if spec.has_made_tree() => {
                let mut ncp = BTreeMap::new();
                if let Some(root) = spec.shown_tree(labels) {
                    divide(&root, 1.0, usize::from(missing), &mut ncp);
                }
                let is_value = |label: &str| tree.leaf_number(label).is_some();
                for (label, ncp) in &mut ncp {
                    if is_value(label) {
                        *ncp = 0.0;
                    }
                }
                Self::Shown(ncp)
            }
            Some(tree) => Self::Taxonomy(tree, taxonomy_ncp(tree, spec.kind(), missing)),
            None if spec.has_grown_intervals() => {
                let scale = spec.scale();
                let (lo, hi) = spec.domain().unwrap_or_else(|| range(labels, scale));
                Self::Interval((hi - lo).max(0.0), scale)
            }
            None => Self::Flat,
        }
    }

    /// NCP of a label, from 0 to 1. A label that is not in the domain has NCP 1, because it gives
    /// no information about the value.
    fn of_label(&self, label: &str) -> f64 {
        match self {
            _ if label == MISSING_LABEL => 0.0,
            Self::Taxonomy(tree, ncp) => tree.find(label).map_or(1.0, |node| ncp[node.index()]),
            Self::Shown(ncp) => ncp.get(label).copied().unwrap_or(1.0),
            Self::Interval(width, scale) => match Interval::parse_on(label, *scale) {
                Some(_) if *width <= 0.0 => 0.0,
                Some(interval) => (interval.width() / width).clamp(0.0, 1.0),
                None => 1.0,
            },
            Self::Flat => f64::from(u8::from(label == SUPPRESSED_LABEL)),
        }
    }
}

/// NCP of each node of a declared taxonomy. Where the release shows `?`, it is one of the leaves
/// and belongs to the root.
fn taxonomy_ncp(tree: &Tree, kind: ColumnKind, shows_missing: bool) -> Vec<f64> {
    let mut ncp = node_ncp(tree, kind);
    if kind != ColumnKind::Numeric && shows_missing && tree.find(MISSING_LABEL).is_none() {
        let leaves = tree.leaf_count() as f64 + 1.0;
        for (node, ncp) in tree.nodes().iter().zip(&mut ncp) {
            if !node.children.is_empty() {
                *ncp = f64::from(node.leaf_count()) / leaves;
            }
        }
        ncp[NodeId::ROOT.index()] = 1.0;
    }
    ncp
}

/// The NCP of a node and of those below it: the whole share for the root, divided equally among the children
/// that the release shows and `others` in addition to those of this node. How many values are below a label is
/// known only from raw rows.
fn divide(node: &TaxonomyNode, share: f64, others: usize, ncp: &mut BTreeMap<String, f64>) {
    ncp.insert(node.label.clone(), share);
    let parts = (node.children.len() + others) as f64;
    for child in &node.children {
        divide(child, share / parts, 0, ncp);
    }
}

/// The least and the greatest end of the intervals among labels; (0, 0) without any.
fn range(labels: &BTreeSet<&str>, scale: Scale) -> (f64, f64) {
    let intervals = labels
        .iter()
        .filter_map(|label| Interval::parse_on(label, scale));
    intervals
        .map(|interval| (interval.lo, interval.hi))
        .reduce(|(lo, hi), (least, most)| (lo.min(least), hi.max(most)))
        .unwrap_or((0.0, 0.0))
}

/// The cells of a released column.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellCounts<'a> {
    /// Number of rows of each text of the dictionary.
    pub(super) by_code: &'a [u64],
    /// Number of rows, with those of empty cells.
    pub(super) rows: u64,
    /// Rows that were suppressed.
    pub(super) suppressed: u64,
}

/// Mean NCP of a released quasi-identifier, from 0 to 1; 0 if there are no rows.
///
/// A suppressed row counts 1, because its value is lost. A set counts the mean of its items, and 1
/// without any, because nothing of it is released; see [`super::sets`] for removed items.
pub(super) fn of_column(released: &ReleasedColumn, spec: &SchemaColumn, cells: CellCounts) -> f64 {
    let empty = cells.rows - cells.by_code.iter().sum::<u64>();
    let rows = cells.rows + cells.suppressed;
    let shown = released.column.dictionary.iter().zip(cells.by_code);
    let shown = shown.filter(|(_, rows)| **rows > 0);
    let mut shown: Vec<(&str, u64)> = shown.map(|(cell, &rows)| (&**cell, rows)).collect();
    // The order of the rows is random, and a sum depends on its order.
    shown.sort_unstable();
    let domain = LabelDomain::new(spec, &released.labels_with_rows(cells.by_code));
    let of_cell = |cell: &str| match released.form {
        Form::Set { .. } if cell.is_empty() => 1.0,
        Form::Set { separator } => {
            let items: Vec<f64> = cell
                .split(separator)
                .map(|item| domain.of_label(item))
                .collect();
            items.iter().sum::<f64>() / items.len() as f64
        }
        _ => domain.of_label(cell),
    };
    let losses = shown
        .iter()
        .map(|&(cell, rows)| of_cell(cell) * rows as f64);
    // An empty cell counts 1 like a suppressed one.
    let lost = (empty + cells.suppressed) as f64;
    match rows {
        0 => 0.0,
        rows => (losses.sum::<f64>() + lost) / rows as f64,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{CellCounts, of_column};
    use crate::test_data::schema;
    use pais_core::schema::Schema;
    use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn};

    fn spec(column: Value) -> Arc<Schema> {
        let mut column = column;
        column["name"] = "q".into();
        column["role"] = "quasi_identifier".into();
        schema(json!([column]))
    }

    fn released(cells: &[&str], codes: &[u32], form: Form) -> ReleasedColumn {
        ReleasedColumn {
            name: "q".into(),
            form,
            column: Column {
                dictionary: cells.iter().map(|&cell| cell.into()).collect(),
                codes: codes.to_vec(),
            },
            missing: Vec::new(),
        }
    }

    /// Mean NCP of a column with one row for each of these cells.
    fn ncp(column: &Value, cells: &[&str]) -> f64 {
        let codes: Vec<u32> = (0..cells.len() as u32).collect();
        let form = if column["kind"] == "set" {
            Form::Set { separator: '|' }
        } else {
            Form::Generalized
        };
        let schema = spec(column.clone());
        let column = released(cells, &codes, form);
        with_suppressed(&column, &schema, 0)
    }

    fn with_suppressed(column: &ReleasedColumn, schema: &Schema, suppressed: u64) -> f64 {
        let cells = CellCounts {
            by_code: &column.column.row_counts(),
            rows: column.column.codes.len() as u64,
            suppressed,
        };
        of_column(column, &schema.columns[0], cells)
    }

    fn job() -> Value {
        json!({"label": "any", "children": [
            {"label": "Blue", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
            {"label": "White", "children": [{"label": "Doctor"}]}]})
    }

    #[test]
    fn a_label_of_a_taxonomy_has_its_share_of_the_declared_leaves() {
        let column = json!({"taxonomy": job()});
        for (label, expected) in [
            ("any", 1.0),
            ("Blue", 2.0 / 3.0),
            ("White", 1.0 / 3.0),
            ("Mover", 0.0),
            ("unknown", 1.0),
        ] {
            assert_eq!(ncp(&column, &[label]), expected, "{label}");
        }
    }

    #[test]
    fn a_missing_cell_is_a_leaf_where_the_release_shows_it() {
        let column = json!({"taxonomy": job()});
        assert_eq!(ncp(&column, &["Blue", "?"]), (2.0 / 4.0 + 0.0) / 2.0);
        assert_eq!(ncp(&column, &["any", "?"]), 0.5);
    }

    #[test]
    fn an_interval_is_measured_in_the_declared_domain_or_in_the_released_range() {
        let declared = json!({"kind": "numeric", "domain": [0, 100]});
        for (label, expected) in [
            ("[0,100]", 1.0),
            ("[0,25)", 0.25),
            ("60", 0.0),
            ("?", 0.0),
            ("old", 1.0),
        ] {
            assert_eq!(ncp(&declared, &[label]), expected, "{label}");
        }
        let undeclared = json!({"kind": "numeric"});
        assert_eq!(ncp(&undeclared, &["[10,15)", "[15,30]"]), 0.5);
        assert_eq!(ncp(&undeclared, &["[10,15)"]), 1.0);
        assert_eq!(ncp(&undeclared, &["7"]), 0.0);
        assert_eq!(ncp(&undeclared, &["*"]), 1.0);
    }

    #[test]
    fn a_leaf_range_loses_information() {
        let column = json!({"kind": "numeric", "taxonomy": {"label": "[0,100]", "children": [
            {"label": "[0,20)"}, {"label": "[20,100]"}]}});
        assert_eq!(ncp(&column, &["[0,20)"]), 0.2);
        assert_eq!(ncp(&column, &["[0,20)", "?"]), 0.1);
        assert_eq!(ncp(&column, &["[0,100]"]), 1.0);
    }

    #[test]
    fn the_root_of_a_flat_tree_loses_everything() {
        assert_eq!(ncp(&json!({}), &["*"]), 1.0);
        assert_eq!(ncp(&json!({}), &["F", "M", "?"]), 0.0);
    }

    #[test]
    fn a_set_has_the_mean_of_its_items() {
        let column = json!({"kind": "set", "taxonomy": job()});
        // 2/3 and 0 of two items, 1 of the empty set.
        let expected = (1.0 / 3.0 + 1.0) / 2.0;
        assert_eq!(ncp(&column, &["Blue|Doctor", ""]), expected);
        let flat = json!({"kind": "set"});
        assert_eq!(ncp(&flat, &["*|a", "a|b"]), 0.25);
    }

    #[test]
    fn a_suppressed_row_has_an_ncp_of_1() {
        let schema = spec(json!({"taxonomy": job()}));
        let column = released(
            &["White", "Mover"],
            &[0, 1, 1, NULL_CODE],
            Form::Generalized,
        );
        let mean = |suppressed| with_suppressed(&column, &schema, suppressed);
        let lost = 1.0 / 3.0 + 1.0;
        assert!((mean(0) - lost / 4.0).abs() < 1e-12);
        assert!((mean(2) - (lost + 2.0) / 6.0).abs() < 1e-12);
        let empty = released(&[], &[], Form::Generalized);
        let mean = |suppressed| with_suppressed(&empty, &schema, suppressed);
        assert_eq!((mean(0), mean(3)), (0.0, 1.0));
    }
}
