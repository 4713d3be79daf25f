//! Pre-generalization (2014 paper, Section 4): the node to which each leaf is generalized before
//! any method starts. No method publishes a node below it.

use hashbrown::HashMap;
use thiserror::Error;

use crate::canonical_text::canonical_text;
use crate::definition::PreGeneralization;
use crate::definition::TaxonomyNode;
use crate::definition::json::escape;

use super::{MOST_LABEL_BYTES, NodeId, Tree};

/// A pre-generalization that does not fit its tree. Messages do not contain labels, because the
/// labels of a column without a taxonomy are raw values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PreGeneralizationError {
    /// A key of `values` that is not a level.
    #[error("this key of `values` is not a level; expected a whole number, 0 or greater")]
    NoLevel {
        /// The key.
        key: String,
    },
    /// A level above that of the root.
    #[error("this level is above the root; the column's tree has the levels 0 to {height}")]
    BeyondHeight {
        /// The key of `values`; `None` for `level` itself.
        key: Option<String>,
        /// Level of the root.
        height: u32,
    },
    /// A value that is not a leaf of the tree.
    #[error("this value is not a leaf of the column's tree")]
    UnknownValue {
        /// The key of `values`.
        key: String,
        /// Index of the value in the key's list.
        index: usize,
    },
    /// A value that is too long.
    #[error("a listed value has at most 1,024 bytes")]
    LongValue {
        /// The key of `values`.
        key: String,
        /// Index of the value in the key's list.
        index: usize,
    },
    /// A value that is listed under two levels, or twice under one level.
    #[error("this value is listed twice; list it under one level only")]
    ListedTwice {
        /// The key of `values`.
        key: String,
        /// Index of the value in the key's list.
        index: usize,
    },
}

impl PreGeneralizationError {
    /// RFC 6901 pointer to the fault, relative to the column's description.
    pub fn pointer(&self) -> String {
        match self {
            Self::NoLevel { key } | Self::BeyondHeight { key: Some(key), .. } => {
                format!("/values/{}", escape(key))
            }
            Self::BeyondHeight { key: None, .. } => "/level".to_owned(),
            Self::UnknownValue { key, index }
            | Self::LongValue { key, index }
            | Self::ListedTwice { key, index } => {
                format!("/values/{}/{index}", escape(key))
            }
        }
    }
}

/// *PGD\[A\]* and *PGD\[A, ℓ\]* (Section 4.1) resolved for a tree: for each leaf, by leaf number,
/// the node to which it is generalized (its floor).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinimumLevels(Vec<NodeId>);

impl MinimumLevels {
    /// Every leaf is its own floor, as without a pre-generalization.
    pub fn leaves(tree: &Tree) -> Self {
        Self(
            (0..tree.leaf_count() as u32)
                .map(|leaf| tree.leaf(leaf))
                .collect(),
        )
    }

    /// Resolves a description for its tree. The floor of a leaf is its highest ancestor whose level
    /// does not exceed the requested level; in an unbalanced tree that can be a lower level.
    ///
    /// # Errors
    /// For a level or a value that the tree does not have, and for a value that is listed twice.
    pub fn new(
        tree: &Tree,
        description: &PreGeneralization,
    ) -> Result<Self, PreGeneralizationError> {
        check_levels(tree.node(NodeId::ROOT).level, description)?;
        let mut levels = vec![None; tree.leaf_count()];
        for (key, values) in &description.values {
            let level = level(key)?;
            for (index, value) in values.iter().enumerate() {
                let key = || key.clone();
                let leaf = tree.leaf_number(&canonical_text(value));
                let leaf =
                    leaf.ok_or_else(|| PreGeneralizationError::UnknownValue { key: key(), index })?;
                if levels[leaf as usize].replace(level).is_some() {
                    return Err(PreGeneralizationError::ListedTwice { key: key(), index });
                }
            }
        }
        let floor = |(leaf, level): (usize, Option<u32>)| {
            let level = level.unwrap_or(description.level);
            let mut node = tree.leaf(leaf as u32);
            // Levels increase from a node to its parent.
            while let Some(parent) = tree.node(node).parent
                && tree.node(parent).level <= level
            {
                node = parent;
            }
            node
        };
        Ok(Self(levels.into_iter().enumerate().map(floor).collect()))
    }

    /// The floors of a cut with these labels: the labels and, where the cut has none, the highest nodes without
    /// a label of it. Of two labels on one path, the higher one counts.
    pub fn of_cut(tree: &Tree, labels: &[String]) -> Self {
        let mut is_label = vec![false; tree.nodes().len()];
        let mut has_label = is_label.clone();
        for node in labels.iter().filter_map(|label| tree.find(label)) {
            is_label[node.index()] = true;
            for above in tree.to_root(node) {
                has_label[above.index()] = true;
            }
        }
        let floor = |leaf: u32| {
            let leaf = tree.leaf(leaf);
            let path = || tree.to_root(leaf);
            let labelled = path().filter(|it| is_label[it.index()]).last();
            let open = || path().take_while(|it| !has_label[it.index()]).last();
            labelled.or_else(open).unwrap_or(leaf)
        };
        Self((0..tree.leaf_count() as u32).map(floor).collect())
    }

