//! The generalization hierarchy of a relational column, and the current level of the column.

use std::ops::Range;

use pais_core::definition::ColumnKind;
use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::taxonomy::{Interval, MISSING_LABEL, MinimumLevels, NodeId, Tree};
use pais_measure::node_ncp;

use crate::published_cut::Cut;

/// A value (node) of the hierarchy.
#[derive(Clone)]
struct HierarchyValue {
    /// Index of the parent; the root is its own parent.
    parent: u32,
    /// 0 for the root.
    depth: u32,
    label: String,
    /// NCP of the value, from 0 to 1.
    ncp: f64,
}

/// A relational column at its current level. Every code is generalized to its ancestor at the
/// current depth, or to its own lowest value where that is higher.
///
/// The hierarchy of a column with a taxonomy is the taxonomy. A numeric column without a taxonomy
/// has a binary tree of intervals over its values: each interval is split at the value that divides
/// its rows most evenly, the lowest on a tie, until a single value is left. Missing cells are split
/// off at the root.
#[derive(Clone)]
pub(super) struct Hierarchy<'a> {
    column: &'a QuasiIdentifier,
    values: Vec<HierarchyValue>,
    /// The lowest value to which each code may be released.
    lowest: Vec<u32>,
    /// Number of rows by code, without suppressed rows.
    rows: Vec<u64>,
    /// The current level; 0 is the root.
    depth: u32,
    /// The deepest level that any row reaches.
    deepest: u32,
    /// The cached result of `gain`; `None` after a change.
    gain: Option<f64>,
}

impl<'a> Hierarchy<'a> {
    /// The column at its topmost value. `minimum_levels` is its pre-generalization: the lowest node that
    /// may be released for each leaf.
    pub(super) fn new(
        column: &'a QuasiIdentifier,
        kind: ColumnKind,
        minimum_levels: Option<&MinimumLevels>,
    ) -> Self {
        let rows = column.codes.counts(column.domain.code_count());
        let (values, lowest) = match &column.domain {
            Domain::Taxonomy(tree) => taxonomy_values(tree, kind, minimum_levels),
            Domain::Numeric {
                values,
                lo,
                hi,
                missing,
                scale,
                ..
            } => {
                let outermost = Interval::closed(*lo, *hi).on(*scale);
                IntervalTree::build(&column.domain, values, outermost, *missing, &rows)
            }
        };
        let present = lowest.iter().zip(&rows).filter(|(_, rows)| **rows > 0);
        let depths = present.map(|(&value, _)| values[value as usize].depth);
        Self {
            column,
            deepest: depths.max().unwrap_or(0),
            values,
            lowest,
            rows,
            depth: 0,
            gain: None,
        }
    }

    /// The encoded column.
    pub(super) fn column(&self) -> &'a QuasiIdentifier {
        self.column
    }

    /// Whether the column is at its deepest level.
    pub(super) fn is_exhausted(&self) -> bool {
        self.depth >= self.deepest
    }

    /// Number of values in the hierarchy.
    pub(super) fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The value of each code at the next level down.
    pub(super) fn next_level(&self) -> Vec<u32> {
        self.level(self.depth + 1)
    }

    /// The decrease of the column's NCP by the next level down, summed over the rows.
    pub(super) fn gain(&mut self) -> f64 {
        if let Some(gain) = self.gain {
            return gain;
        }
        let above = self.level(self.depth);
        let below = self.next_level();
        let ncp = |value: u32| self.values[value as usize].ncp;
        let pairs = above.iter().zip(&below).zip(&self.rows);
        let gain = pairs
            .map(|((&above, &below), &rows)| rows as f64 * (ncp(above) - ncp(below)))
            .sum();
        self.gain = Some(gain);
        gain
    }

    /// The current level.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// The deepest level that any row reaches.
    pub(super) fn deepest(&self) -> u32 {
        self.deepest
    }

    /// NCP of each code's value at a level.
    pub(super) fn ncp_at(&self, depth: u32) -> Vec<f64> {
        let level = self.level(depth);
        let ncp = |value: u32| self.values[value as usize].ncp;
        level.into_iter().map(ncp).collect()
    }

    /// NCP of the column at a level, summed over the rows that are not suppressed.
    pub(super) fn loss_at(&self, depth: u32) -> f64 {
        let pairs = self.ncp_at(depth).into_iter().zip(&self.rows);
        pairs.map(|(ncp, &rows)| rows as f64 * ncp).sum()
    }

    /// Moves the whole column to a level.
    pub(super) fn move_to(&mut self, depth: u32) {
        self.depth = depth;
        self.gain = None;
    }

    /// Moves the whole column one level down.
    pub(super) fn descend(&mut self) {
        self.depth += 1;
        self.gain = None;
    }

    /// Removes a suppressed row from the counts.
    pub(super) fn remove_row(&mut self, row: u32) {
        self.rows[self.column.codes.at(row as usize) as usize] -= 1;
        self.gain = None;
    }

    /// The current cut: its labels in the order of the codes, and the label of each code.
    pub(super) fn cut(&self) -> Cut {
        self.cut_at(self.depth)
    }

    /// The cut at a level, as [`Hierarchy::cut`].
    pub(super) fn cut_at(&self, depth: u32) -> Cut {
        let level = self.level(depth);
        let mut number = vec![u32::MAX; self.values.len()];
        let mut labels = Vec::new();
        let mut label_of = Vec::with_capacity(level.len());
        for value in level {
            let number = &mut number[value as usize];
            if *number == u32::MAX {
                *number = labels.len() as u32;
                labels.push(self.values[value as usize].label.clone());
            }
            label_of.push(*number);
        }
        Cut { labels, label_of }
    }

    /// The value of each code at a depth.
    pub(super) fn level(&self, depth: u32) -> Vec<u32> {
        let ancestor = |&lowest: &u32| {
            let mut value = lowest;
            while self.values[value as usize].depth > depth {
                value = self.values[value as usize].parent;
            }
            value
        };
        self.lowest.iter().map(ancestor).collect()
    }
}

