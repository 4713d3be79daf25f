//! Tables as lines of text: distinct values written once, rows put together of them in blocks, by
//! several threads, and written in order.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::write::ordered_pool::{ahead, in_order};

/// Bytes of a block of rows, about: small enough for a core's cache, so that whoever takes it
/// (a digest, a compressor) reads it from there.
const BLOCK_BYTES: usize = 512 << 10;

/// Most rows of a block.
const BLOCK_ROWS: usize = 16 << 10;

/// Bytes of a short cell, at most. So many are copied for any of them: a copy whose length is known
/// beforehand takes a few instructions, one whose length is not is a call.
const SHORT: usize = 32;

/// A column's distinct values as they stand in a file, one after another; null is the last one, and
/// [`SHORT`] bytes that mean nothing come after it.
pub(super) struct Written<'a> {
    codes: &'a [u32],
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<'a> Written<'a> {
    /// Writes each distinct value once; null is `None`.
    pub(super) fn new(
        column: &'a crate::table::Column,
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
        written.bytes.extend([0; SHORT]);
        written
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

    /// Bytes of a cell, were all values equally frequent.
    fn width(&self) -> usize {
        (self.bytes.len() - SHORT) / (self.ends.len() - 1)
    }
}

/// A table as it stands in a file.
pub(super) struct Lines<'a> {
    /// What stands before the first row.
    pub(super) head: Vec<u8>,
    /// Cells, with what stands before each of them in a row.
    pub(super) columns: Vec<Written<'a>>,
    /// What ends a row.
    pub(super) end: &'static [u8],
    /// Number of rows.
    pub(super) rows: usize,
}

impl Lines<'_> {
    /// Writes head and rows, from the calling thread; memory is a few blocks a thread.
    ///
    /// # Errors
    /// Those of `out`, which end it.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let block = (BLOCK_BYTES / self.width()).clamp(1, BLOCK_ROWS);
        self.write_in_blocks(block, out)
    }

    /// As [`Self::write`], with blocks of so many rows.
    pub(super) fn write_in_blocks(&self, block: usize, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        // A single block is not worth waking a thread for.
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
        in_order(blocks, ahead, render, |rendered| {
            for mut buffer in rendered {
                out.write_all(&buffer)?;
                buffer.clear();
                spare().push(buffer);
            }
            Ok(())
        })
    }

    /// Bytes of a row, about.
    fn width(&self) -> usize {
        self.end.len() + self.columns.iter().map(Written::width).sum::<usize>()
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
