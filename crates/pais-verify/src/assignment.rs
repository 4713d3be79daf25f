//! Truthfulness of a table whose rows come in an unknown order: is there for each a raw row of
//! its own?

use std::ops::Range;

use hashbrown::HashMap;

use pais_core::read::reimport::SUPPRESSED_LABEL;
use pais_core::table::{Column, Domain, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

use super::classes::refine;
use super::matching::{Side, matched};
use super::sets::{OriginalSet, ReleasedSet};
use super::truth::{Original, OriginalQuasiIdentifier, TruthError, column};

/// How a finished table's rows stand to the raw ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Rows of the finished table for which no raw row of their own is left: made up, or changed
    /// in a column that should be as it came.
    pub made_up: u64,
    /// Raw rows that no row of the finished table stands for: suppressed, or lost.
    pub lost: u64,
    /// Whether the labels of each column are one cut (KDD'09, Section 3.2), so that each raw row
    /// has one generalized record alone.
    pub one_cut: bool,
}

/// Holds a finished table against the raw one: a row may stand for a raw row where each label
/// covers the raw value and each untouched value equals it, and as many rows as can be are given
/// a raw row of their own. Untouched cells that mean missing (null, or one of the released
/// column's words) are equal.
///
/// A released set may stand for a raw one where each of its items is one of that, or above it.
///
/// One pass over the columns where the labels of each are one cut. Where they are not, and where
/// there are sets, a greatest matching of distinct records among those that agree on all the
/// other columns, in the worst case cubic in their number.
///
/// # Errors
/// For a column that the finished table lacks or has twice.
pub fn assign(released: &ReleasedTable, original: &Original) -> Result<Assignment, TruthError> {
    let mut ids = vec![0u32; original.rows + released.rows];
    let mut classes = 1;
    for (name, raw) in &original.untouched {
        let numbers = Untouched::of(raw, column(released, name)?);
        classes = refine(&mut ids, classes, numbers.all(), numbers.count);
    }
    let mut labelled = Vec::with_capacity(original.quasi_identifiers.len());
    for raw in &original.quasi_identifiers {
        labelled.push(Labelled::of(raw, column(released, raw.name)?));
    }
    let mut open: Vec<Matched> = Vec::new();
    let mut one_cut = true;
    for column in labelled {
        let Some(cut) = column.cut() else {
            one_cut = false;
            open.push(Matched::Labels(column));
            continue;
        };
        let raw = column.raw.codes.iter().map(|&code| cut[code as usize]);
        let finished = column.labels.iter().copied();
        // One number more: that of raw values which no label covers.
        let count = column.spans.len() + 1;
        classes = refine(&mut ids, classes, raw.chain(finished), count);
    }
    for &raw in &original.sets {
        let finished = Sets::of(raw, column(released, &raw.column.name)?);
        open.push(Matched::Sets(finished));
    }
    if !open.is_empty() {
        let made_up = released.rows as u64 - matched_in(&ids, classes, original.rows, &open);
        return Ok(told(original.rows, released.rows, made_up, one_cut));
    }
    let mut surplus = vec![0i64; classes];
    let (raw, finished) = ids.split_at(original.rows);
    raw.iter().for_each(|&id| surplus[id as usize] -= 1);
    finished.iter().for_each(|&id| surplus[id as usize] += 1);
    let made_up: i64 = surplus.iter().filter(|&&surplus| surplus > 0).sum();
    Ok(told(
        original.rows,
        released.rows,
        made_up.unsigned_abs(),
        true,
    ))
}

fn told(raw: usize, finished: usize, made_up: u64, one_cut: bool) -> Assignment {
    Assignment {
        made_up,
        lost: raw as u64 - (finished as u64 - made_up),
        one_cut,
    }
}

/// Cells of an untouched column, raw and finished, as numbers that are equal where they are.
pub(super) struct Untouched {
    raw: Vec<u32>,
    finished: Vec<u32>,
    pub(super) count: usize,
}

impl Untouched {
    pub(super) fn of(raw: &Column, finished: &ReleasedColumn) -> Self {
        const MISSING: u32 = 0;
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut number = |text: &str| {
            if finished.missing.iter().any(|word| **word == *text) {
                return MISSING;
            }
            let fresh = known.len() as u32 + 1;
            *known.entry_ref(text).or_insert(fresh)
        };
        let mut numbers = |column: &Column| {
            let numbers: Vec<u32> = column.dictionary.iter().map(|text| number(text)).collect();
            let codes = column.codes.iter();
            codes
                .map(|&code| numbers.get(code as usize).copied().unwrap_or(MISSING))
                .collect()
        };
        Self {
            raw: numbers(raw),
            finished: numbers(&finished.column),
            count: known.len() + 1,
        }
    }

    /// All cells, the raw ones first.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.raw.iter().chain(&self.finished).copied()
    }
}

/// The raw codes under a label; missing ones have a code of their own in a numeric column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    codes: Range<u32>,
    missing: Option<u32>,
}

