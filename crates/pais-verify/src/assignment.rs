//! Truthfulness of a table whose rows are in an unknown order: finds whether each row can be
//! assigned a raw row of its own.

use std::ops::Range;

use hashbrown::HashMap;

use pais_core::read::reimport::SUPPRESSED_LABEL;
use pais_core::table::{Column, Domain, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use pais_core::taxonomy::{Interval, MISSING_LABEL, Scale};

use super::classes::refine;
use super::cover::outermost;
use super::matching::{MatchingSide, maximum_matching};
use super::original::{Original, OriginalQuasiIdentifier};
use super::sets::{OriginalSet, ReleasedSet};
use super::source_rows::{self, NOWHERE};
use super::truthfulness::{TruthError, column};

/// The result of assigning raw rows to the rows of a finished table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Number of rows of the finished table that cannot be assigned a raw row of their own: made
    /// up, or changed in a column that should be unchanged.
    pub made_up: u64,
    /// Number of raw rows without a row in the finished table: suppressed, or lost.
    pub lost: u64,
    /// Whether the labels of each column are one cut (KDD'09, Section 3.2), so that each raw row
    /// has exactly one generalized record.
    pub one_cut: bool,
}

/// Compares a finished table with the raw one. A row fits a raw row if each label covers the raw
/// value and each unchanged value equals it. As many rows as possible are assigned a raw row of
/// their own that they fit. Unchanged cells that mean missing (null, or one of the released
/// column's words for missing) are equal. A released set fits a raw one if each of its items is an
/// item of the raw set or an ancestor of one.
///
/// A missing number is covered by `?` and by the outermost interval: the declared domain, or
/// without one the released interval that encloses all others.
///
/// If the labels of each column are one cut and there are no sets, this takes one pass over the
/// columns. Otherwise it takes a maximum matching of the distinct records that agree on all other
/// columns, in the worst case cubic in their number.
///
/// # Errors
/// [`TruthError`] for a column that the finished table does not have exactly once.
pub fn assign(released: &ReleasedTable, original: &Original) -> Result<Assignment, TruthError> {
    Ok(assign_by(released, original, false)?.0)
}

/// As [`assign`], and returns the raw row of each row of the finished table, or [`NOWHERE`]. Where
/// a row fits several raw rows, which differ in values that are not released or where labels of a
/// column overlap, this is one possible assignment.
///
/// # Errors
/// As [`assign`].
pub fn assign_rows(
    released: &ReleasedTable,
    original: &Original,
) -> Result<(Assignment, Vec<u32>), TruthError> {
    assign_by(released, original, true)
}

fn assign_by(
    released: &ReleasedTable,
    original: &Original,
    with_rows: bool,
) -> Result<(Assignment, Vec<u32>), TruthError> {
    let labelled: Vec<LabelledColumn> = original
        .quasi_identifiers
        .iter()
        .map(|raw| Ok(LabelledColumn::new(raw, column(released, raw.name)?)))
        .collect::<Result<_, TruthError>>()?;
    let assign = |missing| assign_labelled(released, original, &labelled, missing, with_rows);
    let found = assign(MissingCells::OwnLabel)?;
    let is_ambiguous = |column: &LabelledColumn| column.ambiguous.is_some();
    if found.0.made_up == 0 || !labelled.iter().any(is_ambiguous) {
        return Ok(found);
    }
    let other = assign(MissingCells::EveryLabel)?;
    Ok(match other.0.made_up < found.0.made_up {
        true => other,
        false => found,
    })
}

/// Which labels cover missing cells in a column with the label `?` and an interval that encloses
/// all others of the column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingCells {
    /// Only `?`: the interval is what suppression left of the parts of a greater one.
    OwnLabel,
    /// Both: the interval is that of a group with missing cells.
    EveryLabel,
}

