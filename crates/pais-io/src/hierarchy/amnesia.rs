//! Hierarchies in the text format that Amnesia exports:
//!
//! ```text
//! distinct
//! name jobs
//! type string
//! height 3
//!
//! Blue has Janitor Mover
//! White has Doctor
//!
//! Any has Blue White
//! ```
//!
//! Labels are separated by spaces, so no label contains one. The order of the lines does not matter. In a file
//! that begins with `range` each label is two numbers, `0.0,9.0`. Ranges become labels that a numeric column
//! takes: those below one range divide it, `[0,10)` and `[10,19]` of `0,9` and `10,19`, and whole numbers may
//! be missing between the end of one and the start of the next.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use pais_core::definition::TaxonomyNode;
use pais_core::rejection::Fault;
use pais_core::schema::canonical_text;
use pais_core::taxonomy::interval::number;
use pais_core::taxonomy::{Interval, TreeError, TreeLimits};

use super::{FAULTS, HierarchyError, HierarchyErrorKind, refused};

/// The first line of a file whose nodes are labels.
const DISTINCT: &str = "distinct";

/// The first line of a file whose nodes are ranges.
const RANGE: &str = "range";

/// Whether a text has the form of a file of Amnesia.
pub(super) fn is_amnesia(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    let is_named = second.split(' ').next().is_some_and(is_header);
    (first.eq_ignore_ascii_case(DISTINCT) || first.eq_ignore_ascii_case(RANGE)) && is_named
}

fn is_header(word: &str) -> bool {
    ["name", "type", "height"]
        .iter()
        .any(|field| word.eq_ignore_ascii_case(field))
}

/// Reads a file of Amnesia and returns its tree. Children are in the order of the file.
///
/// # Errors
/// [`HierarchyErrorKind::Tree`], with the first faults by line, for lines that do not make one tree
/// within the limits.
pub(super) fn parse(text: &str, limits: TreeLimits) -> Result<TaxonomyNode, HierarchyError> {
    let mut lines = (1u64..).zip(text.lines().map(str::trim));
    let mut nodes = Nodes::default();
    let mut faults = Vec::new();
    let first = lines.by_ref().find(|(_, line)| !line.is_empty());
    let has_ranges = first.is_some_and(|(_, first)| first.eq_ignore_ascii_case(RANGE));
    for (line, text) in lines {
        if text.is_empty() {
            continue;
        }
        let mut words = text.split_ascii_whitespace();
        let parent = words.next().unwrap_or_default();
        let is_parent = words.next() == Some("has");
        if !is_parent && nodes.labels.is_empty() && is_header(parent) {
            continue;
        }
        let added = if !is_parent {
            Err("expected a label, `has` and the labels below it".to_owned())
        } else if has_ranges {
            words.try_for_each(|child| nodes.add(&range_label(parent)?, &range_label(child)?))
        } else {
            words.try_for_each(|child| nodes.add(parent, child))
        };
        if let Err(detail) = added {
            faults.push(Fault::record(line, detail));
        }
        if faults.len() == FAULTS {
            break;
        }
    }
    if !faults.is_empty() {
        return Err(refused(faults));
    }
    let root = nodes.into_tree(limits)?;
    if !has_ranges {
        return Ok(root);
    }
    let divided = ends(&root.label).and_then(|(lo, hi)| divide(root, Interval::closed(lo, hi)));
    divided.map_err(|detail| HierarchyError::new(HierarchyErrorKind::Tree, detail))
}

/// The two ends of a range, `0.0,9.0`.
fn ends(label: &str) -> Result<(f64, f64), String> {
    let read = || {
        let (lo, hi) = label.split_once(',')?;
        Some((number(lo)?, number(hi)?)).filter(|(lo, hi)| lo <= hi)
    };
    read().ok_or_else(|| format!("`{label}` is no range of numbers such as `0,9`"))
}

/// The canonical spelling of a range.
fn range_label(label: &str) -> Result<String, String> {
    let (lo, hi) = ends(label)?;
    Ok(format!("{lo},{hi}"))
}

