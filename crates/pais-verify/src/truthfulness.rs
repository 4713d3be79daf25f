//! Truthfulness: each value of a released table is the raw value or a generalization of it.

use std::collections::HashSet;

use hashbrown::HashMap;
use rayon::prelude::*;
use thiserror::Error;

use pais_core::cancellation::Cancellation;
use pais_core::cancellation::Stopped;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use pais_core::with_codes;

use super::classes::only_column;
use super::cover::{Cover, Span, outermost_interval};
use super::original::{Original, OriginalColumn, OriginalQuasiIdentifier};
use super::sets::{OriginalSet, ReleasedSet};
use super::verification::VerifyError;

/// Up to this many pairs of code and label, over all threads, are remembered as checked.
const MOST_PAIRS: usize = 1 << 28;

/// Why a released table is not truthful to the raw one. Row numbers are those of the release and
/// start at 0. No message contains the value of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TruthError {
    /// The release has no such column, or more than one.
    #[error("the release must have exactly one column `{column}`")]
    NotOneColumn {
        /// Its name.
        column: Box<str>,
    },
    /// The release has a column that is not in the raw table.
    #[error("column `{column}` of the release is not in the raw table")]
    ExtraColumn {
        /// Its name.
        column: Box<str>,
    },
    /// A column or the list of source rows does not have the length of its table.
    #[error("{what} has {found} entries, expected {rows}")]
    Uneven {
        /// Name of the column or list.
        what: Box<str>,
        /// Its length.
        found: usize,
        /// The length of the table.
        rows: usize,
    },
    /// The release has too few or too many rows.
    #[error(
        "the release has {released} rows, but the raw table has {raw} rows, of which \
         {suppressed} are suppressed"
    )]
    RowsLost {
        /// Rows of the raw table.
        raw: u64,
        /// Number of suppressed rows, as reported by the anonymizer.
        suppressed: u64,
        /// Rows of the release.
        released: u64,
    },
    /// A row whose source row does not exist, or is the source of another row too.
    #[error("row {row} of the release does not come from a raw row of its own")]
    RepeatedRow {
        /// Row of the release.
        row: usize,
    },
    /// A set-valued column that is not released as one.
    #[error("column `{column}` is set-valued, but is not released as sets")]
    NoSet {
        /// The column's name.
        column: Box<str>,
    },
    /// A label, or an item of a set, that does not cover the raw value.
    #[error("column `{column}`, row {row} of the release: the label does not cover the raw value")]
    Untrue {
        /// The column's name.
        column: Box<str>,
        /// Row of the release.
        row: usize,
    },
    /// The caller asked to stop.
    #[error("the check was stopped")]
    Stopped,
    /// A cell of an unchanged column that differs from the raw one.
    #[error("column `{column}`, row {row} of the release: the value differs from the raw one")]
    Changed {
        /// The column's name.
        column: Box<str>,
        /// Row of the release.
        row: usize,
    },
}

