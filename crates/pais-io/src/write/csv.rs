//! Released tables as CSV: exact, or safe to open in a spreadsheet.

use std::io::{self, Write};

use pais_core::table::{Form, ReleasedTable};

use super::text_table::{RenderedColumn, TextTable};

/// Writes the table as CSV, header first, lines ended by LF; equal tables give equal bytes,
/// whatever the number of threads.
///
/// A distinct value is quoted once; a cell costs one copy of its bytes. Rows are rendered by
/// several threads, a few blocks at a time; `out` is written by the calling thread.
///
/// # Errors
/// Those of `out`.
pub fn csv(table: &ReleasedTable, out: &mut impl Write) -> io::Result<()> {
    csv_text(table, Cells::Exact).write(out)
}

/// As [`csv()`], but no cell is a formula for a spreadsheet: a text that begins with
/// `=`, `+`, `-`, `@`, a tab or a carriage return gets a `'` before it. This applies to names of
/// columns too. Numbers stay as they are, except in columns of text and of sets.
///
/// # Errors
/// Those of `out`.
pub fn safe_csv(table: &ReleasedTable, out: &mut impl Write) -> io::Result<()> {
    csv_text(table, Cells::Safe).write(out)
}

pub(super) fn csv_text(table: &ReleasedTable, cells: Cells) -> TextTable<'_> {
    let alone = table.columns.len() == 1;
    let mut head = Vec::new();
    let mut columns = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let comma: &[u8] = if index > 0 { b"," } else { b"" };
        head.extend_from_slice(comma);
        cells.write(&mut head, &column.name, false, alone);
        let has_numbers = match column.form {
            Form::Number | Form::Integer | Form::Generalized => true,
            Form::Text | Form::Set { .. } | Form::Day | Form::Moment => false,
        };
        columns.push(RenderedColumn::new(&column.column, |out, text| {
            out.extend_from_slice(comma);
            cells.write(out, text.unwrap_or(""), has_numbers, alone);
        }));
    }
    head.push(b'\n');
    TextTable {
        head,
        columns,
        end: b"\n",
        rows: table.rows,
    }
}

/// How the cells of a CSV file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cells {
    /// As they are.
    Exact,
    /// So that a spreadsheet takes none of them as a formula.
    Safe,
}

impl Cells {
    fn write(self, out: &mut Vec<u8>, text: &str, may_be_number: bool, alone: bool) {
        let is_number = || may_be_number && text.parse().is_ok_and(f64::is_finite);
        if self == Self::Safe && is_formula(text) && !is_number() {
            write_cell(out, &format!("'{text}"), alone);
        } else {
            write_cell(out, text, alone);
        }
    }
}

/// Whether a spreadsheet may take a text as a formula.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Quotes a cell if necessary; also an empty cell of a table of one column, or its line would be blank.
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
