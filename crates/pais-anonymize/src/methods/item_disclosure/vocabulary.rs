//! The items of a set-valued column in the form in which they may be disclosed: pre-generalized,
//! in the order of their labels.

use pais_core::table::SetColumn;
use pais_core::taxonomy::{MinimumLevels, NodeId};

/// The items of a column. Items with the same label after pre-generalization are one item.
pub(super) struct Vocabulary<'a> {
    column: &'a SetColumn,
    /// Item of each leaf.
    item_of: Vec<u32>,
    /// By item, ascending: the number of an item is the rank of its label.
    labels: Vec<Box<str>>,
    /// NCP of each item's label.
    ncp: Vec<f64>,
}

impl<'a> Vocabulary<'a> {
    /// The items of a column. `minimum_levels` is its pre-generalization: the lowest node that may be
    /// disclosed for each leaf.
    pub(super) fn new(column: &'a SetColumn, minimum_levels: Option<&MinimumLevels>) -> Self {
        let tree = &column.tree;
        let floor = |leaf: u32| match minimum_levels {
            Some(minimum_levels) => minimum_levels.level_of(leaf),
            None => tree.leaf(leaf),
        };
        let node_of: Vec<NodeId> = (0..tree.leaf_count() as u32).map(floor).collect();
        let mut nodes = node_of.clone();
        nodes.sort_unstable_by(|&a, &b| tree.node(a).label.cmp(&tree.node(b).label));
        nodes.dedup();
        let mut number = vec![0u32; tree.nodes().len()];
        for (item, node) in nodes.iter().enumerate() {
            number[node.index()] = item as u32;
        }
        Self {
            column,
            item_of: node_of.iter().map(|node| number[node.index()]).collect(),
            ncp: nodes.iter().map(|&node| tree.ncp(node)).collect(),
            labels: nodes
                .iter()
                .map(|&node| tree.node(node).label.clone())
                .collect(),
        }
    }

    /// Number of items.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// NCP of an item's label, from 0 to 1.
    pub(super) fn ncp(&self, item: u32) -> f64 {
        self.ncp[item as usize]
    }

    /// Appends a row's items, ascending and without repetition.
    pub(super) fn push_row(&self, row: usize, items: &mut Vec<u32>) {
        let start = items.len();
        let leaves = self.column.of_row(row).iter();
        items.extend(leaves.map(|&leaf| self.item_of[leaf as usize]));
        items[start..].sort_unstable();
        let mut kept = start;
        for at in start..items.len() {
            if kept == start || items[kept - 1] != items[at] {
                items[kept] = items[at];
                kept += 1;
            }
        }
        items.truncate(kept);
    }

    /// What a row keeps with these disclosed items, ascending: 1 - NCP of the label, summed over
    /// its raw items.
    pub(super) fn kept(&self, row: u32, disclosed: &[u32]) -> f64 {
        let leaves = self.column.of_row(row as usize).iter();
        let items = leaves.map(|&leaf| self.item_of[leaf as usize]);
        let shown = items.filter(|item| disclosed.binary_search(item).is_ok());
        shown.map(|item| 1.0 - self.ncp(item)).sum()
    }

    /// Whether several raw items of a row may be the same item.
    pub(super) fn joins_items(&self) -> bool {
        self.labels.len() < self.item_of.len()
    }

    /// Number of items in the raw rows, before pre-generalization: the denominator of NCP.
    pub(super) fn raw_items(&self) -> u64 {
        let rows = 0..self.column.rows();
        rows.map(|row| self.column.of_row(row).len() as u64).sum()
    }

    /// The text of a cell with these items, ascending: their labels, joined by the separator.
    pub(super) fn cell(&self, items: &[u32]) -> String {
        let labels: Vec<&str> = items
            .iter()
            .map(|&item| &*self.labels[item as usize])
            .collect();
        labels.join(self.column.separator.encode_utf8(&mut [0; 4]))
    }
}
