//! Hierarchies built from frequencies: the children of a node have similar numbers of rows.
//!
//! The leaves have an order: labels as they are declared, or intervals of one width. A node is an interval of
//! leaves. Where nodes begin depends on all raw rows, like the choice of a cut. A release shows only its own
//! labels: each end of a node moves to the next leaf that a released row has, so that no label depends on the
//! leaves of suppressed rows. Nodes that are not released are not shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::trees::{Values, free_label, position, widths_or_default};
use crate::definition::{ColumnKind, TaxonomyNode};
use crate::taxonomy::{Interval, MISSING_LABEL, NodeId, Tree, TreeLimits};

/// The level below which parts are balanced by number of leaves instead of rows, so that no tree is too deep.
const MOST_LEVELS: usize = 24;

/// Leaves in an order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Leaves {
    /// Labels as they are declared. All of them are in every tree.
    Labels(Vec<String>),
    /// Intervals of numbers, each beginning where the previous one ends. A tree has those that rows reach.
    Ranges(Vec<Interval>),
}

/// Between the first and the last label of an interval of labels.
const TO: &str = "..";

impl Leaves {
    /// The intervals of one width that the numbers reach, and one more, so that a root has two parts.
    ///
    /// # Errors
    /// A sentence for more intervals than a taxonomy can have.
    pub(super) fn of_numbers(
        values: &Values,
        start: Option<f64>,
        width: f64,
        limits: TreeLimits,
    ) -> Result<Self, String> {
        let numbers = || values.keys().filter_map(|value| position(value));
        let start = start.unwrap_or(0.0);
        let step = |value: f64| ((value - start) / width).floor();
        let first = step(numbers().fold(f64::INFINITY, f64::min));
        let last = step(numbers().fold(f64::NEG_INFINITY, f64::max)) + 2.0;
        let count = last - first;
        if !count.is_finite() || count >= limits.leaves as f64 {
            return Err(format!(
                "would have more than {} intervals; give a greater width",
                limits.leaves
            ));
        }
        let end = |index: f64| start + index * width;
        let range = |part: usize| {
            let at = first + part as f64;
            Interval::half_open(end(at), end(at + 1.0))
        };
        Ok(Self::Ranges((0..count as usize).map(range).collect()))
    }

    /// The leaves of a tree that was drawn from leaves; `None` for another tree.
    pub(super) fn of_tree(tree: &Tree, kind: ColumnKind) -> Option<Self> {
        let leaves = (0..tree.leaf_count() as u32).map(|leaf| &tree.node(tree.leaf(leaf)).label);
        let labels = leaves.filter(|label| &***label != MISSING_LABEL);
        if kind == ColumnKind::Numeric {
            let ranges = labels.map(|label| Interval::parse(label));
            return ranges.collect::<Option<_>>().map(Self::Ranges);
        }
        Some(Self::Labels(labels.map(ToString::to_string).collect()))
    }

