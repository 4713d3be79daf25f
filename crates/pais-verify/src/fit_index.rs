//! Which finished records fit which raw ones, and an index of raw records by what finished records
//! ask of them.
//!
//! The records are the leaves of a binary tree. Each inner node parts them at a code of one column,
//! or by whether a set has an item that a label covers, and knows the range of its codes and the
//! union of its items in each column. A search skips nodes without a record that can fit. Records
//! can be removed, so a search that has visited each record at most once takes about *n* log *n*.

use std::ops::{ControlFlow, Range};

use pais_core::table::codes::CodeRange;

/// Bits for the labels of items; labels of the same bit are not distinguished.
pub(super) type ItemBits = [u64; 4];

/// Number of bits of [`ItemBits`].
pub(super) const ITEM_BITS: usize = 256;

/// What a finished value asks of a raw one. It may ask for less than a fit.
#[derive(Clone, Debug)]
pub(super) enum Need {
    /// A code in a range, or the other one.
    Codes(Range<u32>, Option<u32>),
    /// A set with an item of each label.
    Items(ItemBits),
}

/// A raw value as the index sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Have {
    /// Its code.
    Code(u32),
    /// The labels that cover an item of the set.
    Items(ItemBits),
}

/// Which finished records fit which raw ones. A record has one number for each column.
pub(super) trait Fit {
    /// Number of columns.
    fn columns(&self) -> usize;

    /// A raw number of a column.
    fn have(&self, column: usize, raw: u32) -> Have;

    /// What a finished number of a column asks for; `None` if it fits no raw value.
    fn need(&self, column: usize, finished: u32) -> Option<Need>;

    /// Whether a finished record fits a raw one in all columns.
    fn fits(&self, finished: &[u32], raw: &[u32]) -> bool;
}

/// The numbers of the bits that are set.
fn ones(items: &ItemBits) -> impl Iterator<Item = usize> + '_ {
    items.iter().enumerate().flat_map(|(word, &bits)| {
        let next = move |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest != 0);
        let from = Some(bits).filter(|bits| *bits != 0);
        std::iter::successors(from, next)
            .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
    })
}

/// Whether all items that are needed are there.
fn has_all(items: &ItemBits, needed: &ItemBits) -> bool {
    let mut words = items.iter().zip(needed);
    words.all(|(items, needed)| needed & !items == 0)
}

/// Maximum number of records that are not parted further.
const LEAF: usize = 8;

/// The values of records, or what nodes know of the values of their records: the columns with codes
/// and those with items apart, in rows of equal width.
#[derive(Default)]
struct Rows<C> {
    codes: Vec<C>,
    items: Vec<ItemBits>,
}

impl<C> Rows<C> {
    /// Whether a row meets the needs; `has` says whether a row's codes meet one of them.
    fn meets(&self, row: usize, needs: &Needs, has: impl Fn(&C, &CodeNeed) -> bool) -> bool {
        let (codes, items) = (needs.codes.len(), needs.items.len());
        let mut codes = self.codes[row * codes..][..codes].iter().zip(&needs.codes);
        let mut items = self.items[row * items..][..items].iter().zip(&needs.items);
        codes.all(|(codes, need)| has(codes, need))
            && items.all(|(items, need)| has_all(items, need))
    }
}

/// What a finished record asks for, by column.
struct Needs {
    codes: Vec<CodeNeed>,
    items: Vec<ItemBits>,
}

/// A code from `start` to below `end`, or the other one.
struct CodeNeed {
    start: u32,
    end: u32,
    /// [`NO_CODE`] if there is none.
    other: u32,
}

/// Not a raw code.
const NO_CODE: u32 = u32::MAX;

struct Node {
    /// The node that this one is a part of; the root has itself.
    parent: u32,
    /// The second part, after the first, which is the next node; 0 if there are no parts.
    second: u32,
    /// The records in the order of the tree.
    records: Range<u32>,
}

