//! Made hierarchies as a release shows them: with labels that follow from its own rows and from what
//! is declared.
//!
//! A release is searched in the hierarchies of all raw rows. What is drawn there from a suppressed
//! value alone, such as the end of the outermost range, the length of a mask or the mark of a prefix,
//! is drawn again from the values of the released rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::trees::{MASKS, Values};
use super::{DEFAULT_BELOW, Schema, SchemaColumn, balanced};
use crate::definition::{ColumnRole, GeneratedHierarchy, TaxonomyNode};
use crate::table::{ReleasedTable, Table};
use crate::taxonomy::{Interval, MISSING_LABEL, NodeId, SUPPRESSED_LABEL, Tree, TreeLimits};

/// The leaf of values that no row of a release can have, because its labels would be drawn differently: a
/// Unicode private-use character, so that no value is equal.
const UNRELEASED: &str = "\u{e000}";

/// What is released of a made hierarchy.
#[derive(Clone, Debug, Default)]
pub struct ReleasedLeaves<'a> {
    /// Number of released rows of each leaf.
    pub rows: Vec<u64>,
    /// The labels of the column.
    pub labels: BTreeSet<&'a str>,
}

impl Schema {
    /// The schema with the made hierarchies drawn again from what is released of them, by column; other
    /// columns stay.
    ///
    /// # Errors
    /// A sentence for a hierarchy that cannot be drawn.
    pub fn redrawn(
        &self,
        released: &BTreeMap<Box<str>, ReleasedLeaves<'_>>,
    ) -> Result<Self, String> {
        let mut schema = self.clone();
        for spec in &mut schema.columns {
            let (Some(released), Some(made)) = (released.get(&spec.name), spec.made.clone()) else {
                continue;
            };
            let drawn = if spec.is_balanced() {
                spec.draw_labels(released)
            } else {
                let values = spec.leaf_values(&released.rows);
                spec.make_tree(&made, &values, TreeLimits::default())
            };
            drawn.map_err(|detail| spec.unmade(&detail))?;
        }
        Ok(schema)
    }

    /// The schema with the hierarchies that are made from the raw rows, with the labels of a table
    /// that was released of them, as [`SchemaColumn::with_labels`].
    ///
    /// # Errors
    /// As [`Self::with_made_hierarchies`].
    pub fn with_hierarchies_of(
        &self,
        raw: &Table,
        released: &ReleasedTable,
    ) -> Result<Self, String> {
        let mut schema = self.with_made_hierarchies(raw)?;
        let lost = (raw.rows as u64).saturating_sub(released.rows as u64);
        let stored = schema.columns.iter_mut();
        let stored = stored.filter(|spec| spec.role != ColumnRole::Identifier);
        for (spec, column) in stored.zip(&raw.columns) {
            let (Some(shown), true) = (released.column(&spec.name), spec.has_made_tree()) else {
                continue;
            };
            let mut rows = vec![0; spec.tree.as_ref().map_or(0, |tree| tree.leaf_count())];
            for (value, of_value) in spec.values_of(column) {
                if let Some(leaf) = spec.leaf(&value) {
                    rows[leaf as usize] += of_value;
                }
            }
            let least = rows.iter().map(|rows: &u64| rows.saturating_sub(lost));
            let least: Vec<u64> = least.collect();
            let drawn = spec.with_labels(&rows, &least, &shown.shown_labels());
            let drawn = drawn.map_err(|detail| spec.unmade(&detail))?;
            let is_drawn =
                |tree: &Arc<Tree>| !drawn.tree.as_ref().is_some_and(|it| Arc::ptr_eq(it, tree));
            let searched = spec.tree.take().filter(is_drawn);
            *spec = SchemaColumn { searched, ..drawn };
        }
        Ok(schema)
    }
}

impl SchemaColumn {
    /// Whether the column has a tree that was made from the values of a table.
    pub fn has_made_tree(&self) -> bool {
        self.made.is_some() && self.tree.is_some()
    }

    /// Whether the column's tree is made from the values of a table, and these are not known yet.
    pub fn awaits_made_tree(&self) -> bool {
        self.made.is_some() && self.tree.is_none()
    }

    /// The number of the leaf with this label, or else of the leaf of the values that the tree does not
    /// distinguish; `None` without either.
    pub fn leaf_of_label(&self, label: &str) -> Option<u32> {
        let tree = self.tree.as_deref()?;
        let unreleased = || tree.leaf_number(UNRELEASED);
        tree.leaf_number(label).or_else(unreleased)
    }

