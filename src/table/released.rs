//! Released tables: labels in dictionary form, ready to be verified, stored and served.

use std::io::{self, Write};

use crate::domain::ColumnKind;

use super::lines::{RenderedColumn, TextTable};

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
    /// A set, generalized or not: a list of the items between the separators.
    Set {
        /// The character between two items.
        separator: char,
    },
}

impl Form {
    /// The form of a stored column that is released unchanged.
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

/// The items of a set's cell; an empty cell has no items.
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
    /// Labels and codes. Null means that an untouched cell is null or missing.
    pub column: super::Column,
    /// Words of an untouched column that mean missing. They are written as null in formats with
    /// types, and unchanged in CSV.
    pub missing: Vec<Box<str>>,
}

impl ReleasedColumn {
    /// Whether a text is a word for missing, which formats with types write as null.
    pub(super) fn is_missing(&self, text: &str) -> bool {
        self.missing.iter().any(|word| **word == *text)
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
    /// Writes the table as CSV with a header; lines end with LF. Equal tables give equal bytes for
    /// every number of threads.
    ///
    /// A distinct value is quoted once; a cell costs one copy of its bytes. Several threads render
    /// rows, a few blocks at a time; the calling thread writes to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        self.csv_text().write(out)
    }

    pub(super) fn csv_text(&self) -> TextTable<'_> {
        let alone = self.columns.len() == 1;
        let mut head = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (index, column) in self.columns.iter().enumerate() {
            let comma: &[u8] = if index > 0 { b"," } else { b"" };
            head.extend_from_slice(comma);
            write_cell(&mut head, &column.name, alone);
            columns.push(RenderedColumn::new(&column.column, |out, text| {
                out.extend_from_slice(comma);
                write_cell(out, text.unwrap_or(""), alone);
            }));
        }
        head.push(b'\n');
        TextTable {
            head,
            columns,
            end: b"\n",
            rows: self.rows,
        }
    }
}

/// Writes a cell, quoted if necessary. The empty cell of a table with one column (`alone`) is
/// quoted too, because its line would be blank.
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