impl Span {
    /// `None` for a label that covers no value of the domain.
    fn of(label: &str, domain: &Domain) -> Option<Self> {
        match domain {
            Domain::Taxonomy(tree) => {
                let node = tree.node(tree.find(label)?);
                Some(Self {
                    codes: node.first_leaf..node.end_leaf,
                    missing: None,
                })
            }
            Domain::Numeric { values, lo, hi, .. } => {
                let (whole, missing) = (values.len() as u32, Some(values.len() as u32));
                if label == MISSING_LABEL {
                    return Some(Self {
                        codes: 0..0,
                        missing,
                    });
                }
                if label == SUPPRESSED_LABEL {
                    return Some(Self {
                        codes: 0..whole,
                        missing,
                    });
                }
                let interval = Interval::parse(label)?;
                let start = values.partition_point(|&value| value < interval.lo);
                let end = values
                    .partition_point(|&value| value < interval.lo || interval.contains(value));
                let outermost = interval.encloses(&Interval::closed(*lo, *hi));
                Some(Self {
                    codes: start as u32..end as u32,
                    missing: missing.filter(|_| outermost),
                })
            }
        }
    }

    pub(super) fn holds(&self, code: u32) -> bool {
        self.codes.contains(&code) || self.missing == Some(code)
    }
}

/// A quasi-identifier, raw and finished.
pub(super) struct Labelled<'a> {
    pub(super) raw: &'a OriginalQuasiIdentifier<'a>,
    /// Number of each finished row's label.
    pub(super) labels: Vec<u32>,
    /// What each label covers, by number; the last is that of what is no label at all.
    pub(super) spans: Vec<Option<Span>>,
    /// The text of each label, by number; empty for what is none.
    texts: Vec<Box<str>>,
}

impl<'a> Labelled<'a> {
    fn of(raw: &'a OriginalQuasiIdentifier, finished: &ReleasedColumn) -> Self {
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
        for (label, number) in known {
            spans[number as usize] = Span::of(label, raw.domain);
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
        }
    }

    /// Whether the raw code may stand under a label.
    fn holds(&self, label: u32, code: u32) -> bool {
        let span = &self.spans[label as usize];
        span.as_ref().is_some_and(|span| span.holds(code))
            && self.raw.admits(&self.texts[label as usize], code)
    }

    /// The label over each raw code, one past the last where there is none; `None` where two
    /// labels cover the same value.
    fn cut(&self) -> Option<Vec<u32>> {
        let none = self.spans.len() as u32;
        let mut label_of = vec![none; self.raw.domain.code_count()];
        let mut stands = vec![false; self.spans.len()];
        self.labels
            .iter()
            .for_each(|&label| stands[label as usize] = true);
        for (label, span) in self
            .spans
            .iter()
            .enumerate()
            .filter(|(label, _)| stands[*label])
        {
            let Some(span) = span else { continue };
            for code in span.codes.clone().chain(span.missing) {
                // A missing code stands for no cell where none is missing.
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

/// A set-valued column, raw and finished.
struct Sets<'a> {
    raw: OriginalSet<'a>,
    /// Number of each finished row's set.
    numbers: Vec<u32>,
    /// The sets by number; the last is that of what is no set at all.
    sets: Vec<Option<ReleasedSet>>,
}

impl<'a> Sets<'a> {
    fn of(raw: OriginalSet<'a>, finished: &ReleasedColumn) -> Self {
        let dictionary = &finished.column.dictionary;
        let read = |cell: &str| match finished.form {
            Form::Set { separator } => Some(ReleasedSet::read(cell, separator, &raw.column.tree)),
            _ => None,
        };
        let none = dictionary.len() as u32;
        let codes = finished.column.codes.iter();
        Self {
            raw,
            numbers: codes.map(|&code| code.min(none)).collect(),
            sets: dictionary
                .iter()
                .map(|cell| read(cell))
                .chain([None])
                .collect(),
        }
    }
}

/// A column in which a finished row may stand for raw rows with different values.
enum Matched<'a> {
    Labels(Labelled<'a>),
    Sets(Sets<'a>),
}

impl Matched<'_> {
    fn raw(&self, row: usize) -> u32 {
        match self {
            Self::Labels(column) => column.raw.codes[row],
            Self::Sets(column) => column.raw.column.code(row),
        }
    }

    fn finished(&self, row: usize) -> u32 {
        match self {
            Self::Labels(column) => column.labels[row],
            Self::Sets(column) => column.numbers[row],
        }
    }

    fn fits(&self, finished: u32, raw: u32) -> bool {
        match self {
            Self::Labels(column) => column.holds(finished, raw),
            Self::Sets(column) => {
                let set = &column.sets[finished as usize];
                let items = column.raw.column.set(raw);
                set.as_ref()
                    .is_some_and(|set| set.is_true(items, column.raw))
            }
        }
    }
}

/// Rows that can be matched, bucket by bucket of what each raw row can stand as alone.
fn matched_in(ids: &[u32], buckets: usize, raw_rows: usize, columns: &[Matched]) -> u64 {
    let mut raw: Vec<Side> = vec![Side::default(); buckets];
    let mut finished: Vec<Side> = vec![Side::default(); buckets];
    let (raw_ids, finished_ids) = ids.split_at(raw_rows);
    for (row, &id) in raw_ids.iter().enumerate() {
        raw[id as usize].add(columns.iter().map(|column| column.raw(row)));
    }
    for (row, &id) in finished_ids.iter().enumerate() {
        finished[id as usize].add(columns.iter().map(|column| column.finished(row)));
    }
    let covers = |record: &[u32], row: &[u32]| {
        let pairs = record.iter().zip(row);
        let mut pairs = columns.iter().zip(pairs);
        pairs.all(|(column, (&finished, &raw))| column.fits(finished, raw))
    };
    raw.iter()
        .zip(&finished)
        .map(|(raw, finished)| matched(finished, raw, covers))
        .sum()
}