/// The index of raw records.
pub(super) struct FitIndex<'a, F: Fit> {
    fit: &'a F,
    /// The records by number.
    raw: Vec<&'a [u32]>,
    /// Number of columns with codes, and of those with items.
    code_columns: usize,
    item_columns: usize,
    /// The values by record; while the tree is complete, in its order.
    values: Rows<u32>,
    /// The codes of each column with codes, in ascending order.
    sorted_codes: Vec<Vec<u32>>,
    /// For each column with items, the number of records that have each item, by bit.
    item_counts: Vec<[usize; ITEM_BITS]>,
    nodes: Vec<Node>,
    /// For each node from the least to the greatest codes, and the unions of the items.
    known: Rows<CodeRange>,
    /// The numbers of the records in the order of the tree.
    order: Vec<u32>,
    /// For each record, its node without parts.
    leaf_of: Vec<u32>,
}

/// Some of the records of an index.
#[derive(Clone)]
pub(super) struct RecordSet {
    contains: Vec<bool>,
    /// For each node, how many of its records are in the set.
    counts: Vec<u32>,
}

impl<'a, F: Fit> FitIndex<'a, F> {
    /// Indexes raw records.
    pub(super) fn new(fit: &'a F, raw: Vec<&'a [u32]>) -> Self {
        let has_items = |column: &usize| {
            let first = raw.first().map(|record| fit.have(*column, record[*column]));
            matches!(first, Some(Have::Items(_)))
        };
        let item_columns = (0..fit.columns()).filter(has_items).count();
        let mut index = Self {
            fit,
            code_columns: fit.columns() - item_columns,
            item_columns,
            values: Rows::default(),
            sorted_codes: Vec::new(),
            item_counts: Vec::new(),
            nodes: Vec::new(),
            known: Rows {
                codes: Vec::new(),
                items: Vec::new(),
            },
            order: (0..raw.len() as u32).collect(),
            leaf_of: vec![0; raw.len()],
            raw,
        };
        if !index.raw.is_empty() {
            index.values = index.values_in(&index.order);
            index.count();
            index.build();
            index.values = index.values_in(&index.order);
        }
        index
    }

    /// The values of records in this order.
    fn values_in(&self, order: &[u32]) -> Rows<u32> {
        let mut values = Rows {
            codes: Vec::with_capacity(order.len() * self.code_columns),
            items: Vec::with_capacity(order.len() * self.item_columns),
        };
        for &record in order {
            for (column, &number) in self.raw[record as usize].iter().enumerate() {
                match self.fit.have(column, number) {
                    Have::Code(code) => values.codes.push(code),
                    Have::Items(items) => values.items.push(items),
                }
            }
        }
        values
    }

    fn code(&self, record: u32, column: usize) -> u32 {
        self.values.codes[record as usize * self.code_columns + column]
    }

    fn items(&self, record: u32, column: usize) -> &ItemBits {
        &self.values.items[record as usize * self.item_columns + column]
    }

    fn count(&mut self) {
        let sorted = |column: usize| {
            let codes = self.order.iter().map(|&record| self.code(record, column));
            let mut codes: Vec<u32> = codes.collect();
            codes.sort_unstable();
            codes
        };
        self.sorted_codes = (0..self.code_columns).map(sorted).collect();
        let columns = 0..self.item_columns;
        self.item_counts = columns
            .map(|column| self.count_items(&self.order, column))
            .collect();
    }

    /// The number of records that have each item of a column, by bit.
    fn count_items(&self, records: &[u32], column: usize) -> [usize; ITEM_BITS] {
        let mut counts = [0usize; ITEM_BITS];
        for &record in records {
            ones(self.items(record, column)).for_each(|bit| counts[bit] += 1);
        }
        counts
    }

