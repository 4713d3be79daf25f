//! Error-based pruning: a subtree becomes a leaf where that is expected to err no more.

use crate::tree::{Node, Split, Tree};

/// The square of the number of standard deviations that belong to a confidence of 25 %, as C4.5
/// interpolates it between its tabled values for 20 % (0.84) and 40 % (0.25).
const SQUARED_DEVIATION: f64 = 0.6925 * 0.6925;

/// The confidence of the upper limit.
const CONFIDENCE: f64 = 0.25;

/// What the estimate of a leaf may exceed that of a subtree by, in errors.
const TOLERANCE: f64 = 0.1;

/// *N · U25(E, N)*: the errors to expect among *N* cases where *E* were seen, as the upper limit of
/// a binomial distribution at a confidence of 25 % (Quinlan 1993, Section 4.2, with the
/// approximation of C4.5's program). 0 without cases.
///
/// ```
/// use pais_classify::pessimistic_errors;
///
/// // Quinlan's example: leaves of 6, 9 and 1 cases without errors, against one of 16 with one.
/// let limit = |errors, cases| pessimistic_errors(errors, cases) / cases as f64;
/// assert!((limit(0, 6) - 0.206).abs() < 5e-4);
/// assert!((limit(1, 16) - 0.157).abs() < 5e-4);
/// ```
pub fn pessimistic_errors(errors: u64, cases: u64) -> f64 {
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
pub(crate) fn prune(tree: &mut Tree) {
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
            let children = split.children().map(|child| errors[child as usize]);
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
            is_kept[child as usize] = true;
        }
    }
    let kept = nodes.iter().zip(&is_kept).filter(|(_, kept)| **kept);
    let mut kept: Vec<Node> = kept.map(|(node, _)| node.clone()).collect();
    for node in &mut kept {
        match &mut node.split {
            Some(Split::Values { branches, .. }) => {
                for (_, child) in branches {
                    *child = numbers[*child as usize];
                }
            }
            Some(Split::Threshold { branches, .. }) => {
                for child in branches.iter_mut().flatten() {
                    *child = numbers[*child as usize];
                }
            }
            None => {}
        }
    }
    kept
}