    fn count(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.len(),
            Self::Ranges(ranges) => ranges.len(),
        }
    }

    /// The number of rows of each leaf.
    pub(super) fn rows(&self, values: &Values) -> Vec<u64> {
        match self {
            Self::Labels(labels) => {
                let of = |label: &String| values.get(label).copied().unwrap_or(0);
                labels.iter().map(of).collect()
            }
            Self::Ranges(ranges) => {
                let mut rows = vec![0; ranges.len()];
                for (value, of_value) in values {
                    let Some(number) = position(value) else {
                        continue;
                    };
                    let after = ranges.partition_point(|range| range.is_below(number));
                    if let Some(rows) = rows.get_mut(after) {
                        *rows += of_value;
                    }
                }
                rows
            }
        }
    }

    /// The label of some leaves that are not all.
    fn label(&self, leaves: &Range<usize>) -> String {
        match self {
            Self::Labels(labels) => {
                let first = &labels[leaves.start];
                if leaves.len() == 1 {
                    return first.clone();
                }
                let label = format!("{first}{TO}{}", labels[leaves.end - 1]);
                free_label(&label, '.', |label| labels.iter().any(|it| it == label))
            }
            Self::Ranges(ranges) => {
                Interval::half_open(ranges[leaves.start].lo, ranges[leaves.end - 1].hi).to_string()
            }
        }
    }

    /// The label of a root over some leaves.
    fn root(&self, leaves: &Range<usize>) -> String {
        match self {
            Self::Labels(labels) => {
                free_label("*", '*', |label| labels.iter().any(|it| it == label))
            }
            Self::Ranges(_) => self.label(leaves),
        }
    }

    /// The place of each label.
    fn places(&self) -> HashMap<&str, usize> {
        match self {
            Self::Labels(labels) => labels.iter().map(String::as_str).zip(0..).collect(),
            Self::Ranges(_) => HashMap::new(),
        }
    }

    /// The leaves that have a label; `None` for another label. `places` is that of [`Self::places`].
    fn find(&self, label: &str, places: &HashMap<&str, usize>) -> Option<Range<usize>> {
        match self {
            Self::Labels(_) => {
                if let Some(&at) = places.get(label) {
                    return Some(at..at + 1);
                }
                let between = label.match_indices(TO).filter_map(|(at, _)| {
                    let first = *places.get(&label[..at])?;
                    let rest = &label[at + TO.len()..];
                    // Points at the end tell the interval from a label.
                    let first_end = rest.trim_end_matches('.').len();
                    let mut ends = (first_end..=rest.len()).rev();
                    let last = ends.find_map(|end| places.get(&rest[..end]))?;
                    (first < *last).then_some(first..last + 1)
                });
                between.filter(|leaves| self.label(leaves) == label).last()
            }
            Self::Ranges(ranges) => {
                let interval = Interval::parse(label)?;
                let first = ranges.partition_point(|range| range.lo < interval.lo);
                let end = ranges.partition_point(|range| range.hi <= interval.hi);
                let is_found = first < end
                    && ranges[first].lo == interval.lo
                    && ranges[end - 1].hi == interval.hi;
                is_found.then_some(first..end)
            }
        }
    }

    /// The tree over all leaves in which a node has up to `fanout` parts with similar numbers of `rows`.
    pub(super) fn draw(&self, rows: &[u64], fanout: usize) -> TaxonomyNode {
        let all = 0..self.count();
        let root = self.root(&all);
        self.part(rows, fanout, all, root, 0)
    }

    fn part(
        &self,
        rows: &[u64],
        fanout: usize,
        leaves: Range<usize>,
        label: String,
        level: usize,
    ) -> TaxonomyNode {
        let mut children = Vec::new();
        if leaves.len() > 1 {
            let even = vec![0; leaves.len()];
            let of_leaves = if level < MOST_LEVELS {
                &rows[leaves.clone()]
            } else {
                even.as_slice()
            };
            let mut from = leaves.start;
            for end in ends(of_leaves, fanout) {
                let part = from..leaves.start + end;
                from = part.end;
                let label = self.label(&part);
                children.push(self.part(rows, fanout, part, label, level + 1));
            }
        }
        TaxonomyNode { label, children }
    }

    /// The tree of a release that has these nodes, and no others, between the root and the leaves; `None` if
    /// two of the nodes partly overlap. A node over all labels is below the root, because missing cells are
    /// below the root too; a node over all ranges is the root.
    fn over(&self, all: Range<usize>, nodes: &BTreeSet<(usize, usize)>) -> Option<TaxonomyNode> {
        let root = self.root(&all);
        let mut inner: Vec<Range<usize>> = nodes
            .iter()
            .map(|&(start, end)| start..end)
            .filter(|node| node.len() > 1 && self.label(node) != root)
            .collect();
        // Each node before those that it contains.
        inner.sort_by_key(|node| (node.start, std::cmp::Reverse(node.end)));
        let mut rest = inner.into_iter().peekable();
        let children = self.below(all, &mut rest)?;
        rest.next().is_none().then_some(TaxonomyNode {
            label: root,
            children,
        })
    }

    fn below(
        &self,
        leaves: Range<usize>,
        rest: &mut std::iter::Peekable<std::vec::IntoIter<Range<usize>>>,
    ) -> Option<Vec<TaxonomyNode>> {
        let mut children = Vec::new();
        let mut at = leaves.start;
        while at < leaves.end {
            let next = rest.next_if(|node| node.start == at);
            let part = next.clone().unwrap_or(at..at + 1);
            if part.end > leaves.end {
                return None;
            }
            at = part.end;
            let label = self.label(&part);
            let children_of = match next {
                Some(node) => self.below(node, rest)?,
                None => Vec::new(),
            };
            children.push(TaxonomyNode {
                label,
                children: children_of,
            });
        }
        Some(children)
    }
}

