//! The raw and the finished cells of columns whose rows are in an unknown order: labels of
//! quasi-identifiers, and sets. Where labels overlap, and in sets, a finished row may fit raw rows
//! with different values.

use hashbrown::HashMap;
use rustc_hash::FxHashMap;

use pais_core::table::{Domain, Form, NULL_CODE, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL, NodeId, Scale};

use super::cover::{Cover, Span, outermost_interval};
use super::fit_index::{Fit, Have, ITEM_BITS, ItemBits, Need};
use super::original::OriginalQuasiIdentifier;
use super::sets::{OriginalSet, ReleasedSet};

/// Which labels cover missing cells in a column with the label `?` and an interval that encloses
/// all others of the column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingCells {
    /// Only `?`: the interval is the part of a larger one that suppression left.
    OwnLabel,
    /// Both: the interval is that of a group with missing cells.
    EveryLabel,
}

/// The raw codes and the finished labels of a quasi-identifier.
pub(super) struct LabelledColumn<'a> {
    pub(super) raw: &'a OriginalQuasiIdentifier<'a>,
    /// For each finished row, the number of its label.
    pub(super) labels: Vec<u32>,
    /// The codes that each label covers. The last entry is for cells without a label.
    spans: Vec<Option<Span>>,
    /// The text of each label. The last entry, for cells without a label, is empty.
    texts: Vec<Box<str>>,
    /// In a column without a declared domain, the interval that encloses all others, if `?` is a
    /// label too: both may cover missing cells.
    ambiguous: Option<u32>,
}

impl<'a> LabelledColumn<'a> {
    pub(super) fn new(raw: &'a OriginalQuasiIdentifier, finished: &ReleasedColumn) -> Self {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let dictionary = &finished.column.dictionary;
        let numbers: Vec<u32> = dictionary
            .iter()
            .map(|text| {
                let fresh = known.len() as u32;
                *known.entry(text).or_insert(fresh)
            })
            .collect();
        let mut spans = vec![None; known.len() + 1];
        let mut texts = vec![Box::<str>::default(); known.len() + 1];
        let outermost = outermost_interval(raw.domain, raw.declared_domain, finished);
        let has_missing_label = known.contains_key(MISSING_LABEL);
        let mut ambiguous = None;
        let scale = match raw.domain {
            Domain::Numeric { scale, .. } => *scale,
            Domain::Taxonomy(_) => Scale::Number,
        };
        let is_interval = |label: &str| Interval::parse_on(label, scale).is_some();
        for (label, number) in known {
            let cover = Cover::parse(label, raw.domain, outermost);
            let span = cover.map(|cover| cover.span(raw.domain));
            let covers_missing = span.as_ref().is_some_and(|span| span.missing.is_some());
            if has_missing_label && is_interval(label) && covers_missing {
                ambiguous = Some(number);
            }
            spans[number as usize] = span;
            texts[number as usize] = label.into();
        }
        let none = spans.len() as u32 - 1;
        let codes = finished.column.codes.iter();
        let labels = codes.map(|&code| match code {
            NULL_CODE => none,
            code => numbers.get(code as usize).copied().unwrap_or(none),
        });
        Self {
            raw,
            labels: labels.collect(),
            spans,
            texts,
            ambiguous,
        }
    }

    /// Number of labels, with the one of cells without a label.
    pub(super) fn label_count(&self) -> usize {
        self.spans.len()
    }

