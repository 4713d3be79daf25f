//! A finished table: labels in dictionary form, ready to be verified, stored and served.

use crate::domain::ColumnKind;

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

/// Bytes gathered before they are written.
pub(super) const BUFFER: usize = 256 << 10;

impl ReleasedTable {
    /// Writes the table as CSV, header first, lines ended by LF; equal tables give equal bytes.
    ///
    /// A distinct value is quoted once; a cell costs one copy of its bytes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let alone = self.columns.len() == 1;
        let written: Vec<Written> = self
            .columns
            .iter()
            .map(|column| {
                Written::new(&column.column, |out, text| {
                    write_cell(out, text.unwrap_or(""), alone);
                })
            })
            .collect();
        let mut buffer = Vec::with_capacity(BUFFER + 4096);
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                buffer.push(b',');
            }
            write_cell(&mut buffer, &column.name, alone);
        }
        buffer.push(b'\n');
        for row in 0..self.rows {
            for (index, written) in written.iter().enumerate() {
                if index > 0 {
                    buffer.push(b',');
                }
                buffer.extend_from_slice(written.cell(row));
            }
            buffer.push(b'\n');
            if buffer.len() >= BUFFER {
                out.write_all(&buffer)?;
                buffer.clear();
            }
        }
        out.write_all(&buffer)
    }
}

/// A column's distinct values as they stand in a file, one after another; null is the last one.
pub(super) struct Written<'a> {
    codes: &'a [u32],
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<'a> Written<'a> {
    /// Writes each distinct value once; null is `None`.
    pub(super) fn new(
        column: &'a super::Column,
        mut write: impl FnMut(&mut Vec<u8>, Option<&str>),
    ) -> Self {
        let mut written = Self {
            codes: &column.codes,
            bytes: Vec::new(),
            ends: vec![0],
        };
        let values = column.dictionary.iter().map(|text| Some(&**text));
        for text in values.chain([None]) {
            write(&mut written.bytes, text);
            written.ends.push(written.bytes.len());
        }
        written
    }

    /// A row's cell.
    #[inline]
    pub(super) fn cell(&self, row: usize) -> &[u8] {
        let code = (self.codes[row] as usize).min(self.ends.len() - 2);
        &self.bytes[self.ends[code]..self.ends[code + 1]]
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
