//! Taxonomy trees. Leaves are numbered from left to right, so that every node is a range of leaves.

use hashbrown::HashMap;
use thiserror::Error;

use crate::canonical_text::canonical_text;
use crate::definition::TaxonomyNode;

use super::Interval;

/// The label of missing cells: a leaf that is the last child of the root. `missing` of
/// `ColumnDefinition` in `openapi/openapi.json` declares which cells are missing.
pub const MISSING_LABEL: &str = "?";

/// The label that other tools write for a suppressed cell, whatever the root of its tree is. It is also the root
/// of a column without a taxonomy.
pub const SUPPRESSED_LABEL: &str = "*";

/// Maximum number of bytes of a label of a tree that a user sends, and of any other value that a document lists.
/// A label is written in every row that has it, so its length is a factor of the size of a release.
pub const MOST_LABEL_BYTES: usize = 1_024;

/// Index of a node in its tree. The root is 0; parents come before their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The root of every tree.
    pub const ROOT: Self = Self(0);

    /// The id as an index into [`Tree::nodes`].
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique in the tree.
    pub label: Box<str>,
    /// `None` for the root.
    pub parent: Option<NodeId>,
    /// From left to right; empty for a leaf.
    pub children: Vec<NodeId>,
    /// Number of the first leaf below.
    pub first_leaf: u32,
    /// One past the number of the last leaf below.
    pub end_leaf: u32,
    /// 0 for a leaf, else 1 + the greatest level of the children (2014 paper, Section 4).
    pub level: u32,
}

impl Node {
    /// Number of leaves below; 1 for a leaf.
    pub fn leaf_count(&self) -> u32 {
        self.end_leaf - self.first_leaf
    }
}

/// What is wrong with a tree, and where. `path` is the child indices from the root to the node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    /// Labels must be unique.
    #[error("the label `{label}` occurs twice in the tree; give each node a unique label")]
    RepeatedLabel {
        /// The label. It may be reported because taxonomies are not raw data.
        label: String,
        /// Where the label occurs the second time.
        path: Vec<usize>,
    },
    /// A label must have text.
    #[error("a label is empty; every node needs one")]
    EmptyLabel {
        /// Where.
        path: Vec<usize>,
    },
    /// A label must be short.
    #[error("a label has more than 1,024 bytes; give the node a shorter one")]
    LongLabel {
        /// Where.
        path: Vec<usize>,
    },
    /// Only a leaf directly below the root can be the missing leaf.
    #[error("`?` means missing and can only be a leaf right below the root; rename this node")]
    ReservedLabel {
        /// Where.
        path: Vec<usize>,
    },
    /// A tree that is only a root generalizes nothing.
    #[error("the tree has no leaf below its root; give the root children")]
    NoChildren,
    /// A limit of the configuration.
    #[error("the tree has more than {limit} leaves (limits.taxonomy_leaves)")]
    TooManyLeaves {
        /// The limit.
        limit: usize,
    },
    /// A limit of the configuration.
    #[error("the tree is deeper than {limit} levels (limits.taxonomy_depth)")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
}

impl TreeError {
    /// RFC 6901 pointer to the fault, relative to the tree's root.
    pub fn pointer(&self) -> String {
        match self {
            Self::RepeatedLabel { path, .. }
            | Self::EmptyLabel { path }
            | Self::LongLabel { path }
            | Self::ReservedLabel { path } => path
                .iter()
                .map(|index| format!("/children/{index}"))
                .collect(),
            Self::NoChildren | Self::TooManyLeaves { .. } | Self::TooDeep { .. } => String::new(),
        }
    }
}

/// Limits for a tree that a user sends.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// Maximum number of leaves.
    pub leaves: usize,
    /// Maximum number of levels, including the root.
    pub depth: usize,
}

impl Default for TreeLimits {
    /// A million leaves, and the levels that a JSON document can nest.
    fn default() -> Self {
        Self {
            leaves: 1_000_000,
            depth: crate::definition::json::TREE_DEPTH,
        }
    }
}

/// A taxonomy: `nodes[0]` is the root, nodes in preorder, leaves numbered from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    nodes: Vec<Node>,
    leaves: Vec<NodeId>,
    by_label: HashMap<Box<str>, NodeId>,
    /// NCP of each node, measured in the tree that this one was pruned from; empty if this tree was
    /// not pruned.
    ncp: Vec<f64>,
}

impl Tree {
    /// Builds a tree from its JSON form. Labels are brought to the form of cells, without white
    /// space around them and in Unicode NFC.
    ///
    /// # Errors
    /// The first fault in preorder; [`TreeError::LongLabel`] only if there is no other.
    pub fn new(root: &TaxonomyNode, limits: TreeLimits) -> Result<Self, TreeError> {
        if root.children.is_empty() {
            return Err(TreeError::NoChildren);
        }
        Self::with_missing_below(root, limits, 1)
    }

