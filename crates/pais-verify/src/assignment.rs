//! Truthfulness of a table whose rows are in an unknown order: finds whether each row can be
//! assigned a raw row of its own.

use hashbrown::HashMap;

use pais_core::table::{Column, ReleasedColumn, ReleasedTable};

use super::classes::refine;
use super::labelled_column::{LabelledColumn, MissingCells};
use super::matched_columns::{MatchedColumn, MatchedColumns, SetValuedColumn};
use super::matching::{MatchingSide, maximum_matching};
use super::original::Original;
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
/// columns, about *n* log *n* in their number *n* where most labels are narrow.
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
    if found.0.made_up == 0 || !labelled.iter().any(LabelledColumn::is_ambiguous) {
        return Ok(found);
    }
    let other = assign(MissingCells::EveryLabel)?;
    Ok(if other.0.made_up < found.0.made_up {
        other
    } else {
        found
    })
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
        let count = column.label_count() + 1;
        classes = refine(&mut ids, classes, raw.chain(finished), count);
    }
    for &raw in &original.sets {
        let finished = SetValuedColumn::new(raw, column(released, &raw.column.name)?);
        open.push(MatchedColumn::Sets(finished));
    }
    let open = MatchedColumns(open);
    if with_rows {
        let rows = if open.0.is_empty() {
            source_rows::by_bucket(&ids, classes, original.rows)
        } else {
            matched_sources(&ids, classes, original.rows, &open)
        };
        let made_up = rows.iter().filter(|&&row| row == NOWHERE).count() as u64;
        let found = assignment(original.rows, released.rows, made_up, one_cut);
        return Ok((found, rows));
    }
    if !open.0.is_empty() {
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

/// The number of rows that can be matched, in buckets of rows that agree on all other columns.
fn matched_rows(ids: &[u32], buckets: usize, raw_rows: usize, columns: &MatchedColumns) -> u64 {
    let mut raw: Vec<MatchingSide> = vec![MatchingSide::default(); buckets];
    let mut finished: Vec<MatchingSide> = vec![MatchingSide::default(); buckets];
    let (raw_ids, finished_ids) = ids.split_at(raw_rows);
    for (row, &id) in raw_ids.iter().enumerate() {
        raw[id as usize].add(columns.0.iter().map(|column| column.raw(row)));
    }
    for (row, &id) in finished_ids.iter().enumerate() {
        finished[id as usize].add(columns.0.iter().map(|column| column.finished(row)));
    }
    let buckets = raw.iter().zip(&finished);
    buckets
        .map(|(raw, finished)| maximum_matching(finished, raw, columns))
        .sum()
}

/// As [`matched_rows`], the raw row of each finished row.
fn matched_sources(
    ids: &[u32],
    buckets: usize,
    raw_rows: usize,
    columns: &MatchedColumns,
) -> Vec<u32> {
    let raw = |row: usize| columns.0.iter().map(|column| column.raw(row)).collect();
    let finished = |row: usize| {
        columns
            .0
            .iter()
            .map(|column| column.finished(row))
            .collect()
    };
    source_rows::by_matching(ids, buckets, raw_rows, (raw, finished), columns)
}
