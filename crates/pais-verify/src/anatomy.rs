//! Anatomized releases (Definition 3 of *A Privacy Protection Model for Patient Data with
//! Multiple Sensitive Attributes*, 2008): check that the counts of the sensitive tables are
//! those of the groups of the quasi-identifier table.

use hashbrown::HashMap;
use rustc_hash::FxHashMap;
use thiserror::Error;

use pais_core::schema::SchemaColumn;
use pais_core::table::{
    COUNT_COLUMN, Column, Form, GROUP_COLUMN, NULL_CODE, ReleasedColumn, ReleasedTable,
};

use super::truthfulness::{TruthError, column};

/// Why tables are not an anatomy of the raw table. No message contains the value of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnatomyError {
    /// A column is missing, or has the wrong length.
    #[error("table `{table}`: {error}")]
    Malformed {
        /// The table's name.
        table: Box<str>,
        /// What is wrong.
        error: TruthError,
    },
    /// A column of the quasi-identifier table is missing, or has the wrong length.
    #[error(transparent)]
    Truth(#[from] TruthError),
    /// Too many rows are equal in all exact columns: the budget of choices is used up.
    #[error(
        "cannot match raw rows with groups: too many raw rows that are equal in all unchanged \
         columns belong to several groups"
    )]
    Undecided,
    /// A cell that should be a whole number of at least 1.
    #[error("table `{table}`: column `{column}`: expected a whole number of at least 1")]
    NotPositiveInteger {
        /// The table's name.
        table: Box<str>,
        /// The column's name.
        column: Box<str>,
        /// Row of the table.
        row: usize,
    },
    /// The rows of a sensitive table are not sorted by group, or a value of a group is repeated.
    #[error("table `{table}`: not sorted by group, or a value of the group is repeated")]
    Unsorted {
        /// The table's name.
        table: Box<str>,
        /// Row of the table.
        row: usize,
    },
    /// The counts differ from those of the groups' records.
    #[error("table `{table}`: the counts do not match the records of the groups")]
    Miscounted {
        /// The table's name.
        table: Box<str>,
    },
}

impl AnatomyError {
    /// The row where a table that can be read is no anatomy.
    pub(crate) fn row(&self) -> Option<usize> {
        match self {
            Self::NotPositiveInteger { row, .. } | Self::Unsorted { row, .. } => Some(*row),
            _ => None,
        }
    }
}

/// The group id of each row of a table.
///
/// # Errors
/// [`AnatomyError`] for a table without the column of group ids, or with an id that is not a
/// whole number of at least 1.
pub fn group_ids(table: &ReleasedTable) -> Result<Vec<u64>, AnatomyError> {
    positive_integers(table, GROUP_COLUMN)
}

/// The counts of a sensitive table, together with the raw cells of its column.
pub(super) struct SensitiveCounts<'r> {
    /// The count of each group and value number. Callers decrease it as they assign rows.
    pub(super) published: FxHashMap<(u64, u32), u64>,
    /// For each raw code, the number of its value.
    numbers: Vec<u32>,
    raw: &'r Column,
}

impl<'r> SensitiveCounts<'r> {
    /// Reads the counts of a sensitive table.
    ///
    /// # Errors
    /// For a table that is malformed or not sorted by group, or that repeats a value of a group.
    pub(super) fn read(
        table: &ReleasedTable,
        sensitive: &str,
        raw: &'r Column,
    ) -> Result<Self, AnatomyError> {
        let groups = group_ids(table)?;
        let counts = positive_integers(table, COUNT_COLUMN)?;
        let values = required_column(table, sensitive)?;
        let mut texts = TextNumbers::new(&values.missing);
        let published_numbers = texts.number(&values.column);
        let numbers = texts.number(raw);
        let mut published = FxHashMap::default();
        for (row, (&group, &count)) in groups.iter().zip(&counts).enumerate() {
            let value = number_of(&published_numbers, values.column.codes[row]);
            let sorted = row == 0 || groups[row - 1] <= group;
            let known = published.entry((group, value)).or_insert(0u64);
            // In a table of another tool, several words for missing can be several rows.
            if !sorted || (*known > 0 && value != MISSING) {
                return Err(AnatomyError::Unsorted {
                    table: table.name.clone(),
                    row,
                });
            }
            *known = known.saturating_add(count);
        }
        Ok(Self {
            published,
            numbers,
            raw,
        })
    }

    /// The count of a group for the value of a raw row.
    pub(super) fn count(&mut self, group: u64, row: u32) -> Option<&mut u64> {
        let value = number_of(&self.numbers, self.raw.codes[row as usize]);
        self.published.get_mut(&(group, value))
    }
}

