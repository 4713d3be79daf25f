//! The examples of a node, and how its classes are distributed over the codes of an attribute.

use super::examples::{AttributeCodes, Examples, MOST_CLASSES, NarrowCodes};
use super::features::MOST_VALUES;

/// Class and weight of each example of a node, in the order of its rows.
#[derive(Default)]
pub(super) struct NodeClasses {
    of_row: Vec<(u32, u32)>,
    /// Weight of each class.
    totals: Vec<u64>,
}

impl NodeClasses {
    /// Reads the examples of these rows, with the weights of all examples.
    pub(super) fn read(&mut self, examples: &Examples, weights: &[u32], rows: &[u32]) {
        self.of_row.clear();
        self.totals.clear();
        self.totals.resize(examples.class_count as usize, 0);
        for &row in rows {
            let (class, weight) = (examples.classes[row as usize], weights[row as usize]);
            self.of_row.push((class, weight));
            self.totals[class as usize] += u64::from(weight);
        }
    }

    /// Class and weight of each row, in the order of the rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, u32)> {
        self.of_row.iter().copied()
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
    ends: Vec<u32>,
    /// The classes that occur with a code and their weights, code after code.
    classes: Vec<(u32, u32)>,
    /// Weights by attribute, code and class: those of narrow attributes at the places of [`NarrowCodes`]. 0
    /// between uses.
    dense: Vec<u32>,
    /// Where the weights of each attribute of the node begin in `dense`; `None` for one that is counted by
    /// itself.
    starts: Vec<Option<usize>>,
    /// The narrow attributes of the node that are not counted by themselves.
    counted: Vec<usize>,
    /// Code and class of each row in one number, which sorts faster than two, and weight.
    sorted: Vec<(u64, u32)>,
}

/// Bytes that a tree needs for this many rows, beside its examples: the rows twice, their branches and
/// weights, a node for each, the totals of the parts of a node, the weights below each threshold, and what
/// [`NodeClasses`] and [`CodeCounts`] keep.
pub(super) fn growth_bytes(rows: u64) -> u64 {
    const NODE: u64 = 96;
    const ROW: u64 = 4 * 4 + 8 + (4 + 4 + 8) + 16 + 8 + NODE;
    const TOTALS: u64 = 8 * MOST_CLASSES as u64;
    const MOST_TOTALS: u64 = (MOST_VALUES as u64 + 2) * TOTALS;
    const NARROW: u64 = 4 * NarrowCodes::MOST_PLACES as u64;
    let dense = rows.saturating_mul(4 * MOST_PLACES_A_ROW as u64);
    rows.saturating_mul(ROW)
        .saturating_add(dense)
        .saturating_add(NARROW)
        .saturating_add(rows.saturating_mul(TOTALS).min(MOST_TOTALS))
}

impl CodeCounts {
    /// Counts the narrow ones of some attributes over the rows of a node, which `of_node` has read, in one
    /// pass. [`Self::count`] has the counts of each.
    ///
    /// A row adds to as many places as there are attributes: an addition that waits for the one before it
    /// at the same place, as with attributes of which most rows have one code, does not hold up the others.
    pub(super) fn count_narrow(
        &mut self,
        examples: &Examples,
        attributes: &[usize],
        rows: &[u32],
        of_node: &NodeClasses,
    ) {
        let classes = of_node.totals.len();
        let narrow = &examples.narrow;
        self.starts.clear();
        self.counted.clear();
        for &position in attributes {
            let attribute = &examples.attributes[position];
            let places = attribute.domain.code_count() * classes;
            let is_dense = places <= rows.len().saturating_mul(MOST_PLACES_A_ROW);
            self.starts.push(match attribute.codes {
                AttributeCodes::Narrow(number) if is_dense => {
                    let end = narrow.starts[number] + places;
                    if self.dense.len() < end {
                        self.dense.resize(end, 0);
                    }
                    self.counted.push(number);
                    Some(narrow.starts[number])
                }
                _ => None,
            });
        }
        let (dense, counted) = (&mut self.dense[..], &self.counted[..]);
        let weighted = rows.iter().zip(&of_node.of_row);
        if counted.len() == narrow.starts.len() {
            for (&row, &(_, weight)) in weighted {
                for &place in narrow.places(row) {
                    dense[usize::from(place)] += weight;
                }
            }
        } else if !counted.is_empty() {
            for (&row, &(_, weight)) in weighted {
                let places = narrow.places(row);
                for &number in counted {
                    dense[usize::from(places[number])] += weight;
                }
            }
        }
    }