    /// Whether more than one label may cover missing cells.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.ambiguous.is_some()
    }

    /// The raw codes that a label may cover; `None` if it is not a label of the domain.
    pub(super) fn need(&self, label: u32) -> Option<Need> {
        let span = self.spans[label as usize].as_ref()?;
        Some(Need::Codes(span.codes.clone(), span.missing))
    }

    /// Whether a label covers a raw code.
    pub(super) fn covers(&self, label: u32, code: u32) -> bool {
        let span = &self.spans[label as usize];
        span.as_ref().is_some_and(|span| span.contains(code))
            && self.raw.admits(&self.texts[label as usize], code)
    }

    /// The number of the label that covers each raw code, or the number of entries in `spans` if
    /// none does; `None` if two labels cover the same code.
    pub(super) fn cut(&self, missing: MissingCells) -> Option<Vec<u32>> {
        let none = self.spans.len() as u32;
        let mut label_of = vec![none; self.raw.domain.code_count()];
        let mut occurs = vec![false; self.spans.len()];
        self.labels
            .iter()
            .for_each(|&label| occurs[label as usize] = true);
        for (label, span) in self
            .spans
            .iter()
            .enumerate()
            .filter(|(label, _)| occurs[*label])
        {
            let Some(span) = span else { continue };
            let is_ambiguous = self.ambiguous == Some(label as u32);
            let covers_missing = !is_ambiguous || missing == MissingCells::EveryLabel;
            let missing_code = span.missing.filter(|_| covers_missing);
            for code in span.codes.clone().chain(missing_code) {
                // The code for missing is out of range in a column without missing cells.
                let Some(over) = label_of.get_mut(code as usize) else {
                    continue;
                };
                if !self.raw.admits(&self.texts[label], code) {
                    continue;
                }
                if *over != none {
                    return None;
                }
                *over = label as u32;
            }
        }
        Some(label_of)
    }
}

/// The raw and the finished sets of a set-valued column.
pub(super) struct SetValuedColumn<'a> {
    raw: OriginalSet<'a>,
    /// For each raw set, the released labels that cover one of its items.
    covered_by: Vec<ItemBits>,
    /// For each raw set, the first one that the same released sets fit, as far as known.
    alike: Vec<u32>,
    /// For each finished row, the number of its set.
    numbers: Vec<u32>,
    /// The sets by number. The last entry is for cells that are not sets.
    sets: Vec<Option<ReleasedSet>>,
    /// The bit of each node of the tree; `None` for those that are not released, and for the root,
    /// which is true of every set.
    bits: Vec<Option<u16>>,
}

impl<'a> SetValuedColumn<'a> {
    pub(super) fn new(raw: OriginalSet<'a>, finished: &ReleasedColumn) -> Self {
        let dictionary = &finished.column.dictionary;
        let read = |cell: &str| match finished.form {
            Form::Set { separator } => Some(ReleasedSet::parse(cell, separator, &raw.column.tree)),
            _ => None,
        };
        let none = dictionary.len() as u32;
        let codes = finished.column.codes.iter();
        let sets: Vec<Option<ReleasedSet>> = dictionary
            .iter()
            .map(|cell| read(cell))
            .chain([None])
            .collect();
        let bits = node_bits(raw, &sets);
        let covered_by = covered_by(raw, &bits);
        // With a bit for each label the bits alone decide which released sets fit.
        let is_exact = bits.iter().flatten().count() <= ITEM_BITS;
        let mut first_with: FxHashMap<&ItemBits, u32> = FxHashMap::default();
        let raw_sets = (0..).zip(&covered_by);
        let alike = raw_sets.map(|(code, bits)| {
            if is_exact {
                *first_with.entry(bits).or_insert(code)
            } else {
                code
            }
        });
        let alike = alike.collect();
        Self {
            raw,
            alike,
            covered_by,
            numbers: codes.map(|&code| code.min(none)).collect(),
            sets,
            bits,
        }
    }
}

/// One bit for each released node except the root, reused from the first on if there are too many nodes.
fn node_bits(raw: OriginalSet, sets: &[Option<ReleasedSet>]) -> Vec<Option<u16>> {
    let mut bits = vec![None; raw.column.tree.nodes().len()];
    let mut released = 0;
    for node in sets.iter().flatten().flat_map(ReleasedSet::nodes) {
        let bit = &mut bits[node.index()];
        if node != NodeId::ROOT && bit.is_none() {
            *bit = Some((released % ITEM_BITS) as u16);
            released += 1;
        }
    }
    bits
}

