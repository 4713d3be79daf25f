//! Cells of set-valued columns: how they are parsed as sets and compared with the raw sets.

use std::borrow::Cow;

use pais_core::schema::items;
use pais_core::table::{Form, ReleasedColumn, SetColumn};
use pais_core::taxonomy::{MinimumLevels, NodeId, Tree};

/// A raw set-valued column, before any item is hidden or generalized.
#[derive(Clone, Copy, Debug)]
pub struct OriginalSet<'a> {
    /// The raw sets.
    pub column: &'a SetColumn,
    /// The node that each item is pre-generalized to; `None` without pre-generalization.
    pub minimum_levels: Option<&'a MinimumLevels>,
}

/// A key that is equal for equal cells of a column. Sets are equal if they have the same items,
/// in any order and with any repetition.
pub(super) fn key<'t>(column: &ReleasedColumn, cell: &'t str) -> Cow<'t, str> {
    let Form::Set { separator } = column.form else {
        return cell.into();
    };
    let mut found: Vec<&str> = items(cell, separator).collect();
    if found.is_sorted_by(|one, other| one < other) {
        return cell.into();
    }
    found.sort_unstable();
    found.dedup();
    found.join(separator.encode_utf8(&mut [0; 4])).into()
}

/// The nodes of a released set's items; `None` if an item is not a label of the tree.
#[derive(Clone, Debug)]
pub(super) struct ReleasedSet(Option<Vec<NodeId>>);

impl ReleasedSet {
    /// Parses a cell.
    pub(super) fn parse(cell: &str, separator: char, tree: &Tree) -> Self {
        Self(items(cell, separator).map(|item| tree.find(item)).collect())
    }

    /// Whether all items are labels of the tree.
    pub(super) fn is_parsed(&self) -> bool {
        self.0.is_some()
    }

    /// The nodes; none if an item is not a label of the tree.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().flatten().copied()
    }

    /// Whether each item is exactly the pre-generalized node of an item of the raw set. Without
    /// pre-generalization a method may choose labels, and each item is an item of the raw set or
    /// an ancestor of one below the root.
    pub(super) fn is_subset(&self, raw: &[u32], original: OriginalSet) -> bool {
        let tree = &original.column.tree;
        self.all(|item| match original.minimum_levels {
            Some(levels) => raw.iter().any(|&leaf| levels.level_of(leaf) == item),
            None => {
                let covers = |&leaf: &u32| is_at_or_above(tree, item, tree.leaf(leaf));
                item != NodeId::ROOT && raw.iter().any(covers)
            }
        })
    }

    /// Whether each item is the pre-generalized node of an item of the raw set, or an ancestor
    /// of it. The root gives no information, so it is also true of the empty set.
    pub(super) fn is_true(&self, raw: &[u32], original: OriginalSet) -> bool {
        let tree = &original.column.tree;
        self.all(|item| {
            let covers = |&leaf: &u32| is_at_or_above(tree, item, original.pre_generalized(leaf));
            item == NodeId::ROOT || raw.iter().any(covers)
        })
    }

    fn all(&self, condition: impl Fn(NodeId) -> bool) -> bool {
        let items = self.0.as_ref();
        items.is_some_and(|items| items.iter().all(|&item| condition(item)))
    }
}

impl OriginalSet<'_> {
    /// The node that an item is pre-generalized to; its leaf without pre-generalization.
    pub(super) fn pre_generalized(&self, leaf: u32) -> NodeId {
        match self.minimum_levels {
            Some(minimum_levels) => minimum_levels.level_of(leaf),
            None => self.column.tree.leaf(leaf),
        }
    }
}

/// Whether `upper` is `lower` or an ancestor of it. Levels are compared too, because the nodes of
/// a chain have the same leaves.
pub(super) fn is_at_or_above(tree: &Tree, upper: NodeId, lower: NodeId) -> bool {
    let (upper, lower) = (tree.node(upper), tree.node(lower));
    upper.level >= lower.level
        && upper.first_leaf <= lower.first_leaf
        && lower.end_leaf <= upper.end_leaf
}
