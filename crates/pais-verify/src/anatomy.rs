//! Anatomized releases (Definition 3 of *A Privacy Protection Model for Patient Data with
//! Multiple Sensitive Attributes*, 2008): whether the sensitive tables count what the groups of
//! the quasi-identifier table hold.

use hashbrown::HashMap;
use rustc_hash::FxHashMap;
use thiserror::Error;

use pais_core::table::{COUNT_COLUMN, Column, Form, GROUP_COLUMN, NULL_CODE, ReleasedColumn, ReleasedTable};

use super::truth::{TruthError, column};

/// Why tables are no anatomy of the raw one. No value of a cell is told.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnatomyError {
    /// A column is not there, or is of the wrong length.
    #[error("table `{table}`: {error}")]
    Malformed {
        /// The table's name.
        table: Box<str>,
        /// What is wrong.
        error: TruthError,
    },
    /// A cell that should be a whole number from 1 on.
    #[error("table `{table}`, row {row}: `{column}` is no whole number from 1 on")]
    NoNumber {
        /// The table's name.
        table: Box<str>,
        /// The column's name.
        column: Box<str>,
        /// Row of the table.
        row: usize,
    },
    /// Rows of a sensitive table that do not rise by group, or name a value of a group twice.
    #[error("table `{table}`, row {row}: rows do not rise by group, or a value stands twice")]
    Unsorted {
        /// The table's name.
        table: Box<str>,
        /// Row of the table.
        row: usize,
    },
    /// The counts are not those of the groups.
    #[error("table `{table}`: the counts are not those of the groups' records")]
    Miscounted {
        /// The table's name.
        table: Box<str>,
    },
}

/// The group of each row of a table.
///
/// # Errors
/// For a table without groups, or with one that is no whole number from 1 on.
pub fn group_ids(table: &ReleasedTable) -> Result<Vec<u64>, AnatomyError> {
    numbers(table, GROUP_COLUMN)
}

/// A sensitive table beside the raw column that it counts, values by number.
pub(super) struct Counted {
    /// How many records of a group hold a value, by group and number of the value.
    pub(super) told: FxHashMap<(u64, u32), u64>,
    /// The number of each raw code's value; the last one is that of a cell that holds nothing.
    numbers: Vec<u32>,
}

impl Counted {
    /// Reads the counts of a sensitive table.
    ///
    /// # Errors
    /// For a table that is malformed, not sorted by group, or names a value of a group twice.
    pub(super) fn of(
        table: &ReleasedTable,
        sensitive: &str,
        raw: &Column,
    ) -> Result<Self, AnatomyError> {
        let groups = group_ids(table)?;
        let counts = numbers(table, COUNT_COLUMN)?;
        let values = named(table, sensitive)?;
        // CSV cannot tell an empty word for missing from a cell that holds nothing.
        let nothing = values.missing.iter().any(|word| word.is_empty());
        let mut known = HashMap::new();
        let told_numbers = numbered(&mut known, &values.column, nothing);
        let numbers = numbered(&mut known, raw, nothing);
        let mut told = FxHashMap::default();
        for (row, (&group, &count)) in groups.iter().zip(&counts).enumerate() {
            let value = at(&told_numbers, values.column.codes[row]);
            let rises = row == 0 || groups[row - 1] <= group;
            if told.insert((group, value), count).is_some() || !rises {
                return Err(AnatomyError::Unsorted {
                    table: table.name.clone(),
                    row,
                });
            }
        }
        Ok(Self { told, numbers })
    }

    /// The number of a raw cell's value.
    pub(super) fn number(&self, code: u32) -> u32 {
        at(&self.numbers, code)
    }
}

/// The number of each code's text, equal ones having one; 0 for the empty one where that is
/// nothing.
fn numbered<'t>(known: &mut HashMap<&'t str, u32>, column: &'t Column, nothing: bool) -> Vec<u32> {
    let mut number = |text: &'t str| {
        let fresh = known.len() as u32 + 1;
        *known.entry(text).or_insert(fresh)
    };
    let texts = column.dictionary.iter();
    texts
        .map(|text| match &**text {
            "" if nothing => 0,
            text => number(text),
        })
        .collect()
}

/// The number of a code; 0 for a cell that holds nothing.
fn at(numbers: &[u32], code: u32) -> u32 {
    numbers.get(code as usize).copied().unwrap_or(0)
}

/// Checks that a sensitive table counts what the groups hold: `groups[i]` is the group of the
/// raw row `source_rows[i]`, whose values are in `raw`.
///
/// # Errors
/// [`AnatomyError`] with the first fault found.
pub fn check_counts(
    table: &ReleasedTable,
    sensitive: &str,
    raw: &Column,
    groups: &[u64],
    source_rows: &[u32],
) -> Result<(), AnatomyError> {
    let mut counted = Counted::of(table, sensitive, raw)?;
    let miscounted = || AnatomyError::Miscounted {
        table: table.name.clone(),
    };
    for (&group, &source) in groups.iter().zip(source_rows) {
        let value = counted.number(raw.codes[source as usize]);
        match counted.told.get_mut(&(group, value)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => return Err(miscounted()),
        }
    }
    if counted.told.values().all(|&left| left == 0) {
        Ok(())
    } else {
        Err(miscounted())
    }
}

fn named<'t>(table: &'t ReleasedTable, name: &str) -> Result<&'t ReleasedColumn, AnatomyError> {
    column(table, name).map_err(|error| AnatomyError::Malformed {
        table: table.name.clone(),
        error,
    })
}

fn numbers(table: &ReleasedTable, name: &str) -> Result<Vec<u64>, AnatomyError> {
    let ReleasedColumn { column, .. } = named(table, name)?;
    let numbers: Vec<Option<u64>> = column
        .dictionary
        .iter()
        .map(|text| text.parse().ok().filter(|&number| number > 0))
        .collect();
    let number = |(row, &code): (usize, &u32)| {
        let found = (code != NULL_CODE).then(|| numbers.get(code as usize).copied().flatten());
        found.flatten().ok_or_else(|| AnatomyError::NoNumber {
            table: table.name.clone(),
            column: name.into(),
            row,
        })
    };
    column.codes.iter().enumerate().map(number).collect()
}

/// Name, words for missing and cells of a raw sensitive column.
pub type RawSensitive<'a> = (Box<str>, Vec<Box<str>>, &'a Column);

/// A quasi-identifier table and the raw sensitive columns of its rows as one table, as the model
/// is decided on it.
///
/// # Errors
/// For a table without groups.
pub fn joined(
    qit: &ReleasedTable,
    sensitive: &[RawSensitive],
    source_rows: &[u32],
) -> Result<ReleasedTable, AnatomyError> {
    let mut columns = vec![named(qit, GROUP_COLUMN)?.clone()];
    for (name, missing, raw) in sensitive {
        let codes = source_rows.iter().map(|&row| raw.codes[row as usize]);
        columns.push(ReleasedColumn {
            name: name.clone(),
            form: Form::Text,
            column: Column {
                dictionary: raw.dictionary.clone(),
                codes: codes.collect(),
            },
            missing: missing.clone(),
        });
    }
    Ok(ReleasedTable {
        name: "data".into(),
        rows: qit.rows,
        columns,
    })
}