/// For each raw set, the bits of the nodes at or above its pre-generalized items.
fn covered_by(raw: OriginalSet, bits: &[Option<u16>]) -> Vec<ItemBits> {
    let tree = &raw.column.tree;
    let of_leaf = |leaf: u32| {
        let mut found = ItemBits::default();
        let mut at = Some(raw.pre_generalized(leaf));
        while let Some(node) = at {
            if let Some(bit) = bits[node.index()] {
                set_bit(&mut found, bit);
            }
            at = tree.node(node).parent;
        }
        found
    };
    let of_leaf: Vec<ItemBits> = (0..tree.leaf_count() as u32).map(of_leaf).collect();
    let union = |set: u32| {
        let items = raw.column.set(set).iter();
        items.fold(ItemBits::default(), |all, &leaf| {
            let more = &of_leaf[leaf as usize];
            std::array::from_fn(|word| all[word] | more[word])
        })
    };
    (0..raw.column.code_count() as u32).map(union).collect()
}

fn set_bit(bits: &mut ItemBits, bit: u16) {
    bits[usize::from(bit) / 64] |= 1 << (bit % 64);
}

/// A column in which a finished row may fit raw rows with different values.
pub(super) enum MatchedColumn<'a> {
    Labels(&'a LabelledColumn<'a>),
    Sets(SetValuedColumn<'a>),
}

impl MatchedColumn<'_> {
    /// The raw number of a row. Raw values that the same finished ones fit may have the same number.
    pub(super) fn raw(&self, row: usize) -> u32 {
        match self {
            Self::Labels(column) => column.raw.codes.at(row),
            Self::Sets(column) => column.alike[column.raw.column.code(row) as usize],
        }
    }

    pub(super) fn finished(&self, row: usize) -> u32 {
        match self {
            Self::Labels(column) => column.labels[row],
            Self::Sets(column) => column.numbers[row],
        }
    }

    fn need(&self, finished: u32) -> Option<Need> {
        match self {
            Self::Labels(column) => column.need(finished),
            Self::Sets(column) => {
                let set = column.sets[finished as usize].as_ref()?;
                let mut needed = ItemBits::default();
                for node in set.nodes() {
                    if let Some(bit) = column.bits[node.index()] {
                        set_bit(&mut needed, bit);
                    }
                }
                set.is_parsed().then_some(Need::Items(needed))
            }
        }
    }

    /// Whether a finished row's number fits a raw code.
    fn fits(&self, finished: u32, raw: u32) -> bool {
        match self {
            Self::Labels(column) => column.covers(finished, raw),
            Self::Sets(column) => {
                let set = &column.sets[finished as usize];
                let items = column.raw.column.set(raw);
                set.as_ref()
                    .is_some_and(|set| set.is_true(items, column.raw))
            }
        }
    }
}

/// The columns of a table whose cells are not equal in rows that fit each other.
pub(super) struct MatchedColumns<'a>(pub(super) Vec<MatchedColumn<'a>>);

impl Fit for MatchedColumns<'_> {
    fn columns(&self) -> usize {
        self.0.len()
    }

    fn have(&self, column: usize, raw: u32) -> Have {
        match &self.0[column] {
            MatchedColumn::Labels(_) => Have::Code(raw),
            MatchedColumn::Sets(column) => Have::Items(column.covered_by[raw as usize]),
        }
    }

    fn need(&self, column: usize, finished: u32) -> Option<Need> {
        self.0[column].need(finished)
    }

    fn fits(&self, finished: &[u32], raw: &[u32]) -> bool {
        let pairs = finished.iter().zip(raw);
        let mut pairs = self.0.iter().zip(pairs);
        pairs.all(|(column, (&finished, &raw))| column.fits(finished, raw))
    }
}