/// The values of a taxonomy, and the lowest value of each leaf.
fn taxonomy_values(
    tree: &Tree,
    kind: ColumnKind,
    minimum_levels: Option<&MinimumLevels>,
) -> (Vec<HierarchyValue>, Vec<u32>) {
    let mut values: Vec<HierarchyValue> = Vec::with_capacity(tree.nodes().len());
    for (node, ncp) in tree.nodes().iter().zip(node_ncp(tree, kind)) {
        let parent = node.parent.unwrap_or(NodeId::ROOT).0;
        // Parents come before their children.
        let depth = node
            .parent
            .map_or(0, |parent| values[parent.index()].depth + 1);
        values.push(HierarchyValue {
            parent,
            depth,
            label: node.label.to_string(),
            ncp,
        });
    }
    let lowest = |leaf: u32| match minimum_levels {
        Some(minimum_levels) => minimum_levels.level_of(leaf).0,
        None => tree.leaf(leaf).0,
    };
    let lowest = (0..tree.leaf_count() as u32).map(lowest).collect();
    (values, lowest)
}

/// A binary tree of intervals under construction.
struct IntervalTree<'a> {
    domain: &'a Domain,
    /// Number of rows with codes below each code: cumulative counts, one entry more than codes.
    before: Vec<u64>,
    /// Width of the domain.
    width: f64,
    values: Vec<HierarchyValue>,
    lowest: Vec<u32>,
}

impl<'a> IntervalTree<'a> {
    /// Builds the tree; returns its values, and the lowest value of each code.
    fn build(
        domain: &'a Domain,
        numbers: &'a [f64],
        outermost: Interval,
        missing: bool,
        rows: &[u64],
    ) -> (Vec<HierarchyValue>, Vec<u32>) {
        let mut before = vec![0];
        for rows in &rows[..numbers.len()] {
            before.push(before[before.len() - 1] + rows);
        }
        let mut tree = Self {
            domain,
            before,
            width: outermost.width(),
            values: Vec::new(),
            lowest: vec![0; rows.len()],
        };
        let root = tree.add(0, outermost);
        let all = 0..numbers.len();
        let has_children = tree.divide(root, outermost, all);
        if missing && has_children {
            tree.lowest[numbers.len()] = tree.values.len() as u32;
            tree.values.push(HierarchyValue {
                parent: root,
                depth: 1,
                label: MISSING_LABEL.to_owned(),
                ncp: 0.0,
            });
        }
        (tree.values, tree.lowest)
    }

    /// Adds an interval below `parent` and returns its index.
    fn add(&mut self, parent: u32, interval: Interval) -> u32 {
        let id = self.values.len() as u32;
        let depth = match self.values.get(parent as usize) {
            Some(parent) => parent.depth + 1,
            None => 0,
        };
        let ncp = if self.width > 0.0 {
            interval.width() / self.width
        } else {
            0.0
        };
        self.values.push(HierarchyValue {
            parent,
            depth,
            label: interval.to_string(),
            ncp,
        });
        id
    }