    /// Gives the column the tree of a release of its balanced tree.
    fn draw_labels(&mut self, released: &ReleasedLeaves<'_>) -> Result<(), String> {
        let root = self.balanced(&released.rows);
        let root = root.and_then(|it| it.root(&released.labels));
        (self.tree, self.ranges) = (None, None);
        // Without values there is nothing to generalize.
        root.map_or(Ok(()), |root| self.set_tree(&root))
    }

    /// The column's balanced tree; `rows` has the number of released rows of each leaf.
    fn balanced(&self, rows: &[u64]) -> Option<balanced::Released<'_>> {
        let tree = self.tree.as_deref().filter(|_| self.is_balanced())?;
        balanced::Released::new(tree, self.kind, rows)
    }

    /// The tree of a balanced column in which the labels of a release are found; `None` for other columns,
    /// and for labels of no tree.
    pub(crate) fn balanced_with_labels(&self, labels: &BTreeSet<&str>) -> Option<Arc<Tree>> {
        let tree = self.tree.as_deref().filter(|_| self.is_balanced())?;
        let mut column = self.clone();
        let root = balanced::with_labels(tree, self.kind, labels)?;
        column.set_tree(&root).ok()?;
        column.tree
    }

    /// The leaves that rows have, each with their number.
    fn leaf_values(&self, rows: &[u64]) -> Values {
        let Some(tree) = self.tree.as_deref() else {
            return Values::new();
        };
        let leaves = (0..tree.leaf_count() as u32).zip(rows);
        let leaves = leaves.map(|(leaf, &rows)| (&tree.node(tree.leaf(leaf)).label, rows));
        let present = leaves.filter(|(label, rows)| *rows > 0 && &***label != MISSING_LABEL);
        present
            .map(|(label, rows)| (label.to_string(), rows))
            .collect()
    }

    /// What takes the place of each of these labels, which the column's made tree has, in the tree of
    /// `drawn`: the column with its tree drawn again, where the leaves have `rows` released rows.
    ///
    /// In a release with the label of rare values, a value has this label if few released rows have
    /// it.
    pub fn relabelled(
        &self,
        drawn: &Self,
        rows: &[u64],
        labels: &BTreeSet<&str>,
    ) -> BTreeMap<Box<str>, Box<str>> {
        let Some(tree) = self.tree.as_deref() else {
            return BTreeMap::new();
        };
        if let Some(balanced) = self.balanced(rows) {
            return balanced.relabelled(labels);
        }
        let relabelling = Relabelling {
            made: self.made.as_ref(),
            tree,
            drawn: drawn.tree.as_deref(),
            rows,
            has_inner: have_inner(tree, labels),
        };
        let pairs = labels.iter().filter_map(|label| {
            let new = relabelling.of(tree.find(label)?)?;
            Some(((*label).into(), new.into()))
        });
        pairs.collect()
    }

    /// The column with a tree over all raw values in which each of these labels of a release is found,
    /// as far as there is one. The leaves of the column's made tree have `rows` raw rows, of which at
    /// least `least` are released.
    ///
    /// Values that no released row can have, because the labels would be others, are one leaf.
    ///
    /// # Errors
    /// A sentence for a hierarchy that cannot be drawn.
    pub fn with_labels(
        &self,
        rows: &[u64],
        least: &[u64],
        labels: &BTreeSet<&str>,
    ) -> Result<Self, String> {
        let (Some(made), Some(tree)) = (&self.made, self.tree.as_deref()) else {
            return Ok(self.clone());
        };
        let has_labels = |tree: &Tree| {
            let is_known = |label: &&str| {
                [MISSING_LABEL, SUPPRESSED_LABEL].contains(label) || tree.find(label).is_some()
            };
            labels.iter().all(is_known)
        };
        let is_lost = |leaf: u32| least.get(leaf as usize) == Some(&0);
        // A label that is equal to a lost value may be that of others.
        let is_doubtful = |label: &&str| tree.leaf_number(label).is_some_and(is_lost);
        let is_doubtful = labels.iter().any(is_doubtful);
        // Suppression decides which values are rare, whatever the labels are.
        let is_of_rare = matches!(made, GeneratedHierarchy::Rare { .. }) && rows != least;
        // The one range of all rows is the outermost one of the release, whatever it is in this tree.
        let is_of_ranges = matches!(made, GeneratedHierarchy::Ranges { .. });
        let only = labels.first().filter(|_| is_of_ranges && labels.len() == 1);
        let outermost = only.filter(|label| *tree.node(NodeId::ROOT).label != ***label);
        let mut found = self.clone();
        if self.is_balanced() {
            if let Some(mut root) = balanced::with_labels(tree, self.kind, labels) {
                cover_missing(&mut root, outermost.copied());
                let mut other = self.clone();
                if other.set_tree(&root).is_ok() && other.tree.as_deref().is_some_and(has_labels) {
                    found = other;
                }
            }
        } else if !has_labels(tree) || is_doubtful || is_of_rare || outermost.is_some() {
            let values = self.leaf_values(rows);
            let least = |value: &str| {
                let leaf = tree.leaf_number(value);
                leaf.and_then(|leaf| least.get(leaf as usize))
                    .copied()
                    .unwrap_or(0)
            };
            for drawn in drawn_otherwise(made, &values, labels, least) {
                let Some(mut root) = self.draw(made, &drawn, TreeLimits::default())? else {
                    continue;
                };
                if drawn.len() < values.len() {
                    let label = UNRELEASED.to_owned();
                    let children = Vec::new();
                    root.children.push(TaxonomyNode { label, children });
                }
                if let GeneratedHierarchy::Ranges { .. } = made {
                    join_ranges(&mut root, labels);
                    cover_missing(&mut root, outermost.copied());
                }
                let mut other = self.clone();
                if other.set_tree(&root).is_ok() && other.tree.as_deref().is_some_and(has_labels) {
                    found = other;
                    break;
                }
            }
        }
        found.add_suppressed_root(labels);
        Ok(found)
    }

    /// Other tools write `*` for a suppressed cell, whatever the root is.
    fn add_suppressed_root(&mut self, labels: &BTreeSet<&str>) {
        let Some(tree) = self.tree.as_deref() else {
            return;
        };
        if labels.contains(SUPPRESSED_LABEL) && tree.find(SUPPRESSED_LABEL).is_none() {
            let mut former = tree.definition();
            if tree.missing_leaf().is_none() {
                former.children.push(MISSING_LABEL.into());
            }
            let root = TaxonomyNode {
                label: SUPPRESSED_LABEL.to_owned(),
                children: vec![former],
            };
            let limits = TreeLimits::default();
            if let Ok(tree) = Tree::with_missing_below(&root, limits, limits.depth) {
                // `?` is the last leaf, without a range.
                self.tree = Some(tree.into());
            }
        }
    }

    /// The tree that recipients of a release with these labels see: the labels, and those above them.
    /// `None` where the labels need none, or there is no tree.
    ///
    /// It does not show which values are rare: only raw rows tell. It shows no prefixes and masks above values
    /// if none is released, not even through the order of the values.
    pub fn shown_tree(&self, labels: &BTreeSet<&str>) -> Option<TaxonomyNode> {
        if matches!(self.made, Some(GeneratedHierarchy::Ranges { .. })) {
            return None;
        }
        let tree = self.tree.as_deref()?;
        let mut root = above(tree, labels, NodeId::ROOT)?;
        if self.is_spelled() && !have_inner(tree, labels) {
            root.children = leaves(root.children);
            root.children
                .sort_by(|one, other| one.label.cmp(&other.label));
        }
        if let Some(GeneratedHierarchy::Rare { .. }) = self.made {
            let children = std::mem::take(&mut root.children);
            for mut child in children {
                let below = std::mem::take(&mut child.children);
                if labels.contains(child.label.as_str()) {
                    root.children.push(child);
                }
                root.children.extend(below);
            }
            root.children
                .sort_by(|one, other| one.label.cmp(&other.label));
        }
        Some(root)
    }

    /// Whether labels are parts of values, with a mark in place of the rest: if no such label is shown, their
    /// length and mark would reveal hidden values.
    fn is_spelled(&self) -> bool {
        matches!(
            self.made,
            Some(
                GeneratedHierarchy::Prefix { .. }
                    | GeneratedHierarchy::MaskLeft
                    | GeneratedHierarchy::MaskRight
            )
        )
    }

    /// Sorts labels of the column's made tree from left to right, but those of rare and other values by their
    /// text: the order of the tree would reveal which are rare. Labels that are not in the tree come last.
    pub fn sort_labels(&self, labels: &mut [String]) {
        let is_rare = matches!(self.made, Some(GeneratedHierarchy::Rare { .. }));
        if is_rare {
            labels.sort_unstable();
        }
        if let Some(tree) = self.tree.as_deref() {
            let place = |label: &str| match tree.find(label) {
                Some(_) if is_rare => NodeId::ROOT,
                Some(node) => node,
                None => NodeId(u32::MAX),
            };
            labels.sort_by_key(|label| place(label));
        }
    }
}