/// Where the parts of some leaves end, so that they have similar numbers of rows. Each part has a leaf.
fn ends(rows: &[u64], fanout: usize) -> Vec<usize> {
    let parts = fanout.min(rows.len());
    let total: u64 = rows.iter().sum();
    // Without rows, each leaf counts.
    let weight = |leaf: usize| if total == 0 { 1 } else { rows[leaf] };
    let total: u64 = (0..rows.len()).map(weight).sum();
    let mut ends = Vec::with_capacity(parts);
    let (mut end, mut before) = (0, 0);
    for part in 1..parts {
        let target = u128::from(total) * part as u128 / parts as u128;
        let distance = |sum: u64| u128::from(sum).abs_diff(target);
        before += weight(end);
        end += 1;
        // As close to the target as possible, with a leaf left for each further part.
        while end < rows.len() - (parts - part) && distance(before + weight(end)) < distance(before)
        {
            before += weight(end);
            end += 1;
        }
        ends.push(end);
    }
    ends.push(rows.len());
    ends
}

/// A balanced tree as it was searched, and what a release shows of it.
pub(super) struct Released<'t> {
    tree: &'t Tree,
    leaves: Leaves,
    /// For each end of a node, before a leaf or after the last one, the end that a release shows.
    shown_ends: Vec<usize>,
}

impl<'t> Released<'t> {
    /// The tree with the number of released rows of each of its leaves; `None` for a tree that is not drawn
    /// from leaves in an order, and if no row has a value.
    pub(super) fn new(tree: &'t Tree, kind: ColumnKind, rows: &[u64]) -> Option<Self> {
        let leaves = Leaves::of_tree(tree, kind)?;
        let count = leaves.count();
        let is_shown = |leaf: &usize| rows.get(*leaf).is_some_and(|&rows| rows > 0);
        let first = (0..count).find(is_shown)?;
        let last = (0..count).rfind(is_shown)?;
        let (outermost_start, outermost_end) = match leaves {
            // All labels are declared.
            Leaves::Labels(_) => (0, count),
            // A root has two parts. There is one more interval than numbers reach.
            Leaves::Ranges(_) => (first, (last + 1).max(first + 2).min(count)),
        };
        let mut shown_ends = vec![outermost_end; count + 1];
        for end in (0..count).rev() {
            shown_ends[end] = if is_shown(&end) {
                end
            } else {
                shown_ends[end + 1]
            };
        }
        shown_ends[0] = outermost_start;
        Some(Self {
            tree,
            leaves,
            shown_ends,
        })
    }

    /// The leaves that a node has in the release. A leaf keeps its label: it does not depend on other leaves.
    fn shown(&self, node: NodeId) -> Range<usize> {
        let node = self.tree.node(node);
        if node.children.is_empty() {
            return node.first_leaf as usize..node.end_leaf as usize;
        }
        let end = |end: u32| self.shown_ends[(end as usize).min(self.leaves.count())];
        end(node.first_leaf)..end(node.end_leaf)
    }

    fn all(&self) -> Range<usize> {
        self.shown(NodeId::ROOT)
    }

    /// The tree of the release, in which only its own labels are between root and leaves.
    pub(super) fn root(&self, labels: &BTreeSet<&str>) -> Option<TaxonomyNode> {
        let nodes = labels.iter().filter_map(|label| {
            let node = self.tree.find(label)?;
            let shown = self.shown(node);
            let is_below = !shown.is_empty() && !self.is_root(node, labels);
            is_below.then_some((shown.start, shown.end))
        });
        self.leaves.over(self.all(), &nodes.collect())
    }