/// The number of missing cells. Formats that have types do not keep the words for missing.
const MISSING: u32 = 0;

/// Numbers the texts of columns: equal texts have equal numbers, and all words for missing have
/// [`MISSING`].
pub(super) struct TextNumbers<'t> {
    known: HashMap<&'t str, u32>,
    missing: &'t [Box<str>],
}

impl<'t> TextNumbers<'t> {
    pub(super) fn new(missing: &'t [Box<str>]) -> Self {
        Self {
            known: HashMap::new(),
            missing,
        }
    }

    /// The number of each code of a column.
    pub(super) fn number(&mut self, column: &'t Column) -> Vec<u32> {
        let mut number = |text: &'t str| {
            if self.missing.iter().any(|word| **word == *text) {
                return MISSING;
            }
            let fresh = self.known.len() as u32 + 1;
            *self.known.entry(text).or_insert(fresh)
        };
        column.dictionary.iter().map(|text| number(text)).collect()
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.known.len() + 1
    }
}

/// The number of a code; that of missing cells for null.
pub(super) fn number_of(numbers: &[u32], code: u32) -> u32 {
    numbers.get(code as usize).copied().unwrap_or(MISSING)
}

/// Checks that the counts of a sensitive table are those of the groups' records: `groups[i]` is
/// the group of the raw row `source_rows[i]`, whose value is in `raw`.
///
/// # Errors
/// [`AnatomyError`] with the first error found.
pub fn check_counts(
    table: &ReleasedTable,
    sensitive: &str,
    raw: &Column,
    groups: &[u64],
    source_rows: &[u32],
) -> Result<(), AnatomyError> {
    let mut counted = SensitiveCounts::read(table, sensitive, raw)?;
    let miscounted = || AnatomyError::Miscounted {
        table: table.name.clone(),
    };
    for (&group, &source) in groups.iter().zip(source_rows) {
        match counted.count(group, source) {
            Some(left) if *left > 0 => *left -= 1,
            _ => return Err(miscounted()),
        }
    }
    if counted.published.values().all(|&left| left == 0) {
        Ok(())
    } else {
        Err(miscounted())
    }
}

fn required_column<'t>(
    table: &'t ReleasedTable,
    name: &str,
) -> Result<&'t ReleasedColumn, AnatomyError> {
    column(table, name).map_err(|error| AnatomyError::Malformed {
        table: table.name.clone(),
        error,
    })
}

fn positive_integers(table: &ReleasedTable, name: &str) -> Result<Vec<u64>, AnatomyError> {
    let ReleasedColumn { column, .. } = required_column(table, name)?;
    let numbers: Vec<Option<u64>> = column
        .dictionary
        .iter()
        .map(|text| text.parse().ok().filter(|&number| number > 0))
        .collect();
    let number = |(row, &code): (usize, &u32)| {
        let found = (code != NULL_CODE).then(|| numbers.get(code as usize).copied().flatten());
        found
            .flatten()
            .ok_or_else(|| AnatomyError::NotPositiveInteger {
                table: table.name.clone(),
                column: name.into(),
                row,
            })
    };
    column.codes.iter().enumerate().map(number).collect()
}

/// A sensitive column of the raw table.
#[derive(Clone, Copy, Debug)]
pub struct RawSensitive<'a> {
    /// As declared.
    pub spec: &'a SchemaColumn,
    /// The cells as read.
    pub column: &'a Column,
}

/// Joins the group ids of a quasi-identifier table with the raw sensitive columns of its rows.
/// The group model is verified on the resulting table. `source_rows` are the raw rows of the
/// rows of `qit`.
///
/// # Errors
/// [`AnatomyError`] for a table without the column of group ids.
pub fn join_sensitive(
    qit: &ReleasedTable,
    sensitive: &[RawSensitive],
    source_rows: &[u32],
) -> Result<ReleasedTable, AnatomyError> {
    let mut columns = vec![required_column(qit, GROUP_COLUMN)?.clone()];
    for RawSensitive { spec, column } in sensitive {
        let codes = source_rows.iter().map(|&row| column.codes[row as usize]);
        columns.push(ReleasedColumn {
            name: spec.name().into(),
            form: Form::Text,
            column: Column {
                dictionary: column.dictionary.clone(),
                codes: codes.collect(),
            },
            missing: spec.missing().to_vec(),
        });
    }
    Ok(ReleasedTable {
        name: "data".into(),
        rows: qit.rows,
        columns,
    })
}
