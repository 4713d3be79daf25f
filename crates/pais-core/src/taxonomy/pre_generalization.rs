//! Pre-generalization (2014 paper, Section 4): the value that stands for each leaf before any
//! method begins, and below which none goes.

use hashbrown::HashMap;
use thiserror::Error;

use crate::definition::PreGeneralization;
use crate::definition::json::escape;
use crate::definition::TaxonomyNode;

use super::{NodeId, Tree};

/// A pre-generalization that does not fit its tree. Labels are not told: those of a column
/// without a taxonomy are raw values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PreGeneralizationError {
    /// A key of `values` that is no level.
    #[error("the keys of `values` are levels, whole numbers from 0 on")]
    NoLevel {
        /// The key.
        key: String,
    },
    /// A level above that of the root.
    #[error("the column's tree has the levels 0 to {height}, and this one is beyond")]
    BeyondHeight {
        /// The key of `values`; `None` for `level` itself.
        key: Option<String>,
        /// Level of the root.
        height: u32,
    },
    /// A value that is no leaf of the tree.
    #[error("this value is no leaf of the column's tree")]
    UnknownValue {
        /// The key of `values`.
        key: String,
        /// Its place there.
        index: usize,
    },
    /// A value with two levels, or with one twice.
    #[error("this value is designated twice")]
    Twice {
        /// The key of `values`.
        key: String,
        /// Its place there.
        index: usize,
    },
}

impl PreGeneralizationError {
    /// RFC 6901 pointer below the column's description.
    pub fn pointer(&self) -> String {
        match self {
            Self::NoLevel { key } | Self::BeyondHeight { key: Some(key), .. } => {
                format!("/values/{}", escape(key))
            }
            Self::BeyondHeight { key: None, .. } => "/level".to_owned(),
            Self::UnknownValue { key, index } | Self::Twice { key, index } => {
                format!("/values/{}/{index}", escape(key))
            }
        }
    }
}

/// *PGD\[A\]* and *PGD\[A, ℓ\]* (Section 4.1) brought to a tree: the node that stands for each
/// leaf, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinimumLevels(Vec<NodeId>);

impl MinimumLevels {
    /// Every leaf stands for itself, as without a pre-generalization.
    pub fn leaves(tree: &Tree) -> Self {
        Self(
            (0..tree.leaf_count() as u32)
                .map(|leaf| tree.leaf(leaf))
                .collect(),
        )
    }

    /// Brings a description to its tree. In an unbalanced tree a leaf stands as its highest
    /// ancestor whose level does not exceed the one designated.
    ///
    /// # Errors
    /// For a level or a value that the tree does not have, and a value designated twice.
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
                let leaf = tree.leaf_number(value);
                let leaf =
                    leaf.ok_or_else(|| PreGeneralizationError::UnknownValue { key: key(), index })?;
                if levels[leaf as usize].replace(level).is_some() {
                    return Err(PreGeneralizationError::Twice { key: key(), index });
                }
            }
        }
        let floor = |(leaf, level): (usize, Option<u32>)| {
            let level = level.unwrap_or(description.level);
            let mut node = tree.leaf(leaf as u32);
            // Levels only grow on the way up.
            while let Some(parent) = tree.node(node).parent
                && tree.node(parent).level <= level
            {
                node = parent;
            }
            node
        };
        Ok(Self(levels.into_iter().enumerate().map(floor).collect()))
    }

    /// The node that stands for a leaf.
    #[inline]
    pub fn level_of(&self, leaf: u32) -> NodeId {
        self.0[leaf as usize]
    }

    /// The tree as it is left for an engine that generalizes along one cut, with the number of
    /// its leaf for each leaf of the whole tree. Its leaves are the minimum_levels; NCP is measured
    /// against the whole tree still. Where a floor lies above others they become its siblings,
    /// so that what stands for some leaves below a node does not stand for the others.
    ///
    /// `None` when the root is a floor above others: nothing is left for them to be siblings
    /// under.
    pub fn pruned(&self, tree: &Tree) -> Option<(Tree, Vec<u32>)> {
        let mut is_floor = vec![false; tree.nodes().len()];
        for floor in &self.0 {
            is_floor[floor.index()] = true;
        }
        let mut standing = prune(tree, NodeId::ROOT, &is_floor);
        if standing.len() > 1 {
            return None;
        }
        let definition = standing.pop()?;
        let pruned = Tree::pruned(&definition, |label| {
            tree.find(label).map_or(0.0, |node| tree.ncp(node))
        });
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

/// Checks the levels of a description for a tree whose root has the level `height`; all that
/// can be checked where the leaves are not known yet.
///
/// # Errors
/// For what is no level, or beyond the root's.
pub fn check_levels(
    height: u32,
    description: &PreGeneralization,
) -> Result<(), PreGeneralizationError> {
    if description.level > height {
        return Err(PreGeneralizationError::BeyondHeight { key: None, height });
    }
    for key in description.values.keys() {
        if level(key)? > height {
            let key = Some(key.clone());
            return Err(PreGeneralizationError::BeyondHeight { key, height });
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

/// What is left of a subtree: nothing below a floor, and its minimum_levels as siblings where it is
/// itself one above others.
fn prune(tree: &Tree, id: NodeId, is_floor: &[bool]) -> Vec<TaxonomyNode> {
    let node = tree.node(id);
    let label = node.label.to_string();
    let below = node.children.iter();
    let mut children: Vec<TaxonomyNode> = below
        .flat_map(|&child| prune(tree, child, is_floor))
        .collect();
    if is_floor[id.index()] {
        children.push(TaxonomyNode {
            label,
            children: Vec::new(),
        });
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

    /// The diseases of Table 1 with an unbalanced branch beside.
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
    fn a_leaf_stands_as_its_highest_ancestor_within_the_level() {
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
    fn what_the_tree_does_not_have_is_pointed_at() {
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
            MinimumLevels::new(&tree, &description).unwrap().pruned(&tree)
        };
        let (left, map) = pruned(json!({"level": 2, "values": {"0": ["k", "n"]}})).unwrap();
        // K stands for l alone beside k, M for m and o beside n: each pair is siblings now.
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