/// Whether one of the labels is that of a node between the root and the leaves.
fn have_inner(tree: &Tree, labels: &BTreeSet<&str>) -> bool {
    labels.iter().any(|label| {
        let node = tree.find(label).map(|node| tree.node(node));
        node.is_some_and(|node| node.parent.is_some() && !node.children.is_empty())
    })
}

/// The nodes without children in these subtrees, from left to right.
fn leaves(nodes: Vec<TaxonomyNode>) -> Vec<TaxonomyNode> {
    let of_node = |node: TaxonomyNode| {
        if node.children.is_empty() {
            vec![node]
        } else {
            leaves(node.children)
        }
    };
    nodes.into_iter().flat_map(of_node).collect()
}

/// The part of a subtree that is one of the labels or above one; `None` if there is none.
fn above(tree: &Tree, labels: &BTreeSet<&str>, id: NodeId) -> Option<TaxonomyNode> {
    let node = tree.node(id);
    let children = node.children.iter();
    let children: Vec<TaxonomyNode> = children
        .filter_map(|&child| above(tree, labels, child))
        .collect();
    let is_kept = !children.is_empty() || labels.contains(&*node.label);
    is_kept.then(|| TaxonomyNode {
        label: node.label.to_string(),
        children,
    })
}

/// From the labels of a made tree to those of the tree that is drawn again.
struct Relabelling<'a> {
    made: Option<&'a GeneratedHierarchy>,
    tree: &'a Tree,
    /// `None` where every released cell is missing.
    drawn: Option<&'a Tree>,
    /// Number of released rows of each leaf.
    rows: &'a [u64],
    /// Whether a label between the root and the leaves is released.
    has_inner: bool,
}