/// The node with intervals as labels, of which its own is `whole`.
fn divide(node: TaxonomyNode, whole: Interval) -> Result<TaxonomyNode, String> {
    let parent = node.label;
    let with_ends = |child: TaxonomyNode| Ok((ends(&child.label)?, child));
    let children = node.children.into_iter().map(with_ends);
    let mut children = children.collect::<Result<Vec<_>, String>>()?;
    children.sort_by(|((one, _), _), ((other, _), _)| one.total_cmp(other));
    let starts: Vec<f64> = children.iter().map(|((lo, _), _)| *lo).collect();
    let (_, end_of_parent) = ends(&parent)?;
    let mut divided = Vec::with_capacity(children.len());
    for (place, ((lo, hi), child)) in children.into_iter().enumerate() {
        let follows = match starts.get(place + 1) {
            // Either the next range starts where this one ends, or at the next whole number.
            Some(&next) => next == hi || (next == hi + 1.0 && hi.fract() == 0.0),
            None => hi == end_of_parent,
        };
        if !follows || (place == 0 && lo != whole.lo) {
            return Err(format!(
                "the ranges below `{parent}` do not divide it from its start to its end"
            ));
        }
        let interval = match starts.get(place + 1) {
            Some(&next) => Interval::half_open(lo, next),
            None => Interval { lo, ..whole },
        };
        divided.push(divide(child, interval)?);
    }
    Ok(TaxonomyNode {
        label: whole.to_string(),
        children: divided,
    })
}

/// The nodes of a file, in the order in which they first occur.
#[derive(Default)]
struct Nodes {
    labels: Vec<String>,
    known: HashMap<String, usize>,
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
}

impl Nodes {
    fn node(&mut self, label: &str) -> usize {
        let label = canonical_text(label).into_owned();
        match self.known.entry(label) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                self.labels.push(free.key().clone());
                self.parents.push(None);
                self.children.push(Vec::new());
                *free.insert(self.labels.len() - 1)
            }
        }
    }

    /// Adds a child below a parent; once more where it is there already.
    fn add(&mut self, parent: &str, child: &str) -> Result<(), String> {
        let (parent, child) = (self.node(parent), self.node(child));
        match self.parents[child] {
            Some(before) if before == parent => Ok(()),
            Some(before) => Err(format!(
                "`{}` is below `{}`, but below `{}` in an earlier line",
                self.labels[child], self.labels[parent], self.labels[before]
            )),
            None => {
                self.parents[child] = Some(parent);
                self.children[parent].push(child);
                Ok(())
            }
        }
    }

    fn into_tree(mut self, limits: TreeLimits) -> Result<TaxonomyNode, HierarchyError> {
        let whole = |detail: String| HierarchyError::new(HierarchyErrorKind::Tree, detail);
        let tops = (0..self.labels.len()).filter(|&node| self.parents[node].is_none());
        let tops: Vec<usize> = tops.take(2).collect();
        let root = match *tops {
            [root] => root,
            [one, other] => {
                let (one, other) = (&self.labels[one], &self.labels[other]);
                let detail = format!("`{one}` and `{other}` are both at the top; name one root");
                return Err(whole(detail));
            }
            _ => {
                let detail = "the file has no root: no label, or each is below another one";
                return Err(whole(detail.to_owned()));
            }
        };
        // Parents before their children, each with its depth.
        let mut order = vec![(root, 1)];
        let mut next = 0;
        let mut leaves = 0;
        while let Some(&(node, depth)) = order.get(next) {
            next += 1;
            if depth > limits.depth {
                let limit = limits.depth;
                return Err(whole(TreeError::TooDeep { limit }.to_string()));
            }
            leaves += usize::from(self.children[node].is_empty());
            order.extend(self.children[node].iter().map(|&child| (child, depth + 1)));
        }
        if leaves > limits.leaves {
            let limit = limits.leaves;
            return Err(whole(TreeError::TooManyLeaves { limit }.to_string()));
        }
        if order.len() < self.labels.len() {
            let detail = "some labels are below themselves, so that the root is not above them";
            return Err(whole(detail.to_owned()));
        }
        let mut made: Vec<Option<TaxonomyNode>> = Vec::new();
        made.resize_with(self.labels.len(), || None);
        for (node, _) in order.into_iter().rev() {
            let children = std::mem::take(&mut self.children[node]);
            made[node] = Some(TaxonomyNode {
                label: std::mem::take(&mut self.labels[node]),
                children: children
                    .into_iter()
                    .filter_map(|child| made[child].take())
                    .collect(),
            });
        }
        let root = made.get_mut(root).and_then(Option::take);
        root.ok_or_else(|| whole("the file has no root".to_owned()))
    }
}

#[cfg(test)]
mod tests;
