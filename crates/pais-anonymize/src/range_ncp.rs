//! NCP of the nodes of a taxonomy: by width where the labels are ranges of a numeric column, by
//! leaves otherwise.

use pais_core::definition::ColumnKind;
use pais_core::taxonomy::{Interval, NodeId, Tree};

/// NCP of each node of a column's taxonomy, from 0 to 1, by the index of the node.
///
/// - A range of a numeric column: its width divided by the width of the root. A leaf range loses
///   information too; a single number, and `?`, do not. All nodes of a root of width 0 have NCP 0.
/// - Any other node: its share of the leaves, 0 for a leaf (Xu et al., KDD'06, Section 2.2). In a
///   pruned tree it is measured in the tree that it was pruned from.
pub(crate) fn node_ncp(tree: &Tree, kind: ColumnKind) -> Vec<f64> {
    let nodes = 0..tree.nodes().len() as u32;
    if kind != ColumnKind::Numeric {
        return nodes.map(|node| tree.ncp(NodeId(node))).collect();
    }
    // A tree is only pruned below its root, so the label of the root is always the whole domain.
    let width = |node: u32| {
        let range = Interval::parse(&tree.node(NodeId(node)).label);
        range.map_or(0.0, |range| range.width())
    };
    let domain = width(NodeId::ROOT.0);
    let share = |node: u32| match domain > 0.0 {
        true => (width(node) / domain).clamp(0.0, 1.0),
        false => 0.0,
    };
    nodes.map(share).collect()
}

#[cfg(test)]
mod tests {
    use pais_core::definition::{ColumnKind, PreGeneralization};
    use pais_core::taxonomy::{MinimumLevels, Tree, TreeLimits};

    use super::node_ncp;

    fn tree(root: &str) -> Tree {
        let root = serde_json::from_str(root).unwrap();
        Tree::new(&root, TreeLimits::default()).unwrap()
    }

    /// Figure 2's tree of ages; the width of the domain is 98.
    const AGE: &str = r#"{"label": "[1,99]", "children": [
        {"label": "[1,60)", "children": [{"label": "[1,30)"}, {"label": "[30,60)"}]},
        {"label": "[60,99]"}, {"label": "?"}]}"#;

    fn of(tree: &Tree, kind: ColumnKind, label: &str) -> f64 {
        node_ncp(tree, kind)[tree.find(label).unwrap().index()]
    }

    #[test]
    fn ranges_are_measured_by_their_width() {
        let age = tree(AGE);
        for (label, width) in [
            ("[1,99]", 98.0),
            ("[1,60)", 59.0),
            ("[1,30)", 29.0),
            ("[30,60)", 30.0),
            ("[60,99]", 39.0),
            ("?", 0.0),
        ] {
            let ncp = of(&age, ColumnKind::Numeric, label);
            assert!((ncp - width / 98.0).abs() < 1e-12, "{label}: {ncp}");
        }
    }

    #[test]
    fn a_pruned_tree_is_measured_in_the_whole_one() {
        let age = tree(AGE);
        let description = PreGeneralization {
            level: 1,
            ..PreGeneralization::default()
        };
        let levels = MinimumLevels::new(&age, &description).unwrap();
        let (pruned, _) = levels.pruned(&age).unwrap();
        let ncp = of(&pruned, ColumnKind::Numeric, "[1,60)");
        assert!((ncp - 59.0 / 98.0).abs() < 1e-12);
        assert_eq!(of(&pruned, ColumnKind::Categorical, "[1,60)"), 0.5);
    }

    #[test]
    fn labels_that_are_no_ranges_are_measured_by_their_leaves() {
        let age = tree(AGE);
        assert_eq!(of(&age, ColumnKind::Categorical, "[1,60)"), 0.5);
        assert_eq!(of(&age, ColumnKind::Categorical, "[1,30)"), 0.0);
        let point = tree(r#"{"label": "5", "children": [{"label": "[5,5]"}]}"#);
        assert_eq!(node_ncp(&point, ColumnKind::Numeric), [0.0, 0.0]);
    }
}
