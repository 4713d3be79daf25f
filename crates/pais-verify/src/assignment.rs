//! Truthfulness of a table whose rows are in an unknown order: finds whether each row can be
//! assigned a raw row of its own.

use pais_core::cancellation::Cancellation;
use pais_core::table::codes::RowCodes;
use pais_core::table::{Column, ReleasedColumn, ReleasedTable};
use pais_core::with_codes;

use super::anatomy::{TextNumbers, number_of};
use super::classes::refine;
use super::matched_columns::{
    LabelledColumn, MatchedColumn, MatchedColumns, MissingCells, SetValuedColumn,
};
use super::original::Original;
use super::source_rows::{self, MatchedRows, NOWHERE};
use super::truthfulness::{TruthError, column};

/// The result of assigning raw rows to the rows of a finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    /// Number of rows of the finished table that cannot be assigned a raw row of their own: made
    /// up, or changed in a column that should be unchanged.
    pub(super) made_up: u64,
    /// Number of raw rows without a row in the finished table: suppressed, or lost.
    pub(super) lost: u64,
    /// Whether the labels of each column are one cut (KDD'09, Section 3.2), so that each raw row
    /// has exactly one generalized record.
    pub(super) one_cut: bool,
    /// The raw row of each row of the finished table, or [`NOWHERE`]. Where a row fits several raw
    /// rows, which differ in values that are not released or where labels of a column overlap, this
    /// is one possible choice.
    pub(super) source_rows: Vec<u32>,
    /// Sets of raw rows that can be in each other's place, or in that of a lost row of the set.
    pub(super) interchangeable: Vec<Vec<u32>>,
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
/// [`TruthError`] for a column that the finished table does not have exactly once, and
/// [`TruthError::Stopped`].
pub(super) fn assign(
    released: &ReleasedTable,
    original: &Original,
    cancellation: &Cancellation,
) -> Result<Assignment, TruthError> {
    let labelled: Vec<LabelledColumn> = original
        .quasi_identifiers
        .iter()
        .map(|raw| Ok(LabelledColumn::new(raw, column(released, raw.name)?)))
        .collect::<Result<_, TruthError>>()?;
    let assign = |missing| assign_labelled(released, original, &labelled, missing, cancellation);
    let found = assign(MissingCells::OwnLabel)?;
    if found.made_up == 0 || !labelled.iter().any(LabelledColumn::is_ambiguous) {
        return Ok(found);
    }
    let other = assign(MissingCells::EveryLabel)?;
    Ok(if other.made_up < found.made_up {
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
    cancellation: &Cancellation,
) -> Result<Assignment, TruthError> {
    let mut ids = vec![0u32; original.rows + released.rows];
    let mut classes = 1;
    for raw in &original.untouched {
        cancellation.check()?;
        classes = refine_by_cells(&mut ids, classes, raw.cells, column(released, raw.name)?);
    }
    let mut open: Vec<MatchedColumn> = Vec::new();
    for column in labelled {
        cancellation.check()?;
        let Some(cut) = column.cut(missing) else {
            open.push(MatchedColumn::Labels(column));
            continue;
        };
        let finished = column.labels.iter().copied();
        // One more number, for raw values that no label covers.
        let count = column.label_count() + 1;
        classes = with_codes!(&column.raw.codes, codes => {
            let raw = codes.in_rows(0..original.rows).map(|code| cut[code as usize]);
            refine(&mut ids, classes, raw.chain(finished), count)
        });
    }
    let one_cut = open.is_empty();
    for &raw in &original.sets {
        let finished = SetValuedColumn::new(raw, column(released, &raw.column.name)?);
        open.push(MatchedColumn::Sets(finished));
    }
    let (raw, finished) = ids.split_at(original.rows);
    let found = if open.is_empty() {
        source_rows::by_bucket(raw, finished, classes)
    } else {
        let open = MatchedColumns(open);
        let columns = || open.0.iter();
        let raw = MatchedRows {
            buckets: raw,
            record: |row| columns().map(|column| column.raw(row as usize)).collect(),
        };
        let finished = MatchedRows {
            buckets: finished,
            record: |row| {
                columns()
                    .map(|column| column.finished(row as usize))
                    .collect()
            },
        };
        source_rows::by_matching(&raw, &finished, classes, &open, cancellation)?
    };
    let made_up = found.of_row.iter().filter(|&&row| row == NOWHERE);
    let made_up = made_up.count();
    Ok(Assignment {
        made_up: made_up as u64,
        lost: (original.rows - (released.rows - made_up)) as u64,
        one_cut,
        interchangeable: found.interchangeable(raw),
        source_rows: found.of_row,
    })
}

/// Divides rows with equal ids by the cells of an unchanged column: `ids` are those of the raw rows,
/// then of the finished ones, of which there are `classes`. Returns the new number of ids.
pub(super) fn refine_by_cells(
    ids: &mut [u32],
    classes: usize,
    raw: &Column,
    finished: &ReleasedColumn,
) -> usize {
    let mut texts = TextNumbers::new(&finished.missing);
    let of_raw = texts.number(raw);
    let of_finished = texts.number(&finished.column);
    let raw = raw.codes.iter().map(|&code| number_of(&of_raw, code));
    let codes = finished.column.codes.iter();
    let finished = codes.map(|&code| number_of(&of_finished, code));
    refine(ids, classes, raw.chain(finished), texts.count())
}