    /// The higher of the two floors of each leaf.
    pub fn joined(&self, other: &Self, tree: &Tree) -> Self {
        let higher = |(&one, &other): (&NodeId, &NodeId)| {
            let leaves = |node| tree.node(node).leaf_count();
            if leaves(other) > leaves(one) || tree.node(one).parent == Some(other) {
                other
            } else {
                one
            }
        };
        Self(self.0.iter().zip(&other.0).map(higher).collect())
    }

    /// The same floors, except that these leaves, given by leaf number, get the parent of their floor. A floor
    /// below the root stays, because the root says nothing.
    pub fn with_parents(&self, tree: &Tree, of: impl Fn(u32) -> bool) -> Self {
        let raised = |(leaf, &floor): (usize, &NodeId)| {
            let parent = tree.node(floor).parent.filter(|&it| it != NodeId::ROOT);
            parent.filter(|_| of(leaf as u32)).unwrap_or(floor)
        };
        Self(self.0.iter().enumerate().map(raised).collect())
    }

    /// The same floors for the leaves of another tree, which has leaves and other nodes of this one under new
    /// labels. `renamed` gives the label of a floor there. A leaf that this tree does not have is its own
    /// floor.
    pub fn in_tree(
        &self,
        tree: &Tree,
        other: &Tree,
        renamed: impl Fn(&str) -> Option<NodeId>,
    ) -> Self {
        let floor = |leaf: u32| {
            let own = other.leaf(leaf);
            let known = tree.leaf_number(&other.node(own).label);
            let floor = known.map(|leaf| &*tree.node(self.level_of(leaf)).label);
            floor.and_then(&renamed).unwrap_or(own)
        };
        Self((0..other.leaf_count() as u32).map(floor).collect())
    }

    /// The nodes of another tree that are equally many steps above the same leaves. A leaf that this tree does
    /// not have is its own floor.
    pub fn as_far_above(&self, tree: &Tree, other: &Tree) -> Self {
        let floor = |leaf: u32| {
            let own = other.leaf(leaf);
            let known = tree.leaf_number(&other.node(own).label);
            let steps = known.map_or(0, |leaf| {
                let below = tree.to_root(tree.leaf(leaf));
                below
                    .take_while(|&node| node != self.level_of(leaf))
                    .count()
            });
            other.to_root(own).take(steps + 1).last().unwrap_or(own)
        };
        Self((0..other.leaf_count() as u32).map(floor).collect())
    }

    /// The floor of a leaf, given by leaf number.
    #[inline]
    pub fn level_of(&self, leaf: u32) -> NodeId {
        self.0[leaf as usize]
    }

    /// The tree pruned at the floors, for an engine that generalizes along one cut. Also returns,
    /// for each leaf of the whole tree, the number of its leaf in the pruned tree.
    ///
    /// The leaves of the pruned tree are the floors. Its NCP is still measured against the whole
    /// tree. If a floor is above other floors, these become its siblings, so that the floor of some
    /// leaves below a node does not also cover the other leaves below that node.
    ///
    /// `None` if the root is a floor and there are other floors below it: they would need a common
    /// parent with the root.
    pub fn pruned(&self, tree: &Tree) -> Option<(Tree, Vec<u32>)> {
        let mut is_floor = vec![false; tree.nodes().len()];
        for floor in &self.0 {
            is_floor[floor.index()] = true;
        }
        let mut kept = prune(tree, NodeId::ROOT, &is_floor);
        if kept.len() > 1 {
            return None;
        }
        let definition = kept.pop()?;
        let pruned = Tree::pruned(&definition, |label| {
            tree.find(label).map_or(0.0, |node| tree.ncp(node))
        })?;
        let mut numbers: HashMap<NodeId, u32> = HashMap::new();
        let mut number = |&floor: &NodeId| {
            let known = numbers.get(&floor).copied();
            known.or_else(|| {
                let leaf = pruned.leaf_number(&tree.node(floor).label)?;
                numbers.insert(floor, leaf);
                Some(leaf)
            })
        };
        let map = self.0.iter().map(&mut number).collect::<Option<_>>()?;
        Some((pruned, map))
    }
}

/// Checks the levels of a description for a tree whose root has the level `height`, and the lengths
/// of its values. This is all that can be checked before the leaves are known.
///
/// # Errors
/// For a key that is not a level, for a level above the root's, and for a value that is too long.
pub fn check_levels(
    height: u32,
    description: &PreGeneralization,
) -> Result<(), PreGeneralizationError> {
    if description.level > height {
        return Err(PreGeneralizationError::BeyondHeight { key: None, height });
    }
    for (key, values) in &description.values {
        if level(key)? > height {
            let key = Some(key.clone());
            return Err(PreGeneralizationError::BeyondHeight { key, height });
        }
        if let Some(index) = values.iter().position(|it| it.len() > MOST_LABEL_BYTES) {
            let key = key.clone();
            return Err(PreGeneralizationError::LongValue { key, index });
        }
    }
    Ok(())
}

