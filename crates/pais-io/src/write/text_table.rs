//! Writes tables as lines of text. Each distinct value is rendered once; several threads assemble
//! blocks of rows from these values, and the blocks are written in order.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::write::ordered_parallel::{ahead, ordered_parallel};

/// Approximate size of a block of rows in bytes. A block fits into a core's cache, so that its
/// consumer (a digest, a compressor) reads it from there.
const BLOCK_BYTES: usize = 512 << 10;

/// Maximum size of a block if each of its cells were the longest of its column.
const MOST_BLOCK_BYTES: usize = 16 << 20;

/// Maximum number of rows of a block.
const BLOCK_ROWS: usize = 16 << 10;

/// Maximum size of a short cell in bytes. This many bytes are copied for every short cell: a copy
/// of constant length takes a few instructions, a copy of variable length is a function call.
const SHORT: usize = 32;

/// A column's distinct values as they are written to a file, one after the other. Null is the last
/// one; [`SHORT`] bytes of padding follow it.
pub(super) struct RenderedColumn<'a> {
    codes: &'a [u32],
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<'a> RenderedColumn<'a> {
    /// Renders each distinct value once with `write`, which gets `None` for null.
    pub(super) fn new(
        column: &'a pais_core::table::Column,
        mut write: impl FnMut(&mut Vec<u8>, Option<&str>),
    ) -> Self {
        let mut rendered = Self {
            codes: &column.codes,
            bytes: Vec::new(),
            ends: vec![0],
        };
        let values = column.dictionary.iter().map(|text| Some(&**text));
        for text in values.chain([None]) {
            write(&mut rendered.bytes, text);
            rendered.ends.push(rendered.bytes.len());
        }
        rendered.bytes.extend([0; SHORT]);
        rendered
    }

    /// Appends a row's cell.
    #[inline]
    fn push_cell(&self, row: usize, buffer: &mut Vec<u8>) {
        let code = (self.codes[row] as usize).min(self.ends.len() - 2);
        let (start, end) = (self.ends[code], self.ends[code + 1]);
        if end - start > SHORT {
            buffer.extend_from_slice(&self.bytes[start..end]);
            return;
        }
        let filled = buffer.len() + end - start;
        buffer.extend_from_slice(&self.bytes[start..start + SHORT]);
        buffer.truncate(filled);
    }

    /// Size of the longest distinct value in bytes.
    fn longest(&self) -> usize {
        let lengths = self.ends.windows(2).map(|ends| ends[1] - ends[0]);
        lengths.max().unwrap_or(0)
    }

    /// Mean size of a distinct value in bytes.
    fn width(&self) -> usize {
        (self.bytes.len() - SHORT) / (self.ends.len() - 1)
    }
}

/// A table in the form in which it is written to a text file.
pub(super) struct TextTable<'a> {
    /// The bytes before the first row.
    pub(super) head: Vec<u8>,
    /// The columns. Each rendered value includes the bytes before it in a row, such as a comma.
    pub(super) columns: Vec<RenderedColumn<'a>>,
    /// The bytes at the end of a row.
    pub(super) end: &'static [u8],
    /// Number of rows.
    pub(super) rows: usize,
}

impl TextTable<'_> {
    /// Writes head and rows from the calling thread. Memory is a few blocks per thread.
    ///
    /// # Errors
    /// The first error of `out`, after which nothing more is written.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        // A long value can occur in more rows than the mean length suggests.
        let longest: usize = self.columns.iter().map(RenderedColumn::longest).sum();
        let most = (MOST_BLOCK_BYTES / longest.max(1)).clamp(1, BLOCK_ROWS);
        let block = (BLOCK_BYTES / self.width()).clamp(1, most);
        self.write_in_blocks(block, out)
    }

    /// As [`Self::write`], with blocks of `block` rows.
    pub(super) fn write_in_blocks(&self, block: usize, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        // For a single block a helper thread costs more than it saves.
        let ahead = if self.rows > block { ahead() } else { 0 };
        let spare: Mutex<Vec<Vec<u8>>> = Mutex::default();
        let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = (0..self.rows).step_by(block);
        let render = |start: usize| {
            let rows = start..self.rows.min(start + block);
            let used = spare().pop();
            let mut buffer =
                used.unwrap_or_else(|| Vec::with_capacity(rows.len() * self.width() + SHORT));
            self.render(rows, &mut buffer);
            buffer
        };
        ordered_parallel(blocks, ahead, render, |rendered| {
            for mut buffer in rendered {
                out.write_all(&buffer)?;
                buffer.clear();
                spare().push(buffer);
            }
            Ok(())
        })
    }

    /// Approximate size of a row in bytes.
    fn width(&self) -> usize {
        self.end.len()
            + self
                .columns
                .iter()
                .map(RenderedColumn::width)
                .sum::<usize>()
    }

    fn render(&self, rows: Range<usize>, buffer: &mut Vec<u8>) {
        for row in rows {
            for column in &self.columns {
                column.push_cell(row, buffer);
            }
            buffer.extend_from_slice(self.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use pais_core::table::Column;

    use super::{MOST_BLOCK_BYTES, RenderedColumn, TextTable};

    /// The size of the largest block.
    #[derive(Default)]
    struct Largest(usize);

    impl Write for Largest {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.max(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The mean of the distinct values is short, but nearly every row has the long one.
    #[test]
    fn a_long_value_in_many_rows_makes_no_large_block() {
        let short = (0..20_000).map(|number| number.to_string().into());
        let column = Column {
            dictionary: std::iter::once("x".repeat(1 << 16).into())
                .chain(short)
                .collect(),
            codes: vec![0; 2_000],
        };
        let text = RenderedColumn::new(&column, |out, text| {
            out.extend_from_slice(text.unwrap_or_default().as_bytes());
        });
        let table = TextTable {
            head: Vec::new(),
            columns: vec![text],
            end: b"\n",
            rows: 2_000,
        };
        let mut largest = Largest::default();
        table.write(&mut largest).unwrap();
        assert!(largest.0 <= MOST_BLOCK_BYTES + (1 << 12), "{}", largest.0);
    }
}
