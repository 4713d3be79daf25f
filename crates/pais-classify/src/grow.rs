//! Growth of a tree, node by node from a stack.
//!
//! The examples are kept once in the order of each ordered attribute; a split divides each of these
//! lists, so that no node sorts anything.

use std::rc::Rc;

use crate::choice::{Candidate, LEAST, Test, ValueCounts, choose};
use crate::examples::{Attribute, Domain, Examples};
use crate::gain::Logs;
use crate::threshold::best_threshold;
use crate::tree::{Node, Split, Tree, threshold_branch};

/// Most tests between the root and a leaf. Trees of real tables have a few dozens; the limit bounds
/// the work on tables made for it.
const MOST_DEPTH: usize = 128;

/// A node to be divided.
struct OpenNode {
    node: usize,
    /// Its examples in all lists.
    from: usize,
    to: usize,
    depth: usize,
    /// The attributes that have several values in the parent.
    attributes: Rc<[usize]>,
}

/// A tree without pruning; `None` without examples and when stopped.
pub(crate) fn grow(examples: &Examples, stopped: &dyn Fn() -> bool) -> Option<Tree> {
    if examples.is_empty() {
        return None;
    }
    let mut growth = Growth::new(examples);
    let all = (0..examples.attributes.len()).collect();
    let root = growth.leaf(0, examples.len());
    let mut nodes = vec![root];
    let mut open = vec![OpenNode {
        node: 0,
        from: 0,
        to: examples.len(),
        depth: 0,
        attributes: all,
    }];
    while let Some(next) = open.pop() {
        if stopped() {
            return None;
        }
        let node = &nodes[next.node];
        if node.errors == 0 || node.weight < 2 * LEAST || next.depth >= MOST_DEPTH {
            continue;
        }
        let Some((test, attributes)) = growth.test(&next) else {
            continue;
        };
        let parts = growth.divide(test, next.from, next.to);
        let first = nodes.len() as u32;
        let mut branches = Vec::new();
        for (number, (branch, from, to)) in (first..).zip(parts) {
            nodes.push(growth.leaf(from, to));
            branches.push((branch, number));
            open.push(OpenNode {
                node: number as usize,
                from,
                to,
                depth: next.depth + 1,
                attributes: Rc::clone(&attributes),
            });
        }
        nodes[next.node].split = Some(split(examples, test, branches));
    }
    Some(Tree { nodes })
}

fn split(examples: &Examples, test: Test, branches: Vec<(u32, u32)>) -> Split {
    match test {
        Test::Values { position } => Split::Values { position, branches },
        Test::Threshold { position, last_low } => {
            let mut nodes = [None; 3];
            for (branch, node) in branches {
                nodes[branch as usize] = Some(node);
            }
            Split::Threshold {
                position,
                last_low,
                missing: missing_code(&examples.attributes[position]),
                branches: nodes,
            }
        }
    }
}

/// The code that means missing; none of a nominal attribute.
fn missing_code(attribute: &Attribute) -> u32 {
    match &attribute.domain {
        Domain::Ordered(values) => values.len() as u32,
        Domain::Nominal(_) => u32::MAX,
    }
}

/// The lists of examples, and working space.
struct Growth<'a> {
    examples: &'a Examples,
    weight: u64,
    logs: Logs,
    /// Examples in the order of each ordered attribute; the first list is in no particular order.
    lists: Vec<Vec<u32>>,
    /// The list of each attribute.
    list_of: Vec<usize>,
    counts: ValueCounts,
    /// The branch of each example of the node that is divided.
    branch_of: Vec<u32>,
    buffer: Vec<u32>,
    /// For each branch, where its next example goes.
    ends: Vec<usize>,
}

impl<'a> Growth<'a> {
    fn new(examples: &'a Examples) -> Self {
        let rows = examples.len();
        let mut lists = vec![(0..rows as u32).collect::<Vec<u32>>()];
        let mut list_of = Vec::new();
        for attribute in &examples.attributes {
            if matches!(attribute.domain, Domain::Nominal(_)) {
                list_of.push(0);
                continue;
            }
            let mut list = lists[0].clone();
            list.sort_by_key(|&row| attribute.codes[row as usize]);
            list_of.push(lists.len());
            lists.push(list);
        }
        Self {
            examples,
            weight: examples.weight(),
            logs: Logs::new(examples.weight()),
            lists,
            list_of,
            counts: ValueCounts::default(),
            branch_of: vec![0; rows],
            buffer: vec![0; rows],
            ends: Vec::new(),
        }
    }