fn level(key: &str) -> Result<u32, PreGeneralizationError> {
    let digits = key.bytes().all(|byte| byte.is_ascii_digit());
    let level = key.parse().ok().filter(|_| digits);
    level.ok_or_else(|| PreGeneralizationError::NoLevel {
        key: key.to_owned(),
    })
}

/// What remains of a subtree: nothing below a floor. If the root of the subtree is a floor above
/// other floors, all of them are returned as siblings.
fn prune(tree: &Tree, id: NodeId, is_floor: &[bool]) -> Vec<TaxonomyNode> {
    let node = tree.node(id);
    let label = node.label.to_string();
    let below = node.children.iter();
    let mut children: Vec<TaxonomyNode> = below
        .flat_map(|&child| prune(tree, child, is_floor))
        .collect();
    if is_floor[id.index()] {
        children.push(label.as_str().into());
        return children;
    }
    if children.is_empty() {
        return children;
    }
    vec![TaxonomyNode { label, children }]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MinimumLevels, PreGeneralizationError};
    use crate::definition::PreGeneralization;
    use crate::taxonomy::{Tree, TreeLimits};

    /// The diseases of Table 1, with an unbalanced branch added.
    fn tree() -> Tree {
        let root = json!({"label": "any", "children": [
            {"label": "K", "children": [{"label": "k"}, {"label": "l"}]},
            {"label": "M", "children": [
                {"label": "m"}, {"label": "N", "children": [{"label": "n"}, {"label": "o"}]}]},
            {"label": "z"}]});
        let limits = TreeLimits {
            leaves: 100,
            depth: 10,
        };
        Tree::new(&serde_json::from_value(root).unwrap(), limits).unwrap()
    }

    fn minimum_levels(description: Value) -> Result<Vec<String>, PreGeneralizationError> {
        let tree = tree();
        let description: PreGeneralization = serde_json::from_value(description).unwrap();
        let minimum_levels = MinimumLevels::new(&tree, &description)?;
        let label = |leaf| tree.node(minimum_levels.level_of(leaf)).label.to_string();
        Ok((0..tree.leaf_count() as u32).map(label).collect())
    }

    #[test]
    fn a_leaf_is_generalized_to_its_highest_ancestor_within_the_level() {
        // Levels: K 1, N 1, M 2, any 3.
        for (description, expected) in [
            (json!({}), "k l m n o z"),
            (json!({"level": 1}), "K K m N N z"),
            (json!({"level": 2}), "K K M M M z"),
            (json!({"level": 3}), "any any any any any any"),
            (
                json!({"level": 1, "values": {"0": ["k", "o"], "2": ["m"]}}),
                "k K M N o z",
            ),
        ] {
            assert_eq!(minimum_levels(description).unwrap().join(" "), expected);
        }
    }

    #[test]
    fn listed_values_are_compared_in_canonical_form() {
        let found = minimum_levels(json!({"values": {"1": [" k", "o\t"]}}));
        assert_eq!(found.unwrap().join(" "), "K l m n N z");
        let twice = minimum_levels(json!({"values": {"1": ["l", "l "]}}));
        assert_eq!(twice.unwrap_err().pointer(), "/values/1/1");
    }

    #[test]
    fn unknown_levels_and_values_are_reported_with_a_pointer() {
        for (description, pointer) in [
            (json!({"level": 4}), "/level"),
            (json!({"values": {"4": []}}), "/values/4"),
            (json!({"values": {"one": []}}), "/values/one"),
            (json!({"values": {"-1": []}}), "/values/-1"),
            (json!({"values": {"1": ["k", "K"]}}), "/values/1/1"),
            (
                json!({"values": {"0": ["k"], "1": ["l", "k"]}}),
                "/values/1/1",
            ),
            (json!({"values": {"1": ["l", "l"]}}), "/values/1/1"),
        ] {
            assert_eq!(minimum_levels(description).unwrap_err().pointer(), pointer);
        }
    }

    #[test]
    fn the_tree_is_pruned_at_the_floors() {
        let tree = tree();
        let pruned = |description: Value| {
            let description = serde_json::from_value(description).unwrap();
            MinimumLevels::new(&tree, &description)
                .unwrap()
                .pruned(&tree)
        };
        let (left, map) = pruned(json!({"level": 2, "values": {"0": ["k", "n"]}})).unwrap();
        // K now covers only l and is a sibling of k; M covers m and o, and N is a sibling of n.
        let labels: Vec<&str> = left.nodes().iter().map(|node| &*node.label).collect();
        assert_eq!(labels, ["any", "k", "K", "N", "n", "M", "z"]);
        assert_eq!(map, [0, 1, 3, 2, 3, 4]);
        for node in left.nodes() {
            let whole = tree.find(&node.label).unwrap();
            let id = left.find(&node.label).unwrap();
            assert_eq!(left.ncp(id), tree.ncp(whole), "{}", node.label);
        }
        let (root, map) = pruned(json!({"level": 3})).unwrap();
        assert_eq!((root.nodes().len(), map), (1, vec![0; 6]));
        assert!(pruned(json!({"level": 3, "values": {"0": ["k"]}})).is_none());
    }
}