impl<'a> Relabelling<'a> {
    /// The label in place of that of a node; `None` if no released row has a value below it.
    fn of(&self, id: NodeId) -> Option<&'a str> {
        let node = self.tree.node(id);
        if node.label.as_ref() == MISSING_LABEL {
            return Some(&node.label);
        }
        let Some(drawn) = self.drawn else {
            return node.parent.is_none().then_some(SUPPRESSED_LABEL);
        };
        if node.parent.is_none() {
            return Some(&drawn.node(NodeId::ROOT).label);
        }
        match self.made {
            Some(GeneratedHierarchy::Ranges { .. }) => return Some(&node.label),
            Some(GeneratedHierarchy::Rare { below }) => {
                return self.of_rare(id, below.unwrap_or(DEFAULT_BELOW));
            }
            _ if node.children.is_empty() => return Some(&node.label),
            _ => {}
        }
        let path = path(drawn, drawn.find(&self.leaf_below(id)?)?);
        let depth = self.tree.to_root(id).count() - 1;
        let new = path.get(depth).copied()?;
        Some(&drawn.node(new).label)
    }

    fn of_rare(&self, id: NodeId, below: u64) -> Option<&'a str> {
        let (tree, drawn) = (self.tree, self.drawn?);
        let node = tree.node(id);
        let of_leaf = self.rows.get(node.first_leaf as usize).copied();
        let is_leaf = node.children.is_empty();
        if is_leaf && (!self.has_inner || of_leaf.is_some_and(|rows| rows >= below)) {
            return Some(&node.label);
        }
        // The node of rare values, or a value that is rare among the released rows.
        let leaf = drawn.find(&self.leaf_below(id)?)?;
        let parent = drawn.node(leaf).parent?;
        Some(&drawn.node(parent).label)
    }

    /// The label of a released leaf at or below a node.
    fn leaf_below(&self, id: NodeId) -> Option<Box<str>> {
        let node = self.tree.node(id);
        let mut leaves = node.first_leaf..node.end_leaf;
        let leaf = leaves.find(|&leaf| self.rows.get(leaf as usize).is_some_and(|&it| it > 0))?;
        Some(self.tree.node(self.tree.leaf(leaf)).label.clone())
    }
}

/// The nodes from the root to a node.
fn path(tree: &Tree, id: NodeId) -> Vec<NodeId> {
    let mut path: Vec<NodeId> = tree.to_root(id).collect();
    path.reverse();
    path
}