    fn build(&mut self) {
        let mut open = vec![(0u32, 0..self.order.len(), false)];
        let mut all = Vec::new();
        while let Some((parent, records, is_second)) = open.pop() {
            let node = self.nodes.len() as u32;
            if is_second {
                self.nodes[parent as usize].second = node;
            }
            let ranges = self.ranges_of(&self.order[records.clone()]);
            if node == 0 {
                all.clone_from(&ranges);
            }
            self.nodes.push(Node {
                parent,
                second: 0,
                records: records.start as u32..records.end as u32,
            });
            let middle = if records.len() > LEAF {
                self.part(records.clone(), &ranges, &all)
            } else {
                None
            };
            self.known.codes.extend(ranges);
            let unions = self.unions_of(&self.order[records.clone()]);
            self.known.items.extend(unions);
            if let Some(middle) = middle {
                open.push((node, middle..records.end, true));
                open.push((node, records.start..middle, false));
                continue;
            }
            for &record in &self.order[records] {
                self.leaf_of[record as usize] = node;
            }
        }
    }

    fn ranges_of(&self, records: &[u32]) -> Vec<CodeRange> {
        let columns = 0..self.code_columns;
        let range = |column| {
            let codes = records.iter().map(|&record| self.code(record, column));
            codes.fold(CodeRange::EMPTY, CodeRange::widened)
        };
        columns.map(range).collect()
    }

    fn unions_of(&self, records: &[u32]) -> Vec<ItemBits> {
        let columns = 0..self.item_columns;
        let union = |column| {
            let sets = records.iter().map(|&record| self.items(record, column));
            sets.fold(ItemBits::default(), |all, items| {
                std::array::from_fn(|word| all[word] | items[word])
            })
        };
        columns.map(union).collect()
    }

    /// Orders records so that those up to the result differ from the others in a column: the one
    /// with the widest range of codes, or the item that about half of the sets have. `None` if all
    /// are equal.
    fn part(
        &mut self,
        records: Range<usize>,
        ranges: &[CodeRange],
        all: &[CodeRange],
    ) -> Option<usize> {
        let widths = ranges.iter().zip(all).enumerate();
        let by_code = widths.map(|(column, (range, all))| {
            let whole = (all.last - all.first).max(1);
            let width = f64::from(range.last - range.first) / f64::from(whole);
            (width, Parting::Codes(column, 0))
        });
        let columns = 0..self.item_columns;
        let by_item = columns.map(|column| self.part_by_item(&records, column));
        let widest = by_code
            .chain(by_item)
            .filter(|(width, _)| *width > 0.0)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        let parting = match widest?.1 {
            Parting::Codes(column, _) => self.at_median(&records, column),
            item => item,
        };
        let (first, second): (Vec<u32>, Vec<u32>) = self.order[records.clone()]
            .iter()
            .partition(|&&record| self.is_first(record, &parting));
        let middle = records.start + first.len();
        self.order[records.start..middle].copy_from_slice(&first);
        self.order[middle..records.end].copy_from_slice(&second);
        (!first.is_empty() && !second.is_empty()).then_some(middle)
    }

    /// Parts the records at the median of a column's codes. The first part gets the median only
    /// where nothing is below it.
    fn at_median(&self, records: &Range<usize>, column: usize) -> Parting {
        let records = self.order[records.clone()].iter();
        let mut codes: Vec<u32> = records.map(|&record| self.code(record, column)).collect();
        let middle = codes.len() / 2;
        let median = *codes.select_nth_unstable(middle).1;
        let is_least = codes[..middle].iter().all(|&code| code == median);
        Parting::Codes(column, median + u32::from(is_least))
    }

    fn is_first(&self, record: u32, parting: &Parting) -> bool {
        match *parting {
            Parting::Codes(column, below) => self.code(record, column) < below,
            Parting::Item(column, bit) => {
                self.items(record, column)[bit / 64] >> (bit % 64) & 1 == 0
            }
        }
    }

    /// The item that about half of the sets have, and how evenly it parts them.
    fn part_by_item(&self, records: &Range<usize>, column: usize) -> (f64, Parting) {
        let counts = self.count_items(&self.order[records.clone()], column);
        let smaller_part = |count: usize| count.min(records.len() - count);
        let bits = counts.iter().enumerate();
        let best = bits.max_by_key(|(_, count)| smaller_part(**count));
        let (bit, count) = best.map_or((0, 0), |(bit, count)| (bit, *count));
        let evenness = 2.0 * smaller_part(count) as f64 / records.len() as f64;
        (evenness, Parting::Item(column, bit))
    }

