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
//! Labels are separated by spaces, so that no label has one. The order of the lines does not
//! matter.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::canonical_text::canonical_text;
use crate::definition::TaxonomyNode;
use crate::rejection::Fault;

use super::hierarchy::{FAULTS, HierarchyError, HierarchyErrorKind};
use super::{TreeError, TreeLimits};

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
    if let Some((line, first)) = first
        && first.eq_ignore_ascii_case(RANGE)
    {
        let detail = "the file has ranges; write them as rows, `[30,40);[0,50);[0,100]`";
        return Err(refused(vec![Fault::record(line, detail)]));
    }
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
        let added = match is_parent {
            true => words.try_for_each(|child| nodes.add(parent, child)),
            false => Err("expected a label, `has` and the labels below it".to_owned()),
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
    nodes.into_tree(limits)
}

fn refused(faults: Vec<Fault>) -> HierarchyError {
    let detail = match faults.first() {
        Some(first) => {
            let line = first.line().unwrap_or_default();
            format!("the rows do not form a tree: line {line}: {}", first.detail)
        }
        None => "the rows do not form a tree".to_owned(),
    };
    HierarchyError::with(HierarchyErrorKind::Tree, detail, faults)
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
mod tests {
    use super::super::hierarchy::{HierarchyErrorKind, parse};
    use crate::definition::TaxonomyNode;
    use crate::taxonomy::TreeLimits;

    const HEADER: &str = "distinct\nname jobs\ntype string\nheight 3\n\n";

    fn show(node: &TaxonomyNode) -> String {
        let children: Vec<String> = node.children.iter().map(show).collect();
        match children.is_empty() {
            true => node.label.clone(),
            false => format!("{}({})", node.label, children.join(" ")),
        }
    }

    fn read(lines: &str) -> Result<String, Vec<u64>> {
        let parsed = parse(format!("{HEADER}{lines}").as_bytes(), TreeLimits::default());
        parsed.map(|root| show(&root)).map_err(|error| {
            assert_eq!(error.kind, HierarchyErrorKind::Tree);
            let lines = error.faults.iter().filter_map(|fault| fault.line());
            lines.collect()
        })
    }

    #[test]
    fn lines_of_parents_form_a_tree() {
        let lines = "Blue has Janitor Mover \nWhite has Doctor \n\nAny has Blue White \n\n";
        let expected = "Any(Blue(Janitor Mover) White(Doctor))";
        assert_eq!(read(lines).unwrap(), expected);
        assert_eq!(read(&lines.replace('\n', "\r\n")).unwrap(), expected);
        let again = format!("{lines}White has Doctor\n");
        assert_eq!(read(&again).unwrap(), expected);
        let top_first = "Any has Blue White\nBlue has Janitor Mover\nWhite has Doctor\n";
        assert_eq!(read(top_first).unwrap(), expected);
    }

    #[test]
    fn lines_that_are_no_tree_are_refused() {
        for (lines, expected) in [
            ("a has b\nc has b\n", &[7u64][..]),
            ("a has b\na b\n", &[7]),
            ("a has b\nc has d\n", &[]),
            ("a has b\nb has a\n", &[]),
            ("a has b\nc has d\nd has c\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(read(lines).unwrap_err(), expected, "{lines:?}");
        }
        let ranges = parse(b"range\nname age\n\n0,9 has 0,4 5,9\n", TreeLimits::default());
        assert!(ranges.unwrap_err().detail.contains("rows"));
    }

    #[test]
    fn limits_are_enforced() {
        let limits = TreeLimits { leaves: 2, depth: 3 };
        let read = |lines: &str| parse(format!("{HEADER}{lines}").as_bytes(), limits);
        assert!(read("a has b c\n").is_ok());
        assert!(read("a has b c d\n").is_err());
        assert!(read("a has b\nb has c\nc has d\n").is_err());
    }
}