/// The raw values that released rows can have if the hierarchy was drawn from other values than all
/// of them, most likely first.
fn drawn_otherwise(
    made: &GeneratedHierarchy,
    values: &Values,
    labels: &BTreeSet<&str>,
    least: impl Fn(&str) -> u64,
) -> Vec<Values> {
    let only = |is_possible: &dyn Fn(&str) -> bool| -> Values {
        let possible = values.iter().filter(|(value, _)| is_possible(value));
        possible
            .map(|(value, &rows)| (value.clone(), rows))
            .collect()
    };
    match made {
        GeneratedHierarchy::Prefix { .. } => {
            let marks = (1..=values.len()).map(|length| "*".repeat(length));
            let drawn = marks.map(|mark| only(&|value| !value.ends_with(&mark)));
            drawn
                .take_while(|drawn| drawn.len() < values.len())
                .collect()
        }
        GeneratedHierarchy::MaskRight | GeneratedHierarchy::MaskLeft => {
            let lengths = labels.iter().map(|label| label.chars().count());
            let width = lengths.max().unwrap_or(0);
            let fits =
                |mask: char, value: &str| !value.contains(mask) && value.chars().count() <= width;
            let masks = MASKS.iter();
            masks
                .map(|&mask| only(&|value| fits(mask, value)))
                .collect()
        }
        GeneratedHierarchy::Rare { .. } => {
            // A value that is not shown may have lost rows, and be rare among those released.
            let counts = values.iter().map(|(value, &rows)| {
                let is_shown = labels.contains(value.as_str());
                let rows = if is_shown { rows } else { least(value) };
                (value.clone(), rows)
            });
            let counts: Values = counts.collect();
            // A label of rare values is not that of a value that released rows have.
            let is_of_rare = |label: &str| label.trim_matches(['(', ')']) == "rare";
            let is_lost = |label: &str| values.contains_key(label) && least(label) == 0;
            let others = labels
                .iter()
                .filter(|label| is_of_rare(label) && is_lost(label));
            let mut drawn: Vec<Values> = others
                .map(|label| {
                    let mut counts = counts.clone();
                    counts.remove(*label);
                    counts
                })
                .collect();
            drawn.push(counts);
            drawn
        }
        GeneratedHierarchy::Ranges { widths, .. } => {
            let widest = widths.as_deref().and_then(<[f64]>::last).copied();
            vec![with_ends(values, labels, widest.unwrap_or_default())]
        }
        _ => Vec::new(),
    }
}

/// The values with further ones in the outermost of these ranges: the root over a single range has a
/// second one, which the raw numbers need not reach.
fn with_ends(values: &Values, labels: &BTreeSet<&str>, widest: f64) -> Values {
    let mut values = values.clone();
    let numbers = values
        .keys()
        .filter_map(|value| super::trees::position(value));
    let numbers: Vec<f64> = numbers.collect();
    let is_near = |number: f64| {
        numbers
            .iter()
            .any(|other| (number - other).abs() <= 2.0 * widest)
    };
    let ranges = labels.iter().filter_map(|label| Interval::parse(label));
    let ends = ranges.flat_map(|range| [range.lo + widest / 2.0, range.hi - widest / 2.0]);
    let ends: Vec<String> = ends
        .filter(|end| is_near(*end))
        .map(|end| end.to_string())
        .collect();
    for end in ends {
        values.entry(end).or_default();
    }
    values
}

/// Puts missing cells below the node with the outermost label of a release.
fn cover_missing(node: &mut TaxonomyNode, outermost: Option<&str>) {
    if outermost == Some(node.label.as_str()) && !node.children.is_empty() {
        node.children.push(MISSING_LABEL.into());
        return;
    }
    for child in &mut node.children {
        cover_missing(child, outermost);
    }
}

/// Joins the parts of the root that one of the labels covers under that label.
fn join_ranges(root: &mut TaxonomyNode, labels: &BTreeSet<&str>) {
    let ends = |node: &TaxonomyNode| Interval::parse(&node.label);
    for label in labels {
        let Some(range) = Interval::parse(label).filter(|_| root.label != *label) else {
            continue;
        };
        let is_part = |node: &TaxonomyNode| ends(node).is_some_and(|part| range.encloses(&part));
        let Some(first) = root.children.iter().position(is_part) else {
            continue;
        };
        let parts = root.children[first..]
            .iter()
            .take_while(|node| is_part(node));
        let end = first + parts.count();
        let lo = ends(&root.children[first]).map(|part| part.lo);
        let hi = ends(&root.children[end - 1]).map(|part| part.hi);
        // One part alone has the label itself.
        if end - first > 1 && lo.zip(hi) == Some((range.lo, range.hi)) {
            let joined = root.children.splice(first..end, []).collect();
            let joined = TaxonomyNode {
                label: (*label).to_owned(),
                children: joined,
            };
            root.children.insert(first, joined);
        }
    }
}