    /// Builds the subtree below an interval over these codes; returns whether it has any values.
    /// Both halves of each interval have rows, and without rounding the depth stays within about 1.5
    /// times the logarithm of the number of rows.
    fn divide(&mut self, value: u32, interval: Interval, codes: Range<usize>) -> bool {
        self.lowest[codes.clone()].fill(value);
        if codes.len() < 2 {
            return false;
        }
        let Some((point, at)) = self.middle(codes.clone()) else {
            return false;
        };
        let below = Interval {
            hi: at,
            closed: false,
            ..interval
        };
        let above = Interval { lo: at, ..interval };
        let id = self.add(value, below);
        self.divide(id, below, codes.start..point);
        let id = self.add(value, above);
        self.divide(id, above, point..codes.end);
        true
    }

    /// The code, other than the first, that divides the rows most evenly into those below it and
    /// the others, with the end between them; `None` where no end may be between any two.
    fn middle(&self, codes: Range<usize>) -> Option<(usize, f64)> {
        let (first, last) = (self.before[codes.start], self.before[codes.end]);
        let uneven = |code: usize| {
            let left = self.before[code] - first;
            left.abs_diff(last - first - left)
        };
        let inner = codes.start + 1..codes.end;
        // Cumulative counts ascend, so the best code is one of the two next to half of the rows,
        // or with rounding the nearest one to either side of it.
        let half = |&before: &u64| 2 * (before - first) < last - first;
        let after = inner.start + self.before[inner.clone()].partition_point(half);
        let end = |code: usize| Some((code, self.domain.split_point(code as u32)?));
        let below = (inner.start..after.min(inner.end)).rev().find_map(end);
        let above = (after..inner.end).find_map(end);
        let candidates = [below, above].into_iter().flatten();
        candidates.min_by_key(|(code, _)| uneven(*code))
    }
}

#[cfg(test)]
mod tests {
    use super::Hierarchy;
    use pais_core::definition::ColumnKind;
    use pais_core::table::codes::Codes;
    use pais_core::table::{Domain, QuasiIdentifier};

    fn ages(values: Vec<f64>, missing: bool, codes: Vec<u32>) -> QuasiIdentifier {
        QuasiIdentifier {
            name: "age".into(),
            position: 0,
            domain: Domain::Numeric {
                values,
                lo: 0.0,
                hi: 100.0,
                missing,
                scale: pais_core::taxonomy::Scale::Number,
                round: None,
                ends: None,
            },
            codes: Codes::Four(codes.into()),
        }
    }

    fn levels(column: &QuasiIdentifier) -> Vec<Vec<String>> {
        let mut hierarchy = Hierarchy::new(column, ColumnKind::Numeric, None);
        let mut levels = vec![hierarchy.cut().labels];
        while !hierarchy.is_exhausted() {
            hierarchy.descend();
            levels.push(hierarchy.cut().labels);
        }
        levels
    }

    #[test]
    fn intervals_are_halved_by_rows_down_to_single_values() {
        let column = ages(
            vec![10.0, 20.0, 30.0, 60.0],
            true,
            vec![0, 1, 1, 2, 3, 3, 4],
        );
        let expected: [&[&str]; 3] = [
            &["[0,100]"],
            &["[0,30)", "[30,100]", "?"],
            &["[0,20)", "[20,30)", "[30,60)", "[60,100]", "?"],
        ];
        assert_eq!(levels(&column), expected);
    }

    #[test]
    fn the_gain_is_the_decrease_of_ncp_by_the_next_level() {
        let column = ages(
            vec![10.0, 20.0, 30.0, 60.0],
            true,
            vec![0, 1, 1, 2, 3, 3, 4],
        );
        let mut hierarchy = Hierarchy::new(&column, ColumnKind::Numeric, None);
        // 3 rows go from 1 to 0.3, 3 rows to 0.7, and the missing one to 0.
        assert!((hierarchy.gain() - (3.0 * 0.7 + 3.0 * 0.3 + 1.0)).abs() < 1e-12);
        hierarchy.remove_row(6);
        assert!((hierarchy.gain() - (3.0 * 0.7 + 3.0 * 0.3)).abs() < 1e-12);
    }

    #[test]
    fn missing_cells_are_not_split_off_a_single_number() {
        let column = ages(vec![10.0], true, vec![0, 1]);
        assert_eq!(levels(&column), [["[0,100]"]]);
        assert_eq!(
            Hierarchy::new(&column, ColumnKind::Numeric, None)
                .cut()
                .label_of,
            [0, 0]
        );
    }
}
