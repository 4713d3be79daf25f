//! Released tables as CSV.

use std::io::{self, Write};

use super::text_table::{RenderedColumn, TextTable};
use crate::table::ReleasedTable;

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