fn assign_labelled(
    released: &ReleasedTable,
    original: &Original,
    labelled: &[LabelledColumn],
    missing: MissingCells,
    with_rows: bool,
) -> Result<(Assignment, Vec<u32>), TruthError> {
    let mut ids = vec![0u32; original.rows + released.rows];
    let mut classes = 1;
    for (name, raw) in &original.untouched {
        let numbers = Untouched::new(raw, column(released, name)?);
        classes = refine(&mut ids, classes, numbers.all(), numbers.count);
    }
    let mut open: Vec<MatchedColumn> = Vec::new();
    let mut one_cut = true;
    for column in labelled {
        let Some(cut) = column.cut(missing) else {
            one_cut = false;
            open.push(MatchedColumn::Labels(column));
            continue;
        };
        let raw = column.raw.codes.iter().map(|&code| cut[code as usize]);
        let finished = column.labels.iter().copied();
        // One more number, for raw values that no label covers.
        let count = column.spans.len() + 1;
        classes = refine(&mut ids, classes, raw.chain(finished), count);
    }
    for &raw in &original.sets {
        let finished = SetValuedColumn::new(raw, column(released, &raw.column.name)?);
        open.push(MatchedColumn::Sets(finished));
    }
    if with_rows {
        let rows = match open.is_empty() {
            true => source_rows::by_bucket(&ids, classes, original.rows),
            false => matched_sources(&ids, classes, original.rows, &open),
        };
        let made_up = rows.iter().filter(|&&row| row == NOWHERE).count() as u64;
        let found = assignment(original.rows, released.rows, made_up, one_cut);
        return Ok((found, rows));
    }
    if !open.is_empty() {
        let made_up = released.rows as u64 - matched_rows(&ids, classes, original.rows, &open);
        let found = assignment(original.rows, released.rows, made_up, one_cut);
        return Ok((found, Vec::new()));
    }
    let mut surplus = vec![0i64; classes];
    let (raw, finished) = ids.split_at(original.rows);
    raw.iter().for_each(|&id| surplus[id as usize] -= 1);
    finished.iter().for_each(|&id| surplus[id as usize] += 1);
    let made_up: i64 = surplus.iter().filter(|&&surplus| surplus > 0).sum();
    let made_up = made_up.unsigned_abs();
    let found = assignment(original.rows, released.rows, made_up, true);
    Ok((found, Vec::new()))
}

fn assignment(raw: usize, finished: usize, made_up: u64, one_cut: bool) -> Assignment {
    Assignment {
        made_up,
        lost: raw as u64 - (finished as u64 - made_up),
        one_cut,
    }
}

/// The cells of an unchanged column, raw and finished, as numbers. Equal cells have equal
/// numbers.
pub(super) struct Untouched {
    raw: Vec<u32>,
    finished: Vec<u32>,
    /// Number of distinct numbers.
    pub(super) count: usize,
}

impl Untouched {
    pub(super) fn new(raw: &Column, finished: &ReleasedColumn) -> Self {
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

/// The raw codes that a label covers. In a numeric column, missing cells have a separate code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    codes: Range<u32>,
    missing: Option<u32>,
}

impl Span {
    /// Parses a label of a column with this outermost interval; `None` if it is not a label of the
    /// domain.
    fn parse(label: &str, domain: &Domain, outermost: Option<Interval>) -> Option<Self> {
        match domain {
            Domain::Taxonomy(tree) => {
                let node = tree.node(tree.find(label)?);
                Some(Self {
                    codes: node.first_leaf..node.end_leaf,
                    missing: None,
                })
            }
            Domain::Numeric { values, scale, .. } => {
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
                let interval = Interval::parse_on(label, *scale)?;
                let start = values.partition_point(|&value| value < interval.lo);
                let end = values
                    .partition_point(|&value| value < interval.lo || interval.contains(value));
                let covers = outermost.is_some_and(|outermost| interval.encloses(&outermost));
                Some(Self {
                    codes: start as u32..end as u32,
                    missing: missing.filter(|_| covers),
                })
            }
        }
    }

    pub(super) fn contains(&self, code: u32) -> bool {
        self.codes.contains(&code) || self.missing == Some(code)
    }
}

/// The raw codes and the finished labels of a quasi-identifier.
pub(super) struct LabelledColumn<'a> {
    pub(super) raw: &'a OriginalQuasiIdentifier<'a>,
    /// For each finished row, the number of its label.
    pub(super) labels: Vec<u32>,
    /// The codes that each label covers. The last entry is for cells without a label.
    pub(super) spans: Vec<Option<Span>>,
    /// The text of each label. The last entry, for cells without a label, is empty.
    texts: Vec<Box<str>>,
    /// In a column without a declared domain, the interval that encloses all others, if `?` is a
    /// label too: both may cover missing cells.
    ambiguous: Option<u32>,
}