impl From<Stopped> for TruthError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Checks that a release is truthful to the raw table:
///
/// - Each row comes from a raw row of its own (`source_rows[row]`), and no raw row is missing except the
///   suppressed ones.
/// - Each generalized value covers the raw one (it is an ancestor of it, or an interval that
///   contains it) and is not below the pre-generalization. A missing number is covered by `?` and
///   by the outermost interval: the declared domain, or without one the released interval that
///   encloses all others.
/// - Each released set is a subset of the raw one after pre-generalization.
/// - Each value of an unchanged column equals the raw one.
///
/// Columns that the service adds ([`Form::Integer`]) are skipped. Each label is parsed once, and
/// each pair of raw code and label is checked once.
///
/// # Errors
/// [`TruthError`] with the first error in the order of the columns; [`TruthError::Stopped`].
pub fn check_truthful(
    released: &ReleasedTable,
    original: &Original,
    source_rows: &[u32],
    suppressed_rows: u64,
    cancellation: &Cancellation,
) -> Result<(), TruthError> {
    check_rows(released, original.rows, source_rows, suppressed_rows)?;
    let generalized = original.quasi_identifiers.iter().map(|column| column.name);
    let sets = original.sets.iter().map(|set| &*set.column.name);
    let untouched = original.untouched.iter().map(|column| column.name);
    let names: HashSet<&str> = generalized.chain(sets).chain(untouched).collect();
    for column in &released.columns {
        if !names.contains(&*column.name) && column.form != Form::Integer {
            return Err(TruthError::ExtraColumn {
                column: column.name.clone(),
            });
        }
    }
    let find = |name: &str| {
        cancellation.check()?;
        column(released, name)
    };
    let generalized = |raw: &OriginalQuasiIdentifier| {
        let column = find(raw.name)?;
        check_length(raw.name, raw.codes.rows(), original.rows)?;
        check_generalized(column, raw, source_rows, cancellation)
    };
    let set = |raw: &OriginalSet| {
        let column = find(&raw.column.name)?;
        check_length(&raw.column.name, raw.column.rows(), original.rows)?;
        check_sets(column, *raw, source_rows, cancellation)
    };
    let untouched = |raw: &OriginalColumn| {
        let column = find(raw.name)?;
        check_length(raw.name, raw.cells.codes.len(), original.rows)?;
        check_untouched(column, raw.cells, source_rows, cancellation)
    };
    // Raw codes are read in random order, so a column is bound by memory latency: columns are
    // checked in parallel. The first error in the order of the columns is returned.
    let generalized = original.quasi_identifiers.par_iter().map(generalized);
    let sets = original.sets.par_iter().map(set);
    let untouched = original.untouched.par_iter().map(untouched);
    let checked: Vec<_> = generalized.chain(sets).chain(untouched).collect();
    checked.into_iter().collect()
}

fn check_rows(
    released: &ReleasedTable,
    raw_rows: usize,
    source_rows: &[u32],
    suppressed_rows: u64,
) -> Result<(), TruthError> {
    check_length("the list of source rows", source_rows.len(), released.rows)?;
    let (raw, rows) = (raw_rows as u64, released.rows as u64);
    if raw.checked_sub(suppressed_rows) != Some(rows) {
        return Err(TruthError::RowsLost {
            raw,
            suppressed: suppressed_rows,
            released: rows,
        });
    }
    let mut taken = vec![false; raw_rows];
    for (row, &source) in source_rows.iter().enumerate() {
        match taken.get_mut(source as usize) {
            Some(taken) if !*taken => *taken = true,
            _ => return Err(TruthError::RepeatedRow { row }),
        }
    }
    Ok(())
}

fn check_length(what: &str, found: usize, rows: usize) -> Result<(), TruthError> {
    if found == rows {
        return Ok(());
    }
    Err(TruthError::Uneven {
        what: what.into(),
        found,
        rows,
    })
}

pub(super) fn column<'t>(
    table: &'t ReleasedTable,
    name: &str,
) -> Result<&'t ReleasedColumn, TruthError> {
    only_column(table, name).map_err(|error| match error {
        VerifyError::UnevenColumn { found, rows, .. } => TruthError::Uneven {
            what: name.into(),
            found,
            rows,
        },
        _ => TruthError::NotOneColumn {
            column: name.into(),
        },
    })
}

fn check_generalized(
    released: &ReleasedColumn,
    raw: &OriginalQuasiIdentifier,
    source_rows: &[u32],
    cancellation: &Cancellation,
) -> Result<(), TruthError> {
    let outermost = outermost_interval(raw.domain, raw.declared_domain, released);
    let labels = released.column.dictionary.iter();
    let spans: Vec<Option<Span>> = labels
        .map(|label| Some(Cover::within(label, raw, outermost)?.span(raw.domain)))
        .collect();
    let codes = raw.domain.code_count();
    let is_true = |code: u32, label: usize| {
        let span = spans[label].as_ref();
        (code as usize) < codes
            && span.is_some_and(|span| span.contains(code))
            && raw.admits(&released.column.dictionary[label], code)
    };
    with_codes!(&raw.codes, raw_codes => {
        let code = |row: u32| raw_codes.at(row as usize);
        check_pairs(released, source_rows, codes, code, is_true, cancellation)
    })
}

