//! A tree, and its classification of examples.

use pais_core::cancellation::Cancellation;
use std::ops::Range;
use std::rc::Rc;

use super::choice::{Candidate, LEAST, TestedNode, choose, value_test};
use super::counts::CodeCounts;
use super::examples::{Domain, Examples, Test};
use super::gain::Logs;
use super::learnt::{LearntExamples, NodeExamples};
use super::threshold::{Sides, best_threshold};

/// The test of a node, and the nodes of its branches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) test: Test,
    /// The code of missing values.
    missing: u32,
    /// The node of each branch that had examples, by branch.
    branches: Vec<(u32, u32)>,
}

impl Split {
    /// The node of a code; `None` for one whose branch had no example.
    pub(super) fn branch(&self, code: u32) -> Option<u32> {
        let branch = self.test.branch(code, self.missing);
        let found = self
            .branches
            .binary_search_by_key(&branch, |(branch, _)| *branch);
        found.ok().map(|at| self.branches[at].1)
    }

    /// The nodes below.
    pub(super) fn children(&self) -> impl Iterator<Item = usize> {
        self.branches.iter().map(|(_, node)| *node as usize)
    }
}

/// A node with the examples that reached it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// The most frequent class, ties go to the first.
    pub(super) class: u32,
    /// Weight of the examples.
    pub(super) weight: u64,
    /// Weight of the examples of other classes.
    pub(super) errors: u64,
    /// `None` for a leaf.
    pub(super) split: Option<Split>,
}

impl Node {
    /// A leaf with examples of these weights by class.
    fn leaf(totals: &[u64]) -> Self {
        let most = totals.iter().copied().max().unwrap_or(0);
        let class = totals.iter().position(|count| *count == most);
        let weight = totals.iter().sum();
        Self {
            class: class.unwrap_or(0) as u32,
            weight,
            errors: weight - most,
            split: None,
        }
    }
}

/// A decision tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// Each after its parent; the first one is the root.
    pub(super) nodes: Vec<Node>,
}

impl Tree {
    /// A tree grown on examples with these weights and pruned. `None` if all weights are 0, and when
    /// stopped.
    ///
    /// `cancellation` is asked at each node.
    pub(super) fn learn(
        examples: &Examples,
        weights: &[u32],
        logs: &Logs,
        cancellation: &Cancellation,
    ) -> Option<Self> {
        let mut tree = grow(examples, weights, logs, cancellation)?;
        prune(&mut tree);
        Some(tree)
    }

    /// The class of the example with these codes, which are those of the examples it learnt from.
    /// At a code that none of them had, it is the most frequent class of the node.
    pub(super) fn class(&self, code: impl Fn(usize) -> u32) -> u32 {
        let mut at = 0;
        while let Some(split) = &self.nodes[at].split {
            match split.branch(code(split.test.position)) {
                Some(next) => at = next as usize,
                None => break,
            }
        }
        self.nodes[at].class
    }

    /// The weight of the examples to which the tree gives another class than theirs.
    pub(super) fn wrong(&self, examples: &Examples, weights: &[u32]) -> u64 {
        let weighted = weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight > 0);
        let wrong = weighted.filter(|(row, _)| {
            let code = |position: usize| examples.code(position, *row as u32);
            self.class(code) != examples.classes[*row]
        });
        wrong.map(|(_, &weight)| u64::from(weight)).sum()
    }
}

/// Maximum number of tests between the root and a leaf. Trees of real tables have a few dozens; the limit bounds
/// the work on tables made for it.
const MOST_DEPTH: usize = 128;

/// A node with at most this many errors is a leaf of the pruned tree, whatever is below it. A subtree without
/// the one error has a leaf of one example and two leaves of at least
/// [`LEAST`] each: together they expect 2.75 errors, and the node itself less than 2.63.
const LEAF_ERRORS: u64 = 1;

/// A node to be divided.
struct OpenNode {
    node: usize,
    examples: Range<usize>,
    depth: usize,
    /// The attributes that have several values in the parent.
    attributes: Rc<[usize]>,
}

/// A tree without pruning; `None` where all weights are 0, and when stopped.
pub(super) fn grow(
    examples: &Examples,
    weights: &[u32],
    logs: &Logs,
    cancellation: &Cancellation,
) -> Option<Tree> {
    let mut learnt = LearntExamples::new(examples, weights);
    if learnt.len() == 0 {
        return None;
    }
    let mut choice = TestChoice {
        examples,
        weight: weights.iter().copied().map(u64::from).sum(),
        logs,
        counts: CodeCounts::default(),
        sides: Sides::default(),
    };
    let mut totals = vec![0; examples.class_count as usize];
    learnt.of(0..learnt.len()).weigh(&mut totals);
    let mut nodes = vec![Node::leaf(&totals)];
    let mut open = vec![OpenNode {
        node: 0,
        examples: 0..learnt.len(),
        depth: 0,
        attributes: (0..examples.attributes.len()).collect(),
    }];
    while let Some(next) = open.pop() {
        if cancellation.is_cancelled() {
            return None;
        }
        let node = &nodes[next.node];
        if node.errors <= LEAF_ERRORS || node.weight < 2 * LEAST || next.depth >= MOST_DEPTH {
            choice.counts.clear();
            continue;
        }
        let of_node = learnt.of(next.examples.clone());
        of_node.weigh(&mut totals);
        let Some((test, varied)) = choice.best(of_node, &totals, &next.attributes) else {
            choice.counts.clear();
            continue;
        };
        let mut branches = Vec::new();
        for part in learnt.divide(next.examples, test) {
            let node = nodes.len();
            learnt.of(part.examples.clone()).weigh(&mut totals);
            nodes.push(Node::leaf(&totals));
            branches.push((part.branch, node as u32));
            open.push(OpenNode {
                node,
                examples: part.examples,
                depth: next.depth + 1,
                attributes: Rc::clone(&varied),
            });
        }
        // The largest branch is the next node.
        let first = open.len() - branches.len();
        open[first..].sort_by_key(|it| nodes[it.node].weight);
        if let Some((largest, others)) = open[first..].split_last() {
            let others = others.iter().map(|it| learnt.of(it.examples.clone()));
            choice.counts.keep(examples, largest.examples.len(), others);
        }
        nodes[next.node].split = Some(Split {
            test,
            missing: examples.attributes[test.position].domain.missing_code(),
            branches,
        });
    }
    Some(Tree { nodes })
}