    /// All records.
    pub(super) fn all(&self) -> RecordSet {
        let nodes = self.nodes.iter();
        RecordSet {
            contains: vec![true; self.raw.len()],
            counts: nodes.map(|node| node.records.len() as u32).collect(),
        }
    }

    /// Removes a record from a set, if the set contains it.
    pub(super) fn remove(&self, record: u32, from: &mut RecordSet) {
        if !std::mem::replace(&mut from.contains[record as usize], false) {
            return;
        }
        let mut node = self.leaf_of[record as usize];
        loop {
            from.counts[node as usize] -= 1;
            if node == 0 {
                break;
            }
            node = self.nodes[node as usize].parent;
        }
    }

    /// Visits the records of a set that a finished record fits, until `visit` breaks.
    pub(super) fn visit_fitting(
        &self,
        finished: &[u32],
        among: &RecordSet,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let Some(needs) = self.needs(finished) else {
            return;
        };
        let mut open: Vec<u32> = (0..self.nodes.len().min(1) as u32).collect();
        while let Some(number) = open.pop() {
            if among.counts[number as usize] == 0 || !self.can_meet(number as usize, &needs) {
                continue;
            }
            let node = &self.nodes[number as usize];
            if node.second != 0 {
                open.extend([node.second, number + 1]);
                continue;
            }
            for place in node.records.start as usize..node.records.end as usize {
                let record = self.order[place];
                let is_fitting = among.contains[record as usize]
                    && self.meets(place, &needs)
                    && self.fit.fits(finished, self.raw[record as usize]);
                if is_fitting && visit(record).is_break() {
                    return;
                }
            }
        }
    }

    /// About how many records a finished record fits, as if columns were independent: the share of
    /// records that meet each need on its own, multiplied; 0 if it fits none.
    pub(super) fn expected_share(&self, finished: &[u32]) -> f64 {
        let Some(needs) = self.needs(finished) else {
            return 0.0;
        };
        let rows = self.raw.len() as f64;
        let mut share = 1.0;
        for (need, codes) in needs.codes.iter().zip(&self.sorted_codes) {
            let below = |code: u32| codes.partition_point(|&it| it < code);
            let met = below(need.end).saturating_sub(below(need.start));
            let other = match need.other {
                NO_CODE => 0,
                code => below(code + 1) - below(code),
            };
            share *= (met + other) as f64 / rows;
        }
        for (needed, counts) in needs.items.iter().zip(&self.item_counts) {
            for bit in ones(needed) {
                share *= counts[bit] as f64 / rows;
            }
        }
        share
    }

    /// What a finished record asks for; `None` if it fits no raw record.
    fn needs(&self, finished: &[u32]) -> Option<Needs> {
        let mut needs = Needs {
            codes: Vec::with_capacity(self.code_columns),
            items: Vec::with_capacity(self.item_columns),
        };
        for (column, &number) in finished.iter().enumerate() {
            match self.fit.need(column, number)? {
                Need::Codes(codes, other) => needs.codes.push(CodeNeed {
                    start: codes.start,
                    end: codes.end,
                    other: other.unwrap_or(NO_CODE),
                }),
                Need::Items(items) => needs.items.push(items),
            }
        }
        Some(needs)
    }

    /// Whether a record of a node can meet the needs.
    fn can_meet(&self, node: usize, needs: &Needs) -> bool {
        self.known
            .meets(node, needs, |&CodeRange { first, last }, need| {
                let in_range = need.start < need.end && need.start <= last && first < need.end;
                in_range || (first <= need.other && need.other <= last)
            })
    }

    /// Whether the record at a place of the order meets the needs.
    fn meets(&self, place: usize, needs: &Needs) -> bool {
        self.values.meets(place, needs, |&code, need| {
            (need.start <= code && code < need.end) || code == need.other
        })
    }
}

/// Which records are in the first part.
enum Parting {
    /// Those with a code of a column below the second number.
    Codes(usize, u32),
    /// Those without an item of a column, by its bit. They come first, because they fit fewer
    /// finished records, so that searches take them before others.
    Item(usize, usize),
}
