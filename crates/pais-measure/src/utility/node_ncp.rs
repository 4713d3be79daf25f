//! NCP of the nodes of a taxonomy, for the search and for the report.

use pais_core::definition::ColumnKind;
use pais_core::taxonomy::{Interval, MISSING_LABEL, NodeId, Tree};

/// NCP of each node of a column's taxonomy, by index, from 0 to 1 (Xu et al., KDD'06, Section 2.2):
///
/// - in a numeric column whose labels are ranges: the width of the range divided by the width of
///   the root's, leaves included, because a leaf range wider than a point loses information;
/// - otherwise the share of the leaves, 0 for a leaf; in a pruned tree the share in the tree that
///   it was pruned from;
/// - 0 for `?`, and in a domain without width.
pub fn node_ncp(tree: &Tree, kind: ColumnKind) -> Vec<f64> {
    let widths = match kind {
        ColumnKind::Numeric => range_widths(tree),
        _ => None,
    };
    // A pruned tree keeps its root, so the root's range is always the domain.
    match widths {
        Some(widths) => {
            let domain = widths.first().copied().unwrap_or(0.0);
            let share = |width: f64| if domain > 0.0 { width / domain } else { 0.0 };
            widths.into_iter().map(share).collect()
        }
        None => {
            let nodes = 0..tree.nodes().len() as u32;
            nodes.map(|node| tree.ncp(NodeId(node))).collect()
        }
    }
}

/// The width of each node's range, 0 for `?`; `None` if a label is no range.
fn range_widths(tree: &Tree) -> Option<Vec<f64>> {
    let width = |label: &str| match label {
        MISSING_LABEL => Some(0.0),
        label => Interval::parse(label).map(|range| range.width()),
    };
    let nodes = tree.nodes().iter();
    nodes.map(|node| width(&node.label)).collect()
}

#[cfg(test)]
mod tests {
    use pais_core::definition::{ColumnKind, PreGeneralization, TaxonomyNode};
    use pais_core::taxonomy::{MinimumLevels, Tree, TreeLimits};
    use serde_json::{Value, json};

    use super::node_ncp;

    fn tree(root: Value) -> Tree {
        let root: TaxonomyNode = serde_json::from_value(root).unwrap();
        Tree::new(&root, TreeLimits::default()).unwrap()
    }

    fn ages() -> Tree {
        tree(json!({"label": "[0,100]", "children": [
            {"label": "[0,20)"},
            {"label": "[20,100]", "children": [{"label": "[20,60)"}, {"label": "[60,100]"}]},
            {"label": "?"}]}))
    }

    /// The widths are 100, 20, 80, 40, 40 and none, of a domain of 100.
    #[test]
    fn a_range_loses_its_share_of_the_domain_width_even_as_a_leaf() {
        let found = node_ncp(&ages(), ColumnKind::Numeric);
        assert_eq!(found, [1.0, 0.2, 0.8, 0.4, 0.4, 0.0]);
    }

    /// As labels of categories they are four leaves, of which `[20,100]` covers two.
    #[test]
    fn a_category_loses_its_share_of_the_leaves_and_a_leaf_nothing() {
        let found = node_ncp(&ages(), ColumnKind::Categorical);
        assert_eq!(found, [1.0, 0.0, 0.5, 0.0, 0.0, 0.0]);
        let words = tree(json!({"label": "any", "children": [{"label": "1"}, {"label": "two"}]}));
        assert_eq!(node_ncp(&words, ColumnKind::Numeric), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_point_and_a_domain_without_width_lose_nothing() {
        let points = tree(json!({"label": "[0,4]", "children": [
            {"label": "[0,4)"}, {"label": "4"}]}));
        assert_eq!(node_ncp(&points, ColumnKind::Numeric), [1.0, 1.0, 0.0]);
        let point = tree(json!({"label": "7", "children": [{"label": "[7,7]"}]}));
        assert_eq!(node_ncp(&point, ColumnKind::Numeric), [0.0, 0.0]);
    }

    #[test]
    fn a_pruned_tree_keeps_the_ncp_of_the_whole_tree() {
        let prune = |tree: &Tree| {
            let description = PreGeneralization {
                level: 1,
                ..PreGeneralization::default()
            };
            let levels = MinimumLevels::new(tree, &description).unwrap();
            levels.pruned(tree).unwrap().0
        };
        let pruned = node_ncp(&prune(&ages()), ColumnKind::Numeric);
        assert_eq!(pruned, [1.0, 0.2, 0.8, 0.0]);
        let pruned = node_ncp(&prune(&ages()), ColumnKind::Categorical);
        assert_eq!(pruned, [1.0, 0.0, 0.5, 0.0]);
    }
}