    /// Whether a release with these labels shows a node as its root. Missing cells are below the root, so if
    /// they are released, a node without them is not the root.
    fn is_root(&self, node: NodeId, labels: &BTreeSet<&str>) -> bool {
        let is_all = self.shown(node) == self.all() && !labels.contains(MISSING_LABEL);
        node == NodeId::ROOT || is_all
    }

    /// What takes the place of each of these labels in the release.
    pub(super) fn relabelled(&self, labels: &BTreeSet<&str>) -> BTreeMap<Box<str>, Box<str>> {
        let pairs = labels.iter().filter_map(|label| {
            let node = self.tree.find(label)?;
            let shown = self.shown(node);
            let new = if *label == MISSING_LABEL {
                MISSING_LABEL.to_owned()
            } else if self.is_root(node, labels) {
                self.leaves.root(&shown)
            } else if shown.is_empty() {
                return None;
            } else {
                self.leaves.label(&shown)
            };
            Some(((*label).into(), new.into()))
        });
        pairs.collect()
    }
}

/// The tree over all leaves of a balanced tree in which the labels of a release are found; `None` if they
/// cannot come from one tree.
pub(super) fn with_labels(
    tree: &Tree,
    kind: ColumnKind,
    labels: &BTreeSet<&str>,
) -> Option<TaxonomyNode> {
    let leaves = Leaves::of_tree(tree, kind)?;
    let places = leaves.places();
    let nodes = labels.iter().filter_map(|label| {
        let found = leaves.find(label, &places)?;
        Some((found.start, found.end))
    });
    leaves.over(0..leaves.count(), &nodes.collect())
}