/// Checks the label of each row of a column against the raw code of its source row, each pair once. The raw
/// codes are below `codes`.
fn check_pairs(
    released: &ReleasedColumn,
    source_rows: &[u32],
    codes: usize,
    code_of: impl Fn(u32) -> u32,
    is_true: impl Fn(u32, usize) -> bool,
    cancellation: &Cancellation,
) -> Result<(), TruthError> {
    let labels = released.column.dictionary.len();
    let mut checked = CheckedPairs::new(codes, labels);
    for (row, (&label, &source)) in released.column.codes.iter().zip(source_rows).enumerate() {
        let code = code_of(source);
        if checked.contains(code, label) {
            continue;
        }
        cancellation.check()?;
        if label as usize >= labels || !is_true(code, label as usize) {
            return Err(TruthError::Untrue {
                column: released.name.clone(),
                row,
            });
        }
        checked.insert(code, label);
    }
    Ok(())
}

fn check_sets(
    released: &ReleasedColumn,
    raw: OriginalSet,
    source_rows: &[u32],
    cancellation: &Cancellation,
) -> Result<(), TruthError> {
    let Form::Set { separator } = released.form else {
        return Err(TruthError::NoSet {
            column: released.name.clone(),
        });
    };
    let sets: Vec<ReleasedSet> = released
        .column
        .dictionary
        .iter()
        .map(|cell| ReleasedSet::parse(cell, separator, &raw.column.tree))
        .collect();
    let codes = raw.column.code_count();
    let code = |row: u32| raw.column.code(row as usize);
    let is_true = |code, set: usize| sets[set].is_subset(raw.column.set(code), raw);
    check_pairs(released, source_rows, codes, code, is_true, cancellation)
}

/// Rows after which it is checked whether to stop.
const ROWS_PER_CHECK: usize = 1 << 12;

fn check_untouched(
    released: &ReleasedColumn,
    raw: &Column,
    source_rows: &[u32],
    cancellation: &Cancellation,
) -> Result<(), TruthError> {
    // Texts are numbered, because the two dictionaries may differ in order.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let raw_numbers: Vec<u32> = raw
        .dictionary
        .iter()
        .map(|text| {
            let fresh = numbers.len() as u32;
            *numbers.entry(text).or_insert(fresh)
        })
        .collect();
    let released_numbers: Vec<Option<u32>> = released
        .column
        .dictionary
        .iter()
        .map(|text| numbers.get(&**text).copied())
        .collect();
    let missing: Vec<bool> = raw
        .dictionary
        .iter()
        .map(|text| released.missing.iter().any(|word| word == text))
        .collect();
    let narrowed = Codes::new(&raw.codes, raw.dictionary.len());
    let pairs = released.column.codes.iter().zip(source_rows).enumerate();
    with_codes!(&narrowed, raw_codes => for (row, (&value, &source)) in pairs {
        if row.is_multiple_of(ROWS_PER_CHECK) {
            cancellation.check()?;
        }
        let code = raw_codes.at(source as usize) as usize;
        let same = if value == NULL_CODE {
            code == NULL_CODE as usize || missing.get(code).is_some_and(|missing| *missing)
        } else {
            let number = released_numbers.get(value as usize).copied().flatten();
            number.is_some() && number == raw_numbers.get(code).copied()
        };
        if !same {
            return Err(TruthError::Changed {
                column: released.name.clone(),
                row,
            });
        }
    });
    Ok(())
}

/// The pairs of raw code and label that passed the check.
struct CheckedPairs {
    codes: usize,
    labels: usize,
    /// One bit for each pair; empty if there are too many, and pairs are then checked again.
    bits: Vec<u64>,
}

impl CheckedPairs {
    fn new(codes: usize, labels: usize) -> Self {
        let pairs = codes.saturating_mul(labels);
        let fits = pairs <= MOST_PAIRS / rayon::current_num_threads();
        Self {
            codes,
            labels,
            bits: vec![0; if fits { pairs.div_ceil(64) } else { 0 }],
        }
    }

    /// Whether a pair was inserted; `false` for an unknown code or label.
    #[inline]
    fn contains(&self, code: u32, label: u32) -> bool {
        let (code, label) = (code as usize, label as usize);
        let pair = code * self.labels + label;
        let is_known = code < self.codes && label < self.labels;
        is_known
            && self
                .bits
                .get(pair / 64)
                .is_some_and(|bits| bits & (1 << (pair % 64)) != 0)
    }

    /// Inserts a pair. Code and label must be in range.
    fn insert(&mut self, code: u32, label: u32) {
        let pair = code as usize * self.labels + label as usize;
        if let Some(bits) = self.bits.get_mut(pair / 64) {
            *bits |= 1 << (pair % 64);
        }
    }
}
