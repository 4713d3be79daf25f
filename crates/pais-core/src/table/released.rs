//! Released tables: labels in dictionary form, ready to be verified, stored and served.

use std::collections::BTreeSet;

use crate::definition::ColumnKind;
use crate::schema::items;

/// Name of the column with the group of a row.
pub const GROUP_COLUMN: &str = "group_id";

/// Name of the column of a sensitive table with the number of records of the group that have the
/// value.
pub const COUNT_COLUMN: &str = "count";

/// How the values of a released column are written in formats with types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A generalized column: always strings.
    Generalized,
    /// An untouched column of text.
    Text,
    /// An untouched column of numbers.
    Number,
    /// A whole number computed by the service: a group or a count.
    Integer,
    /// A day computed by the service, in ISO 8601: an end of an interval.
    Day,
    /// A moment computed by the service, in ISO 8601: an end of an interval.
    Moment,
    /// A set, generalized or not: a list of the items between the separators.
    Set {
        /// The character between two items.
        separator: char,
    },
}

impl Form {
    /// The form of a stored column that is released unchanged.
    pub fn untouched(spec: &crate::schema::SchemaColumn) -> Self {
        match spec.kind {
            ColumnKind::Numeric => Self::Number,
            ColumnKind::Set => Self::Set {
                separator: spec.separator,
            },
            ColumnKind::Categorical | ColumnKind::Date | ColumnKind::Datetime => Self::Text,
        }
    }
}

/// A column of a released table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedColumn {
    /// As declared.
    pub name: Box<str>,
    /// How values are written.
    pub form: Form,
    /// Labels and codes; null where an untouched cell is null or missing.
    pub column: crate::table::Column,
    /// Words of an untouched column that mean missing: null in formats that have types, as they
    /// came in CSV.
    pub missing: Vec<Box<str>>,
}

impl ReleasedColumn {
    /// Whether a text is a word for missing, which formats that have types write as null.
    pub fn is_missing(&self, text: &str) -> bool {
        self.missing.iter().any(|word| **word == *text)
    }

    /// The labels in its rows; for a set, the labels of its items.
    pub fn shown_labels(&self) -> BTreeSet<&str> {
        self.labels_with_rows(&self.column.row_counts())
    }

    /// As [`Self::shown_labels`], given the number of rows of each text of the dictionary.
    pub fn labels_with_rows(&self, rows: &[u64]) -> BTreeSet<&str> {
        let texts = self.column.dictionary.iter().zip(rows);
        let texts = texts.filter_map(|(text, rows)| (*rows > 0).then_some(&**text));
        match self.form {
            Form::Set { separator } => texts.flat_map(|text| items(text, separator)).collect(),
            _ => texts.collect(),
        }
    }
}

/// A released table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedTable {
    /// `data`, `qit` or `st_<column>`.
    pub name: Box<str>,
    /// Number of rows.
    pub rows: usize,
    /// In the declared order.
    pub columns: Vec<ReleasedColumn>,
}

impl ReleasedTable {
    /// The first column with a name.
    pub fn column(&self, name: &str) -> Option<&ReleasedColumn> {
        self.columns.iter().find(|column| *column.name == *name)
    }
}