impl<'a> LabelledColumn<'a> {
    fn new(raw: &'a OriginalQuasiIdentifier, finished: &ReleasedColumn) -> Self {
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
        let outermost = outermost(raw, finished);
        let has_missing_label = known.contains_key(MISSING_LABEL);
        let mut ambiguous = None;
        let scale = match raw.domain {
            Domain::Numeric { scale, .. } => *scale,
            Domain::Taxonomy(_) => Scale::Number,
        };
        let is_interval = |label: &str| Interval::parse_on(label, scale).is_some();
        for (label, number) in known {
            let span = Span::parse(label, raw.domain, outermost);
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

    /// Whether a label covers a raw code.
    fn covers(&self, label: u32, code: u32) -> bool {
        let span = &self.spans[label as usize];
        span.as_ref().is_some_and(|span| span.contains(code))
            && self.raw.admits(&self.texts[label as usize], code)
    }

    /// The number of the label that covers each raw code, or the number of entries in `spans` if
    /// none does; `None` if two labels cover the same code.
    fn cut(&self, missing: MissingCells) -> Option<Vec<u32>> {
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
struct SetValuedColumn<'a> {
    raw: OriginalSet<'a>,
    /// For each finished row, the number of its set.
    numbers: Vec<u32>,
    /// The sets by number. The last entry is for cells that are not sets.
    sets: Vec<Option<ReleasedSet>>,
}

impl<'a> SetValuedColumn<'a> {
    fn new(raw: OriginalSet<'a>, finished: &ReleasedColumn) -> Self {
        let dictionary = &finished.column.dictionary;
        let read = |cell: &str| match finished.form {
            Form::Set { separator } => Some(ReleasedSet::parse(cell, separator, &raw.column.tree)),
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

/// A column in which a finished row may fit raw rows with different values.
enum MatchedColumn<'a> {
    Labels(&'a LabelledColumn<'a>),
    Sets(SetValuedColumn<'a>),
}

impl MatchedColumn<'_> {
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

/// The number of rows that can be matched, in buckets of rows that agree on all other columns.
fn matched_rows(ids: &[u32], buckets: usize, raw_rows: usize, columns: &[MatchedColumn]) -> u64 {
    let mut raw: Vec<MatchingSide> = vec![MatchingSide::default(); buckets];
    let mut finished: Vec<MatchingSide> = vec![MatchingSide::default(); buckets];
    let (raw_ids, finished_ids) = ids.split_at(raw_rows);
    for (row, &id) in raw_ids.iter().enumerate() {
        raw[id as usize].add(columns.iter().map(|column| column.raw(row)));
    }
    for (row, &id) in finished_ids.iter().enumerate() {
        finished[id as usize].add(columns.iter().map(|column| column.finished(row)));
    }
    raw.iter()
        .zip(&finished)
        .map(|(raw, finished)| {
            maximum_matching(finished, raw, |finished, raw| fits(columns, finished, raw))
        })
        .sum()
}

/// As [`matched_rows`], the raw row of each finished row.
fn matched_sources(
    ids: &[u32],
    buckets: usize,
    raw_rows: usize,
    columns: &[MatchedColumn],
) -> Vec<u32> {
    let raw = |row: usize| columns.iter().map(|column| column.raw(row)).collect();
    let finished = |row: usize| columns.iter().map(|column| column.finished(row)).collect();
    source_rows::by_matching(ids, buckets, raw_rows, (raw, finished), |finished, raw| {
        fits(columns, finished, raw)
    })
}

/// Whether a finished record fits a raw one in all columns.
fn fits(columns: &[MatchedColumn], finished: &[u32], raw: &[u32]) -> bool {
    let pairs = finished.iter().zip(raw);
    let mut pairs = columns.iter().zip(pairs);
    pairs.all(|(column, (&finished, &raw))| column.fits(finished, raw))
}
