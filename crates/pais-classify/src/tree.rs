//! A tree, and what it says of examples.

use crate::examples::Examples;
use crate::{grow, pruning};

/// What a node asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Split {
    /// The node of each value of a nominal attribute that occurred, by value.
    Values {
        position: usize,
        branches: Vec<(u32, u32)>,
    },
    /// The nodes of codes up to `last_low`, above it, and of `missing`, the code of missing values;
    /// `None` where no example was.
    Threshold {
        position: usize,
        last_low: u32,
        missing: u32,
        branches: [Option<u32>; 3],
    },
}

impl Split {
    pub(crate) fn position(&self) -> usize {
        match self {
            Self::Values { position, .. } | Self::Threshold { position, .. } => *position,
        }
    }

    /// The node of a code; `None` for a code that no example had.
    fn branch(&self, code: u32) -> Option<u32> {
        match self {
            Self::Values { branches, .. } => {
                let found = branches.binary_search_by_key(&code, |(value, _)| *value);
                found.ok().map(|at| branches[at].1)
            }
            Self::Threshold {
                last_low,
                missing,
                branches,
                ..
            } => branches[threshold_branch(code, *last_low, *missing)],
        }
    }

    /// The nodes below.
    pub(crate) fn children(&self) -> impl Iterator<Item = u32> {
        let (values, parts): (&[(u32, u32)], &[Option<u32>]) = match self {
            Self::Values { branches, .. } => (branches, &[]),
            Self::Threshold { branches, .. } => (&[], branches),
        };
        let values = values.iter().map(|(_, node)| *node);
        values.chain(parts.iter().filter_map(|node| *node))
    }
}

/// The branch of a code at a threshold: 0 up to it, 1 above it, 2 missing.
pub(crate) fn threshold_branch(code: u32, last_low: u32, missing: u32) -> usize {
    match code {
        code if code == missing => 2,
        code => usize::from(code > last_low),
    }
}

/// A node with the examples that reached it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The most frequent class, the first of equals.
    pub(crate) class: u32,
    /// Weight of the examples.
    pub(crate) weight: u64,
    /// Weight of those of other classes.
    pub(crate) errors: u64,
    /// `None` for a leaf.
    pub(crate) split: Option<Split>,
}

/// A decision tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Each after its parent; the first one is the root.
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// A tree grown on examples and pruned. `None` if there are no examples, and when stopped.
    ///
    /// `stopped` is asked at each node.
    pub fn learn(examples: &Examples, stopped: &dyn Fn() -> bool) -> Option<Self> {
        let mut tree = Self::grow(examples, stopped)?;
        pruning::prune(&mut tree);
        Some(tree)
    }

    /// A tree that is not pruned. `None` if there are no examples, and when stopped.
    pub fn grow(examples: &Examples, stopped: &dyn Fn() -> bool) -> Option<Self> {
        grow::grow(examples, stopped)
    }

    /// The class of the example with these codes, which are those of the examples it learnt from.
    /// At a code that none of them had, it is the most frequent class of the node.
    pub fn class(&self, code: impl Fn(usize) -> u32) -> u32 {
        let mut at = 0;
        while let Some(split) = &self.nodes[at].split {
            match split.branch(code(split.position())) {
                Some(next) => at = next as usize,
                None => break,
            }
        }
        self.nodes[at].class
    }

    /// The weight of the examples to which the tree gives another class than theirs.
    pub fn wrong(&self, examples: &Examples) -> u64 {
        let rows = 0..examples.len();
        let wrong = rows.filter(|&row| self.is_wrong(examples, row));
        wrong.map(|row| u64::from(examples.weights[row])).sum()
    }

    /// Whether the tree gives an example another class than its own.
    pub(crate) fn is_wrong(&self, examples: &Examples, row: usize) -> bool {
        let code = |position: usize| examples.attributes[position].codes[row];
        self.class(code) != examples.classes[row]
    }

    /// Number of nodes, including leaves.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Most tests between the root and a leaf.
    pub fn depth(&self) -> usize {
        let mut depths = vec![0usize; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let children = node.split.iter().flat_map(Split::children);
            for child in children {
                depths[child as usize] = depths[at] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }
}
