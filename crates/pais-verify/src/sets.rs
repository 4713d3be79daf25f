//! Cells of set-valued columns: read as sets, and held against the raw ones.

use std::borrow::Cow;

use pais_core::table::{Form, ReleasedColumn, SetColumn};
use pais_core::taxonomy::{Floors, NodeId, Tree};

/// A set-valued column before anything of it was hidden or generalized.
#[derive(Clone, Copy, Debug)]
pub struct OriginalSet<'a> {
    /// The raw sets.
    pub column: &'a SetColumn,
    /// What stands for each item, where it was asked for.
    pub floors: Option<&'a Floors>,
}

/// The items of a cell; an empty cell has none.
pub(super) fn items(cell: &str, separator: char) -> impl Iterator<Item = &str> {
    cell.split(separator).filter(move |_| !cell.is_empty())
}

/// What makes two cells of a column equal: of a set its items, whatever their order and however
/// often they stand.
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

/// A released set by the nodes of its items; `None` where one is no label of the tree.
#[derive(Clone, Debug)]
pub(super) struct ReleasedSet(Option<Vec<NodeId>>);

impl ReleasedSet {
    /// Reads a cell.
    pub(super) fn read(cell: &str, separator: char, tree: &Tree) -> Self {
        Self(items(cell, separator).map(|item| tree.find(item)).collect())
    }

    /// Whether each item stands for one of the raw set, exactly as it was pre-generalized.
    pub(super) fn is_subset(&self, raw: &[u32], original: OriginalSet) -> bool {
        self.all(|item| raw.iter().any(|&leaf| original.standing(leaf) == item))
    }

    /// Whether each item is what stands for one of the raw set, or above it. The root says
    /// nothing, so it is true of the empty set too.
    pub(super) fn is_true(&self, raw: &[u32], original: OriginalSet) -> bool {
        let tree = &original.column.tree;
        self.all(|item| {
            let stands = |&leaf: &u32| is_at_or_above(tree, item, original.standing(leaf));
            item == NodeId::ROOT || raw.iter().any(stands)
        })
    }

    fn all(&self, holds: impl Fn(NodeId) -> bool) -> bool {
        let items = self.0.as_ref();
        items.is_some_and(|items| items.iter().all(|&item| holds(item)))
    }
}

impl OriginalSet<'_> {
    /// The node that stands for an item.
    fn standing(&self, leaf: u32) -> NodeId {
        match self.floors {
            Some(floors) => floors.of(leaf),
            None => self.column.tree.leaf(leaf),
        }
    }
}

/// Whether a node is another one or above it. Leaves alone would not tell the nodes of a chain
/// apart.
pub(super) fn is_at_or_above(tree: &Tree, upper: NodeId, lower: NodeId) -> bool {
    let (upper, lower) = (tree.node(upper), tree.node(lower));
    upper.level >= lower.level
        && upper.first_leaf <= lower.first_leaf
        && lower.end_leaf <= upper.end_leaf
}
