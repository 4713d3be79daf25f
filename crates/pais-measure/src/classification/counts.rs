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

/// Greatest size of the array of all codes and classes, in places for each row of the node. Where it
/// would be larger, the rows are sorted instead, so that a node of few rows does not read all codes of a
/// column with many.
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
    /// Weights by code and class of every other row, then those of the others; 0 between uses.
    dense: Vec<u64>,
    /// Code and class of each row in one number, which sorts faster than two, and weight.
    sorted: Vec<(u64, u32)>,
}

/// Bytes that a tree needs for each row that it learns from, beside its examples: the rows twice, their
/// branches, and what [`NodeClasses`] and [`CodeCounts`] keep.
pub(super) const GROWTH_ROW_BYTES: u64 =
    3 * 4 + 8 + (4 + 8 + 16) + 2 * 8 * MOST_PLACES_A_ROW as u64 + 16;

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
        if self.dense.len() < 2 * places {
            self.dense.resize(2 * places, 0);
        }
        let (even, odd) = self.dense[..2 * places].split_at_mut(places);
        let place = |row: u32, class: u32| codes[row as usize] as usize * classes + class as usize;
        // Rows in turns, since most rows of a column often have one code, and an addition waits for the
        // one before it at the same place.
        let (pairs, last) = rows.as_chunks::<2>();
        let (of_pairs, of_last) = of_node.of_row.as_chunks::<2>();
        for (&[one, other], &[of_one, of_other]) in pairs.iter().zip(of_pairs) {
            even[place(one, of_one.0)] += u64::from(of_one.1);
            odd[place(other, of_other.0)] += u64::from(of_other.1);
        }
        for (&row, &(class, weight)) in last.iter().zip(of_last) {
            even[place(row, class)] += u64::from(weight);
        }
        let codes = even.chunks_exact_mut(classes);
        let codes = codes.zip(odd.chunks_exact_mut(classes));
        for (code, (even, odd)) in (0..).zip(codes) {
            let before = self.classes.len();
            for (class, (even, odd)) in (0..).zip(even.iter_mut().zip(odd)) {
                let weight = std::mem::take(even) + std::mem::take(odd);
                if weight > 0 {
                    self.classes.push((class, weight));
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
        let rows = rows.map(|(&row, &(class, weight))| {
            (
                u64::from(codes[row as usize]) << 32 | u64::from(class),
                weight,
            )
        });
        self.sorted.clear();
        self.sorted.extend(rows);
        self.sorted.sort_unstable_by_key(|&(key, _)| key);
        let mut last_key = None;
        for &(key, weight) in &self.sorted {
            let (code, class) = ((key >> 32) as u32, key as u32);
            match self.classes.last_mut() {
                Some((_, sum)) if last_key == Some(key) => *sum += u64::from(weight),
                _ => self.classes.push((class, u64::from(weight))),
            }
            last_key = Some(key);
            if self.codes.last() != Some(&code) {
                self.codes.push(code);
                self.ends.push(0);
            }
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

    /// The classes of `code` and their weights, where it is the last code that occurs.
    pub(super) fn last(&self, code: u32) -> Option<&[(u32, u64)]> {
        let start = self.ends.len().checked_sub(2).map_or(0, |at| self.ends[at]);
        (self.codes.last() == Some(&code)).then(|| &self.classes[start..])
    }

    /// Number of codes that occur.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }
}