    fn class_counts(&self, from: usize, to: usize) -> Vec<u64> {
        let mut counts = vec![0; self.examples.class_count as usize];
        for &row in &self.lists[0][from..to] {
            let row = row as usize;
            counts[self.examples.classes[row] as usize] += u64::from(self.examples.weights[row]);
        }
        counts
    }

    /// A leaf of the examples from `from` to `to`.
    fn leaf(&self, from: usize, to: usize) -> Node {
        let counts = self.class_counts(from, to);
        let most = counts.iter().copied().max().unwrap_or(0);
        let class = counts.iter().position(|count| *count == most);
        let weight = counts.iter().sum();
        Node {
            class: class.unwrap_or(0) as u32,
            weight,
            errors: weight - most,
            split: None,
        }
    }

    /// The best test of a node, and the attributes that have several values in it.
    fn test(&mut self, node: &OpenNode) -> Option<(Test, Rc<[usize]>)> {
        let class_counts = self.class_counts(node.from, node.to);
        let base = self.logs.information(&class_counts);
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut varied: Vec<usize> = Vec::new();
        for &position in &*node.attributes {
            let attribute = &self.examples.attributes[position];
            let rows = &self.lists[self.list_of[position]][node.from..node.to];
            let mut codes = rows.iter().map(|&row| attribute.codes[row as usize]);
            let first = codes.next();
            if codes.all(|code| Some(code) == first) {
                continue;
            }
            varied.push(position);
            let attribute = (position, attribute);
            candidates.extend(match attribute.1.domain {
                Domain::Nominal(_) => {
                    self.counts
                        .test(self.examples, attribute, rows, base, &self.logs)
                }
                Domain::Ordered(_) => {
                    let (examples, logs) = (self.examples, &self.logs);
                    best_threshold(examples, attribute, rows, &class_counts, base, logs)
                }
            });
        }
        let chosen = choose(self.examples, &candidates, self.weight)?;
        Some((chosen.test, varied.into()))
    }

    /// Divides all lists by a test: the branches that have examples, ascending, with where they
    /// are.
    fn divide(&mut self, test: Test, from: usize, to: usize) -> Vec<(u32, usize, usize)> {
        let (Test::Values { position } | Test::Threshold { position, .. }) = test;
        let attribute = &self.examples.attributes[position];
        let missing = missing_code(attribute);
        let branch = |row: u32| {
            let code = attribute.codes[row as usize];
            match test {
                Test::Values { .. } => code,
                Test::Threshold { last_low, .. } => {
                    threshold_branch(code, last_low, missing) as u32
                }
            }
        };
        let mut occurring: Vec<u32> = self.lists[0][from..to].iter().map(|&r| branch(r)).collect();
        occurring.sort_unstable();
        let mut parts: Vec<(u32, usize, usize)> = Vec::new();
        for (at, branch) in (from..).zip(occurring) {
            match parts.last_mut() {
                Some((last, _, end)) if *last == branch => *end = at + 1,
                _ => parts.push((branch, at, at + 1)),
            }
        }
        for &row in &self.lists[0][from..to] {
            let branch = branch(row);
            let part = parts.binary_search_by_key(&branch, |(branch, ..)| *branch);
            self.branch_of[row as usize] = part.unwrap_or(0) as u32;
        }
        for list in &mut self.lists {
            self.ends.clear();
            self.ends.extend(parts.iter().map(|(_, start, _)| *start));
            for &row in &list[from..to] {
                let end = &mut self.ends[self.branch_of[row as usize] as usize];
                self.buffer[*end] = row;
                *end += 1;
            }
            list[from..to].copy_from_slice(&self.buffer[from..to]);
        }
        parts
    }
}