/// The data for choosing the test of a node.
struct TestChoice<'a> {
    examples: &'a Examples,
    /// Of all examples of the tree together.
    weight: u64,
    logs: &'a Logs,
    counts: CodeCounts,
    sides: Sides,
}

impl TestChoice<'_> {
    /// The best test of a node whose classes have these weights, and those of some attributes that have several values
    /// in it.
    fn best(
        &mut self,
        node: NodeExamples<'_>,
        classes: &[u64],
        attributes: &[usize],
    ) -> Option<(Test, Rc<[usize]>)> {
        self.counts.count_narrow(self.examples, attributes, node);
        let tested = TestedNode {
            classes,
            information: self.logs.information(classes),
            logs: self.logs,
        };
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut varied: Vec<usize> = Vec::new();
        for &position in attributes {
            self.counts.count(self.examples, position, node);
            if self.counts.len() < 2 {
                continue;
            }
            varied.push(position);
            let counts = &self.counts;
            candidates.extend(match &self.examples.attributes[position].domain {
                Domain::Nominal(_) => value_test(position, counts, tested),
                Domain::Ordered(values) => {
                    best_threshold(position, values, counts, tested, &mut self.sides)
                }
            });
        }
        let chosen = choose(self.examples, &candidates, self.weight)?;
        Some((chosen.test, varied.into()))
    }
}

/// The square of the number of standard deviations that belong to a confidence of 25 %, as C4.5
/// interpolates it between its tabled values for 20 % (0.84) and 40 % (0.25).
const SQUARED_DEVIATION: f64 = 0.6925 * 0.6925;

/// The confidence of the upper limit.
const CONFIDENCE: f64 = 0.25;

/// By how much the estimate of a leaf may exceed that of a subtree, in errors.
const TOLERANCE: f64 = 0.1;

/// *N · U25(E, N)*: the errors to expect among *N* cases where *E* were seen, as the upper limit of
/// a binomial distribution at a confidence of 25 % (Quinlan 1993, Section 4.2, with the
/// approximation of C4.5's program). 0 without cases.
pub(super) fn pessimistic_errors(errors: u64, cases: u64) -> f64 {
    let (seen, cases) = (errors as f64, cases as f64);
    if cases == 0.0 {
        return 0.0;
    }
    if errors == 0 {
        return cases * (1.0 - CONFIDENCE.powf(1.0 / cases));
    }
    if seen + 0.5 >= cases {
        return seen + 0.67 * (cases - seen);
    }
    let corrected = seen + 0.5;
    let spread =
        SQUARED_DEVIATION * (corrected * (1.0 - corrected / cases) + SQUARED_DEVIATION / 4.0);
    let limit = (corrected + SQUARED_DEVIATION / 2.0 + spread.sqrt()) / (cases + SQUARED_DEVIATION);
    cases * limit
}

/// Replaces subtrees by leaves, from the leaves to the root.
pub(super) fn prune(tree: &mut Tree) {
    /// Of a subtree: the errors to expect, and those seen.
    #[derive(Clone, Copy, Default)]
    struct Errors {
        expected: f64,
        seen: u64,
    }
    let mut errors = vec![Errors::default(); tree.nodes.len()];
    // Children come after their parents.
    for (at, node) in tree.nodes.iter_mut().enumerate().rev() {
        let leaf = Errors {
            expected: pessimistic_errors(node.errors, node.weight),
            seen: node.errors,
        };
        errors[at] = leaf;
        if let Some(split) = &node.split {
            let children = split.children().map(|child| errors[child]);
            let below = children.fold(Errors::default(), |sum, child| Errors {
                expected: sum.expected + child.expected,
                seen: sum.seen + child.seen,
            });
            let is_worth_it = below.seen < leaf.seen && leaf.expected > below.expected + TOLERANCE;
            if is_worth_it {
                errors[at] = below
            } else {
                node.split = None
            }
        }
    }
    *tree = Tree {
        nodes: reachable(&tree.nodes),
    };
}

/// The nodes that the root still has, renumbered; each after its parent.
fn reachable(nodes: &[Node]) -> Vec<Node> {
    let mut numbers = vec![0u32; nodes.len()];
    let mut is_kept = vec![false; nodes.len()];
    let mut kept = 0;
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 && !is_kept[at] {
            continue;
        }
        is_kept[at] = true;
        numbers[at] = kept;
        kept += 1;
        for child in node.split.iter().flat_map(Split::children) {
            is_kept[child] = true;
        }
    }
    let kept = nodes.iter().zip(&is_kept).filter(|(_, kept)| **kept);
    let mut kept: Vec<Node> = kept.map(|(node, _)| node.clone()).collect();
    let splits = kept.iter_mut().flat_map(|node| &mut node.split);
    for (_, child) in splits.flat_map(|split| &mut split.branches) {
        *child = numbers[*child as usize];
    }
    kept
}
