//! A finished table: labels in dictionary form, ready to be verified, stored and served.

use std::io::{self, Write};

use crate::domain::ColumnKind;

use super::lines::{Lines, Written};

/// The column that says which group a row is in.
pub const GROUP_COLUMN: &str = "group_id";

/// The column of a sensitive table that says how many records of the group hold the value.
pub const COUNT_COLUMN: &str = "count";

/// How the values of a released column are written in formats that have types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A generalized column: always strings.
    Generalized,
    /// An untouched column of text.
    Text,
    /// An untouched column of numbers.
    Number,
    /// A whole number made by the service: a group or a count.
    Integer,
    /// A set, whether generalized or not: a list of the items that stand between the separators.
    Set {
        /// Between the items.
        separator: char,
    },
}

impl Form {
    /// The form of a stored column that is released as it came.
    pub fn untouched(spec: &super::SchemaColumn) -> Self {
        match spec.kind {
            ColumnKind::Numeric => Self::Number,
            ColumnKind::Set => Self::Set {
                separator: spec.separator,
            },
            ColumnKind::Categorical => Self::Text,
        }
    }
}

/// The items of a set's cell; an empty cell has none.
pub(super) fn items(cell: &str, separator: char) -> impl Iterator<Item = &str> {
    cell.split(separator).filter(move |_| !cell.is_empty())
}

/// A column of a released table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedColumn {
    /// As declared.
    pub name: Box<str>,
    /// How values are written.
    pub form: Form,
    /// Labels and codes; null stands where an untouched cell is null or missing.
    pub column: super::Column,
    /// Words of an untouched column that mean missing: null in formats that have types, as they
    /// came in CSV.
    pub missing: Vec<Box<str>>,
}

impl ReleasedColumn {
    /// Whether a text is a word for missing, which formats that have types write as null.
    pub(super) fn is_missing(&self, text: &str) -> bool {
        self.missing.iter().any(|word| **word == *text)
    }
}

/// A finished table.
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
    /// Writes the table as CSV, header first, lines ended by LF; equal tables give equal bytes,
    /// whatever the number of threads.
    ///
    /// A distinct value is quoted once; a cell costs one copy of its bytes. Rows are rendered by
    /// several threads, a few blocks at a time; `out` is written by the calling thread.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        self.csv_lines().write(out)
    }

    pub(super) fn csv_lines(&self) -> Lines<'_> {
        let alone = self.columns.len() == 1;
        let mut head = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (index, column) in self.columns.iter().enumerate() {
            let comma: &[u8] = if index > 0 { b"," } else { b"" };
            head.extend_from_slice(comma);
            write_cell(&mut head, &column.name, alone);
            columns.push(Written::new(&column.column, |out, text| {
                out.extend_from_slice(comma);
                write_cell(out, text.unwrap_or(""), alone);
            }));
        }
        head.push(b'\n');
        Lines {
            head,
            columns,
            end: b"\n",
            rows: self.rows,
        }
    }
}

/// Quotes what must be; an empty cell of a table of one column too, or its line would be blank.
fn write_cell(out: &mut Vec<u8>, text: &str, alone: bool) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !(text.bytes().any(|byte| special(&byte)) || alone && text.is_empty()) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