    /// Builds a tree as [`Self::new`], in which the leaf `?` may be up to this many levels below the
    /// root: a made tree can have a root above that of its release.
    pub(crate) fn with_missing_below(
        root: &TaxonomyNode,
        limits: TreeLimits,
        levels: usize,
    ) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        tree.add(root, None, &mut Vec::new(), limits, levels)?;
        let is_long = |node: &Node| node.label.len() > MOST_LABEL_BYTES;
        match tree.nodes.iter().position(is_long) {
            Some(index) => Err(TreeError::LongLabel {
                path: tree.path(NodeId(index as u32)),
            }),
            None => Ok(tree),
        }
    }

    /// A node and those above it, up to the root.
    pub fn to_root(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<'_> {
        std::iter::successors(Some(id), |&node| self.node(node).parent)
    }

    /// The child indices from the root to a node.
    fn path(&self, id: NodeId) -> Vec<usize> {
        let index = |id: NodeId| {
            let siblings = &self.node(self.node(id).parent?).children;
            siblings.iter().position(|&sibling| sibling == id)
        };
        let mut path: Vec<usize> = self.to_root(id).filter_map(index).collect();
        path.reverse();
        path
    }

    /// Builds a part of another tree. `ncp` gives the NCP of a label in that other tree. A root
    /// without children is allowed. `None` if `root` is not a part of a tree.
    pub(super) fn pruned(root: &TaxonomyNode, ncp: impl Fn(&str) -> f64) -> Option<Self> {
        let limits = TreeLimits {
            leaves: usize::MAX,
            depth: usize::MAX,
        };
        let mut tree = Self::default();
        tree.add(root, None, &mut Vec::new(), limits, 1).ok()?;
        tree.ncp = tree.nodes.iter().map(|node| ncp(&node.label)).collect();
        Some(tree)
    }

    /// The flat tree of a column without a taxonomy: `*` above its values, in the given order.
    /// Values must be distinct and not `*`; ingest refuses `*` in such a column. A caller
    /// that has missing cells gives `?` as the last value.
    pub(crate) fn flat<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let root = Node {
            label: "*".into(),
            parent: None,
            children: Vec::new(),
            first_leaf: 0,
            end_leaf: 0,
            level: 1,
        };
        let mut tree = Self {
            nodes: vec![root],
            ..Self::default()
        };
        tree.by_label.insert("*".into(), NodeId::ROOT);
        for value in values {
            tree.push_leaf_below_root(value.into());
        }
        tree
    }

    fn add(
        &mut self,
        node: &TaxonomyNode,
        parent: Option<NodeId>,
        path: &mut Vec<usize>,
        limits: TreeLimits,
        missing_levels: usize,
    ) -> Result<NodeId, TreeError> {
        if path.len() >= limits.depth {
            return Err(TreeError::TooDeep {
                limit: limits.depth,
            });
        }
        let label = canonical_text(&node.label);
        if label.is_empty() {
            return Err(TreeError::EmptyLabel { path: path.clone() });
        }
        let may_be_missing = (1..=missing_levels).contains(&path.len()) && node.children.is_empty();
        if label == MISSING_LABEL && !may_be_missing {
            return Err(TreeError::ReservedLabel { path: path.clone() });
        }
        let id = NodeId(self.nodes.len() as u32);
        let label: Box<str> = label.into();
        if self.by_label.insert(label.clone(), id).is_some() {
            return Err(TreeError::RepeatedLabel {
                label: label.into(),
                path: path.clone(),
            });
        }
        let first_leaf = self.leaves.len() as u32;
        self.nodes.push(Node {
            label,
            parent,
            children: Vec::with_capacity(node.children.len()),
            first_leaf,
            end_leaf: first_leaf,
            level: 0,
        });
        if node.children.is_empty() {
            self.leaves.push(id);
            if self.leaves.len() > limits.leaves {
                return Err(TreeError::TooManyLeaves {
                    limit: limits.leaves,
                });
            }
        }
        for (index, child) in node.children.iter().enumerate() {
            path.push(index);
            let child = self.add(child, Some(id), path, limits, missing_levels)?;
            path.pop();
            let below = self.nodes[child.index()].level;
            let node = &mut self.nodes[id.index()];
            node.children.push(child);
            node.level = node.level.max(below + 1);
        }
        self.nodes[id.index()].end_leaf = self.leaves.len() as u32;
        Ok(id)
    }

    fn push_leaf_below_root(&mut self, label: Box<str>) {
        let id = NodeId(self.nodes.len() as u32);
        let leaf = self.leaves.len() as u32;
        self.by_label.insert(label.clone(), id);
        self.nodes.push(Node {
            label,
            parent: Some(NodeId::ROOT),
            children: Vec::new(),
            first_leaf: leaf,
            end_leaf: leaf + 1,
            level: 0,
        });
        self.leaves.push(id);
        let root = &mut self.nodes[0];
        root.children.push(id);
        root.end_leaf = leaf + 1;
    }

    /// The same tree with the leaf `?` added as the last child of the root, unless it has one.
    pub fn with_missing_leaf(&self) -> Self {
        let mut tree = self.clone();
        if tree.missing_leaf().is_none() {
            tree.push_leaf_below_root(MISSING_LABEL.into());
        }
        tree
    }

    /// Number of the leaf `?`; `None` if the tree has no such leaf.
    pub fn missing_leaf(&self) -> Option<u32> {
        let node = self.node(self.find(MISSING_LABEL)?);
        node.children.is_empty().then_some(node.first_leaf)
    }

    /// All nodes, in preorder.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Number of leaves.
    pub fn leaf_count(&self) -> usize {
        self.leaves.len()
    }

    /// The node of a leaf by its number.
    pub fn leaf(&self, number: u32) -> NodeId {
        self.leaves[number as usize]
    }

    /// The lowest common ancestor of two leaves; `first` must not be greater than `last`.
    #[inline]
    pub fn lowest_common_ancestor(&self, first: u32, last: u32) -> NodeId {
        let mut id = self.leaf(first);
        while self.node(id).end_leaf <= last {
            match self.node(id).parent {
                Some(parent) => id = parent,
                None => break,
            }
        }
        id
    }

    /// The node with this label; `None` if there is none.
    pub fn find(&self, label: &str) -> Option<NodeId> {
        self.by_label.get(label).copied()
    }

    /// The nodes whose labels are in a cell, between separators.
    pub fn find_all<C: FromIterator<NodeId>>(&self, cell: &str, separator: char) -> C {
        let labels = cell.split(separator);
        labels.filter_map(|label| self.find(label)).collect()
    }

    /// The number of the leaf with this label; `None` if there is none.
    pub fn leaf_number(&self, label: &str) -> Option<u32> {
        let node = self.node(self.find(label)?);
        node.children.is_empty().then_some(node.first_leaf)
    }

    /// Number of levels, including the root.
    pub fn depth(&self) -> usize {
        let mut depths = vec![1usize; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            // Only the root has no parent, and parents come before their children.
            let parent = node.parent.map_or(0, NodeId::index);
            depths[index] = depths[parent] + 1;
        }
        depths.into_iter().max().unwrap_or(1)
    }

    /// NCP of a node: its fraction of the leaves, 0 for a leaf (Xu et al., KDD'06, Section 2.2). In
    /// a pruned tree it is the NCP of the whole tree.
    pub fn ncp(&self, id: NodeId) -> f64 {
        if let Some(&ncp) = self.ncp.get(id.index()) {
            return ncp;
        }
        let node = self.node(id);
        if node.children.is_empty() || self.leaves.len() <= 1 {
            return 0.0;
        }
        f64::from(node.leaf_count()) / self.leaves.len() as f64
    }

    /// The leaves as intervals, without `?`, in leaf order: ascending, and no number is in two. Every label
    /// except `?` must be a range, and the children of each node must partition it from left to right.
    ///
    /// # Errors
    /// A sentence that names the invalid label.
    pub(crate) fn ranges(&self) -> Result<Vec<Interval>, String> {
        let mut ranges: Vec<Option<Interval>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            if &*node.label == MISSING_LABEL {
                ranges.push(None);
                continue;
            }
            let range = Interval::parse(&node.label).ok_or_else(|| {
                format!(
                    "the label `{}` is not a range; expected one such as [30,60) or [60,99]",
                    node.label
                )
            })?;
            ranges.push(Some(range));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(range) = ranges[index] else { continue };
            let children: Vec<Interval> = node
                .children
                .iter()
                .filter_map(|child| ranges[child.index()])
                .collect();
            let (Some(first), Some(last)) = (children.first(), children.last()) else {
                continue;
            };
            let joined = children
                .windows(2)
                .all(|pair| pair[0].hi == pair[1].lo && !pair[0].closed && pair[0].lo < pair[1].lo);
            if first.lo != range.lo || last.hi != range.hi || last.closed != range.closed || !joined
            {
                return Err(format!(
                    "the children of `{}` do not cover it from left to right without gap or overlap",
                    node.label
                ));
            }
        }
        Ok(self
            .leaves
            .iter()
            .filter_map(|leaf| ranges[leaf.index()])
            .collect())
    }

    /// The JSON form.
    pub fn definition(&self) -> TaxonomyNode {
        self.definition_of(NodeId::ROOT)
    }

    fn definition_of(&self, id: NodeId) -> TaxonomyNode {
        let node = self.node(id);
        TaxonomyNode {
            label: node.label.to_string(),
            children: node
                .children
                .iter()
                .map(|&child| self.definition_of(child))
                .collect(),
        }
    }
}