    /// The counts of the attribute with this number among those that [`Self::count_narrow`] was given.
    /// Costs at most [`MOST_PLACES_A_ROW`] places a row; or, for one that is not counted yet, a look at
    /// each row in their order, or sorts the rows.
    pub(super) fn count(
        &mut self,
        number: usize,
        examples: &Examples,
        position: usize,
        rows: &[u32],
        of_node: &NodeClasses,
    ) {
        let attribute = &examples.attributes[position];
        self.codes.clear();
        self.ends.clear();
        self.classes.clear();
        let classes = of_node.totals.len();
        let places = attribute.domain.code_count() * classes;
        let is_ascending = examples.ascending == Some(position);
        let is_dense = places <= rows.len().saturating_mul(MOST_PLACES_A_ROW);
        match (&attribute.codes, self.starts[number]) {
            (_, Some(start)) => self.read_dense(start, places, classes),
            (AttributeCodes::Wide(codes), None) if is_dense && !is_ascending => {
                self.count_dense(codes, places, rows, of_node);
            }
            _ => {
                let code = |row| examples.code(position, row);
                self.count_sorted(code, is_ascending, rows, of_node);
            }
        }
    }

    /// Counts an attribute with many codes behind the narrow ones.
    fn count_dense(&mut self, codes: &[u32], places: usize, rows: &[u32], of_node: &NodeClasses) {
        let classes = of_node.totals.len();
        let start = self.dense.len();
        self.dense.resize(start + places, 0);
        let dense = &mut self.dense[start..];
        for (&row, &(class, weight)) in rows.iter().zip(&of_node.of_row) {
            dense[codes[row as usize] as usize * classes + class as usize] += weight;
        }
        self.read_dense(start, places, classes);
        self.dense.truncate(start);
    }

    /// Moves the weights of an attribute out of `dense`.
    fn read_dense(&mut self, start: usize, places: usize, classes: usize) {
        let codes = self.dense[start..start + places].chunks_exact_mut(classes);
        for (code, weights) in (0..).zip(codes) {
            let before = self.classes.len();
            for (class, weight) in (0..).zip(weights) {
                let weight = std::mem::take(weight);
                if weight > 0 {
                    self.classes.push((class, weight));
                }
            }
            if self.classes.len() > before {
                self.codes.push(code);
                self.ends.push(self.classes.len() as u32);
            }
        }
    }

    fn count_sorted(
        &mut self,
        code: impl Fn(u32) -> u32,
        is_ascending: bool,
        rows: &[u32],
        of_node: &NodeClasses,
    ) {
        let rows = rows.iter().zip(&of_node.of_row);
        let rows = rows.map(|(&row, &(class, weight))| {
            (u64::from(code(row)) << 32 | u64::from(class), weight)
        });
        if is_ascending {
            self.add_ascending(rows);
        } else {
            let mut sorted = std::mem::take(&mut self.sorted);
            sorted.extend(rows);
            sorted.sort_unstable_by_key(|&(key, _)| key);
            self.add_ascending(sorted.drain(..));
            self.sorted = sorted;
        }
    }

    /// Adds rows whose codes and classes ascend, in one number, with their weights.
    fn add_ascending(&mut self, rows: impl Iterator<Item = (u64, u32)>) {
        let mut last_key = None;
        for (key, weight) in rows {
            let (code, class) = ((key >> 32) as u32, key as u32);
            match self.classes.last_mut() {
                Some((_, sum)) if last_key == Some(key) => *sum += weight,
                _ => self.classes.push((class, weight)),
            }
            last_key = Some(key);
            if self.codes.last() != Some(&code) {
                self.codes.push(code);
                self.ends.push(0);
            }
            if let Some(end) = self.ends.last_mut() {
                *end = self.classes.len() as u32;
            }
        }
    }

    /// The codes that occur, ascending, each with its classes and their weights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[(u32, u32)])> {
        (0..self.len()).map(|place| self.at(place))
    }

    /// A code that occurs, by its number among these, with its classes and their weights.
    #[inline]
    pub(super) fn at(&self, place: usize) -> (u32, &[(u32, u32)]) {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        let classes = &self.classes[start as usize..self.ends[place] as usize];
        (self.codes[place], classes)
    }

    /// The classes of `code` and their weights, where it is the last code that occurs.
    pub(super) fn last(&self, code: u32) -> Option<&[(u32, u32)]> {
        let (last, classes) = self.at(self.len().checked_sub(1)?);
        (last == code).then_some(classes)
    }

    /// Number of codes that occur.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }
}
