//! Columns that are released unchanged, with the counts of their values.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Column, EncodedTable, PersonSet, Persons, SEVERAL};
use crate::definition::ColumnRole;
use crate::schema::{Schema, SchemaColumn};
use crate::warning::{Warning, WarningCode};

/// Tables with fewer rows have too few values to say that a column identifies them.
pub(super) const LEAST_ROWS: usize = 10;

/// Columns with fewer rows, or persons, that have a value are never a key.
const LEAST_ROWS_OF_A_KEY: u64 = 20;

/// A column that is released unchanged, with the counts of its values.
#[derive(Clone, Copy, Debug)]
pub struct UnchangedColumn<'a> {
    pub(super) spec: &'a SchemaColumn,
    pub(super) column: &'a Column,
    /// Of the values of `column`.
    pub counts: ValueCounts,
    /// The person of each row of `column`.
    pub(super) persons: Persons<'a>,
    /// Rows of the table.
    pub(super) rows: u64,
}

impl<'a> UnchangedColumn<'a> {
    /// Counts the values of a column, in one pass over its codes, or two where a column names the persons.
    pub fn new(spec: &'a SchemaColumn, column: &'a Column, persons: Persons<'a>) -> Self {
        Self {
            spec,
            column,
            counts: ValueCounts::by_persons(spec, column, persons),
            persons,
            rows: column.codes.len() as u64,
        }
    }

    /// Counts the values of a column of distinct rows. A row is there once if one row of the table has its
    /// values, otherwise twice. `multiplicities` has the number of rows of the table for each.
    pub fn of_distinct(spec: &'a SchemaColumn, column: &'a Column, multiplicities: &[u32]) -> Self {
        let mut counted = Self::new(spec, column, Persons::Rows(column.codes.len()));
        let rows = column.codes.iter().zip(multiplicities);
        let is_present = |code: u32| {
            let text = column.dictionary.get(code as usize);
            text.is_some_and(|text| !spec.is_missing(text))
        };
        let present: Vec<bool> = (0..column.dictionary.len() as u32)
            .map(is_present)
            .collect();
        let present = rows.filter(|(code, _)| present.get(**code as usize) == Some(&true));
        counted.counts.rows = present.map(|(_, &rows)| u64::from(rows)).sum();
        counted.rows = multiplicities.iter().map(|&rows| u64::from(rows)).sum();
        counted
    }

    /// Counts the values of the untouched columns of a table, in their order. `schema` is that of the
    /// table.
    pub fn of(schema: &'a Schema, table: &'a EncodedTable) -> Vec<Self> {
        let persons = Persons::new(table.subjects.as_deref(), table.rows);
        Self::pairs(schema, table)
            .map(|(spec, column)| Self::new(spec, column, persons))
            .collect()
    }

    /// The untouched columns of a table with counts that were made before.
    pub fn counted(
        schema: &'a Schema,
        table: &'a EncodedTable,
        counts: &[ValueCounts],
    ) -> Vec<Self> {
        let persons = Persons::new(table.subjects.as_deref(), table.rows);
        let pairs = Self::pairs(schema, table).zip(counts);
        pairs
            .map(|((spec, column), &counts)| Self {
                spec,
                column,
                counts,
                persons,
                rows: column.codes.len() as u64,
            })
            .collect()
    }

    /// The columns that are released as they were read, with their declarations.
    pub fn pairs(
        schema: &'a Schema,
        table: &'a EncodedTable,
    ) -> impl Iterator<Item = (&'a SchemaColumn, &'a Column)> {
        let stored: Vec<&SchemaColumn> = schema.stored().collect();
        let columns = table.untouched.iter();
        columns.filter_map(move |it| Some((*stored.get(it.position)?, &it.column)))
    }
}

/// How often the values of a column are in its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueCounts {
    /// Rows that are not missing.
    pub rows: u64,
    /// Distinct values.
    pub distinct: u64,
    /// Rows whose value is in no other row.
    pub single: u64,
    /// Counts of persons, where a column names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persons: Option<PersonCounts>,
}

/// How many persons the values of a column are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonCounts {
    /// Persons with a value.
    pub persons: u64,
    /// Persons with a value that nobody else has.
    pub alone: u64,
}

impl ValueCounts {
    /// Counts of a column that is completely in memory; missing cells are not counted.
    pub fn of(spec: &SchemaColumn, column: &Column) -> Self {
        Self::of_counted(spec, column, &column.row_counts())
    }

    /// As [`Self::of`], given the number of rows of each text of the dictionary.
    pub fn of_counted(spec: &SchemaColumn, column: &Column, rows: &[u64]) -> Self {
        let rows = present_rows(spec, column, rows);
        let present = rows.iter().filter(|&&rows| rows > 0);
        Self {
            rows: rows.iter().sum(),
            distinct: present.clone().count() as u64,
            single: present.filter(|&&rows| rows == 1).count() as u64,
            persons: None,
        }
    }

