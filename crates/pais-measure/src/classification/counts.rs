//! The examples of a node, and how its classes are distributed over the codes of an attribute.

use super::examples::{Attribute, Examples};

/// Class and weight of each example of a node, in the order of its rows.
#[derive(Default)]
pub(super) struct NodeClasses {
    of_row: Vec<(u32, u32)>,
    /// Weight of each class.
    totals: Vec<u64>,
}

impl NodeClasses {
    /// Reads the examples of these rows.
    pub(super) fn read(&mut self, examples: &Examples, rows: &[u32]) {
        self.of_row.clear();
        self.totals.clear();
        self.totals.resize(examples.class_count as usize, 0);
        for &row in rows {
            let (class, weight) = (
                examples.classes[row as usize],
                examples.weights[row as usize],
            );
            self.of_row.push((class, weight));
            self.totals[class as usize] += u64::from(weight);
        }
    }

    /// Weight of each class.
    pub(super) fn totals(&self) -> &[u64] {
        &self.totals
    }
}

/// Codes are counted in an array of all codes and classes where it has at most so many places for each
/// row. Else the rows are sorted, so that a node of few rows does not read all codes of a column with
/// many.
const MOST_PLACES_A_ROW: usize = 4;

/// Class counts of the codes of an attribute at a node; kept between nodes for its memory.
#[derive(Default)]
pub(super) struct CodeCounts {
    /// The codes that occur, ascending.
    codes: Vec<u32>,
    /// Where the classes of each code end in `classes`.
    ends: Vec<usize>,
    /// The classes that occur with a code and their weights, code after code.
    classes: Vec<(u32, u64)>,
    /// Weights by code and class, 0 between uses.
    dense: Vec<u64>,
    /// Code, class and weight of each row.
    sorted: Vec<(u32, u32, u32)>,
}

/// Bytes that a tree needs for each row that it learns from, beside its examples: the rows twice, their
/// branches, and what [`NodeClasses`] and [`CodeCounts`] keep.
pub(super) const GROWTH_ROW_BYTES: u64 =
    3 * 4 + 8 + (4 + 8 + 16) + 8 * MOST_PLACES_A_ROW as u64 + 12;

impl CodeCounts {
    /// Counts an attribute over the rows of a node, which `of_node` has read. Costs a look at each row in
    /// their order and at most [`MOST_PLACES_A_ROW`] places a row, or sorts the rows.
    pub(super) fn count(&mut self, attribute: &Attribute, rows: &[u32], of_node: &NodeClasses) {
        self.codes.clear();
        self.ends.clear();
        self.classes.clear();
        let places = attribute.domain.code_count() * of_node.totals.len();
        if places <= rows.len().saturating_mul(MOST_PLACES_A_ROW) {
            self.count_dense(&attribute.codes, places, rows, of_node);
        } else {
            self.count_sorted(&attribute.codes, rows, of_node);
        }
    }

    fn count_dense(&mut self, codes: &[u32], places: usize, rows: &[u32], of_node: &NodeClasses) {
        let classes = of_node.totals.len();
        if self.dense.len() < places {
            self.dense.resize(places, 0);
        }
        let dense = &mut self.dense[..places];
        for (&row, &(class, weight)) in rows.iter().zip(&of_node.of_row) {
            dense[codes[row as usize] as usize * classes + class as usize] += u64::from(weight);
        }
        for (code, of_code) in (0..).zip(dense.chunks_exact_mut(classes)) {
            let before = self.classes.len();
            for (class, weight) in (0..).zip(of_code) {
                if *weight > 0 {
                    self.classes.push((class, std::mem::take(weight)));
                }
            }
            if self.classes.len() > before {
                self.codes.push(code);
                self.ends.push(self.classes.len());
            }
        }
    }

    fn count_sorted(&mut self, codes: &[u32], rows: &[u32], of_node: &NodeClasses) {
        let rows = rows.iter().zip(&of_node.of_row);
        let rows = rows.map(|(&row, &(class, weight))| (codes[row as usize], class, weight));
        self.sorted.clear();
        self.sorted.extend(rows);
        self.sorted.sort_unstable();
        let mut last_class = None;
        for &(code, class, weight) in &self.sorted {
            if self.codes.last() != Some(&code) {
                self.codes.push(code);
                self.ends.push(self.classes.len());
                last_class = None;
            }
            match self.classes.last_mut() {
                Some((_, sum)) if last_class == Some(class) => *sum += u64::from(weight),
                _ => self.classes.push((class, u64::from(weight))),
            }
            last_class = Some(class);
            if let Some(end) = self.ends.last_mut() {
                *end = self.classes.len();
            }
        }
    }

    /// The codes that occur, ascending, each with its classes and their weights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[(u32, u64)])> {
        let mut start = 0;
        self.codes.iter().zip(&self.ends).map(move |(&code, &end)| {
            let from = std::mem::replace(&mut start, end);
            (code, &self.classes[from..end])
        })
    }

    /// Number of codes that occur.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }
}