/// The leaves of a balanced `ranges` hierarchy.
///
/// # Errors
/// As [`Leaves::of_numbers`].
pub(super) fn ranges(
    values: &Values,
    start: Option<f64>,
    widths: Option<&[f64]>,
    limits: TreeLimits,
) -> Result<Leaves, String> {
    let widths = widths_or_default(widths, values);
    let width = widths.first().copied().ok_or("has no width")?;
    Leaves::of_numbers(values, start, width, limits)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Leaves, Released, ends, with_labels};
    use crate::definition::{ColumnKind, TaxonomyNode};
    use crate::taxonomy::{Tree, TreeLimits};

    fn labels(text: &str) -> Leaves {
        Leaves::Labels(text.chars().map(String::from).collect())
    }

    /// `(a b (c d))`: the labels of leaves, with parentheses around each inner node but the root.
    fn shape(node: &TaxonomyNode) -> String {
        if node.children.is_empty() {
            return node.label.clone();
        }
        let children: Vec<String> = node.children.iter().map(shape).collect();
        format!("({})", children.join(" "))
    }

    fn tree(root: &TaxonomyNode) -> Tree {
        let limits = TreeLimits::default();
        Tree::with_missing_below(root, limits, limits.depth).unwrap()
    }

    /// By hand: 252 rows; 126 is nearer to 100 than to 180. Of the rest, 152, 76 is nearer to 80. Of
    /// `c d e`, 72, 36 is nearer to 50 than to 70, or to nothing.
    #[test]
    fn parts_have_like_numbers_of_rows() {
        let rows = [100, 80, 50, 20, 2];
        assert_eq!(shape(&labels("abcde").draw(&rows, 2)), "(a (b (c (d e))))");
        assert_eq!(
            shape(&labels("abcde").draw(&[1; 5], 2)),
            "((a b) (c (d e)))"
        );
        assert_eq!(shape(&labels("abcd").draw(&[0; 4], 2)), "((a b) (c d))");
        assert_eq!(
            shape(&labels("abcdef").draw(&[1; 6], 3)),
            "((a b) (c d) (e f))"
        );
        assert_eq!(ends(&[0, 0, 9], 2), [1, 3]);
        assert_eq!(ends(&[9, 0, 0], 2), [1, 3]);
        assert_eq!(ends(&[5], 2), [1]);
    }

    #[test]
    fn no_tree_is_too_deep() {
        let rows: Vec<u64> = (0..60).map(|leaf| 1u64 << (60 - leaf)).collect();
        let leaves = Leaves::Labels((0..60).map(|leaf| leaf.to_string()).collect());
        let tree = tree(&leaves.draw(&rows, 2));
        assert!(tree.depth() < 40, "{}", tree.depth());
    }

    #[test]
    fn labels_of_intervals_are_found_again() {
        let leaves = Leaves::Labels(
            ["a", "a..b", "b", "c..", "d", "\u{e9}"]
                .map(String::from)
                .to_vec(),
        );
        for start in 0..6 {
            for end in start + 1..=6 {
                let label = leaves.label(&(start..end));
                let found = leaves.find(&label, &leaves.places());
                assert_eq!(found, Some(start..end), "{label}");
            }
        }
        assert_eq!(leaves.find("d..a", &leaves.places()), None);
        assert_eq!(leaves.find("a..x\u{e9}", &leaves.places()), None);
        assert_eq!(leaves.find("x", &leaves.places()), None);
    }

    /// Which leaves a label covers does not show where suppressed rows are. No row of `c` is released, so
    /// `c` is on the left side of the end, wherever the search put it.
    #[test]
    fn ends_move_to_released_leaves_and_only_released_nodes_are_shown() {
        let all = labels("abcdef");
        for rows in [[4, 4, 0, 1, 4, 3], [4, 3, 1, 1, 4, 3]] {
            let searched = tree(&all.draw(&rows, 2));
            let left = if searched.find("a..c").is_some() {
                "a..c"
            } else {
                "a..b"
            };
            let right = if left == "a..c" { "d..f" } else { "c..f" };
            let shown = BTreeSet::from([left, right]);
            let released =
                Released::new(&searched, ColumnKind::Categorical, &[4, 3, 0, 1, 4, 3]).unwrap();
            let root = released.root(&shown).unwrap();
            assert_eq!(shape(&root), "((a b c) (d e f))");
            let new = released.relabelled(&shown);
            assert_eq!((&*new[left], &*new[right]), ("a..c", "d..f"));
            let checked = with_labels(
                &searched,
                ColumnKind::Categorical,
                &BTreeSet::from(["a..c", "d..f"]),
            );
            assert_eq!(shape(&checked.unwrap()), "((a b c) (d e f))");
        }
        let searched = tree(&all.draw(&[1; 6], 2));
        assert_eq!(
            with_labels(
                &searched,
                ColumnKind::Categorical,
                &BTreeSet::from(["a..c", "b..d"])
            ),
            None
        );
    }

    /// A leaf next to leaves without released rows keeps its label.
    fn released_leaf(tree: &Tree) -> Box<str> {
        let released = Released::new(tree, ColumnKind::Numeric, &[5, 5, 0, 10]).unwrap();
        let shown = BTreeSet::from(["[10,20)"]);
        released.relabelled(&shown)["[10,20)"].clone()
    }

    #[test]
    fn balanced_ranges_end_at_released_numbers() {
        let values = [("3", 5), ("12", 5), ("37", 5), ("38", 5), ("95", 1)];
        let values = values.map(|(value, rows)| (value.to_owned(), rows)).into();
        let limits = TreeLimits::default();
        let leaves = Leaves::of_numbers(&values, None, 10.0, limits).unwrap();
        let rows = leaves.rows(&values);
        assert_eq!(rows, [5, 5, 0, 10, 0, 0, 0, 0, 0, 1, 0]);
        let searched = tree(&leaves.draw(&rows, 2));
        // 21 rows: 10 are before 20, and 11 after.
        let shown = BTreeSet::from(["[0,20)", "[20,110)"]);
        assert!(shown.iter().all(|label| searched.find(label).is_some()));
        let leaf = released_leaf(&searched);
        assert_eq!(&*leaf, "[10,20)");
        // The row with 95 is suppressed, and no released row is in [20,30).
        let released = Released::new(&searched, ColumnKind::Numeric, &[5, 5, 0, 10]).unwrap();
        let root = released.root(&shown).unwrap();
        assert_eq!(root.label, "[0,40)");
        let new = released.relabelled(&shown);
        assert_eq!((&*new["[0,20)"], &*new["[20,110)"]), ("[0,30)", "[30,40)"));
        assert_eq!(shape(&root), "(([0,10) [10,20) [20,30)) [30,40))");
    }
}