    /// As [`Self::of`], with the persons where a column names them.
    fn by_persons(spec: &SchemaColumn, column: &Column, persons: Persons<'_>) -> Self {
        let counts = Self::of(spec, column);
        let Persons::Named(of_row, codes) = persons else {
            return counts;
        };
        let is_missing = column.dictionary.iter().map(|text| spec.is_missing(text));
        let is_missing: Vec<bool> = is_missing.collect();
        // The person of each value.
        let mut holders: Vec<Option<u32>> = vec![None; column.dictionary.len()];
        let mut with_value = PersonSet::new(codes);
        for (&code, &person) in column.codes.iter().zip(of_row) {
            if is_missing.get(code as usize) != Some(&false) {
                continue;
            }
            with_value.insert(person);
            let holder = &mut holders[code as usize];
            *holder = match *holder {
                Some(other) if other != person => Some(SEVERAL),
                _ => Some(person),
            };
        }
        let mut alone = PersonSet::new(codes);
        let of_one = holders.into_iter().flatten();
        of_one
            .filter(|&person| person != SEVERAL)
            .for_each(|person| alone.insert(person));
        Self {
            persons: Some(PersonCounts {
                persons: with_value.len(),
                alone: alone.len(),
            }),
            ..counts
        }
    }

    /// Number of rows with a value that no other row has, or of persons with one that nobody else has.
    pub fn singled_out(self) -> u64 {
        self.persons.map_or(self.single, |found| found.alone)
    }

    /// Whether the column is a key, or nearly so, of its rows or of the persons: it has distinct values in at
    /// least 90 % of the rows that have one, of 20 such rows or more; or at least 90 % of the persons with a value
    /// have one that nobody else has, of 20 such persons or more.
    pub fn is_key(self) -> bool {
        self.key().is_some()
    }

    /// The counts by which the column is a key.
    pub(super) fn key(self) -> Option<KeyCounts> {
        self.key_counts().find(|counts| counts.is_key())
    }

    /// The counts of rows, and those of persons.
    fn key_counts(self) -> impl Iterator<Item = KeyCounts> {
        let rows = KeyCounts {
            having: self.rows,
            distinct: self.distinct,
            of: KeyOf::Rows,
        };
        let persons = self.persons.map(|found| KeyCounts {
            having: found.persons,
            distinct: found.alone,
            of: KeyOf::Persons,
        });
        [rows].into_iter().chain(persons)
    }

    /// The warning about a column with these counts.
    pub(crate) fn warning(self, column: &str, role: ColumnRole) -> Option<Warning> {
        let singled_out = self.singled_out();
        if (self.rows as usize) < LEAST_ROWS || singled_out == 0 {
            return None;
        }
        let role = role.as_str();
        if let Some(key) = self.key_counts().find(|counts| counts.is_nearly_unique()) {
            let detail = format!(
                "the {role} column `{column}` has {key} and is released unchanged, so it nearly identifies each {}; \
                 leave it out (role `identifier`), or make it a quasi-identifier",
                key.of.one()
            );
            let code = WarningCode::NearlyUniqueColumn;
            return Some(Warning::new(code, detail).of_columns([column]));
        }
        let found = match self.persons {
            None => format!(
                "in {singled_out} of {} rows its value is in no other row; a reader who knows it finds the row",
                self.rows
            ),
            Some(_) => "some persons have a value that nobody else has; a reader who knows it finds the person".to_owned(),
        };
        let detail = format!("the {role} column `{column}` is released unchanged, and {found}");
        Some(Warning::new(WarningCode::SingledOutRows, detail).of_columns([column]))
    }
}

/// The counts that decide whether a column is a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyCounts {
    /// Rows, or persons, that have a value.
    pub(super) having: u64,
    /// Distinct values, or persons with a value that nobody else has.
    pub(super) distinct: u64,
    pub(super) of: KeyOf,
}

/// What a column may be a key of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOf {
    Rows,
    Persons,
}

impl KeyOf {
    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Rows => "row",
            Self::Persons => "person",
        }
    }
}

impl KeyCounts {
    /// Whether there are distinct values for at least 90 %.
    fn is_nearly_unique(self) -> bool {
        u128::from(self.distinct) * 10 >= u128::from(self.having) * 9
    }

    /// See [`ValueCounts::is_key`].
    pub(super) fn is_key(self) -> bool {
        self.having >= LEAST_ROWS_OF_A_KEY && self.is_nearly_unique()
    }
}

impl fmt::Display for KeyCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            having, distinct, ..
        } = self;
        match self.of {
            KeyOf::Rows => write!(f, "{distinct} distinct values in {having} rows"),
            // A release does not say which of its rows are of one person, and so no number of persons.
            KeyOf::Persons => f.write_str("values of their own for nearly all persons"),
        }
    }
}

/// Rows by code, missing values counted as in no row.
pub(super) fn present_rows(spec: &SchemaColumn, column: &Column, rows: &[u64]) -> Vec<u64> {
    let rows = rows.iter().zip(&column.dictionary);
    let present = rows.map(|(&rows, text)| if spec.is_missing(text) { 0 } else { rows });
    present.collect()
}
