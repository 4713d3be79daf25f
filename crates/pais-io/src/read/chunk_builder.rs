//! Builds chunks from the rows of a submission, for every format.

use std::collections::BTreeMap;
use std::convert::Infallible;

use pais_core::rejection::{Fault, Place};
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{MAX_FAULTS, ReadError, ReadErrorKind, Table};

use crate::read::cells::{ColumnBuilder, Refusal, check_text, oversized};
use crate::read::failure::{ChunkSink, ReadFailure, ReadLimits};
use crate::read::identifiers::IdentifierCells;
use crate::read::suggestions;
use crate::read::text_format::TextFormat;

/// Maximum number of rows of a chunk.
pub const CHUNK_ROWS: usize = 65_536;

/// Rows of the first chunk; each further one has twice as many rows as the previous one, up to [`CHUNK_ROWS`].
/// So the chunks of a small file, too, are read, sealed and stored in parallel, and a reader of only the first
/// rows opens few.
const FIRST_CHUNK_ROWS: usize = 8_192;

/// A chunk ends when its distinct text is larger than this, in bytes: it must fit into a field of
/// the database, and several are in memory at a time.
const CHUNK_TEXT_BYTES: usize = 16 << 20;

/// A chunk ends when it has more cells than this, of which each takes 4 bytes.
const CHUNK_CELLS: usize = 128 * CHUNK_ROWS;

/// Maximum number of bytes of one record, so that a record without an end does not fill the memory.
pub(super) const RECORD_BYTES: u64 = 8 << 20;

/// Builds chunks from the rows of a submission. Cells are checked and coded, up to [`MAX_FAULTS`]
/// faults are collected, and all are counted. No chunk is passed on after the first fault.
pub(super) struct ChunkBuilder<'s> {
    builders: Vec<ColumnBuilder<'s>>,
    limits: ReadLimits,
    /// How the text of the file is written; `None` for a file that is not text.
    format: Option<TextFormat>,
    faults: FoundFaults,
    rows: u64,
    in_chunk: usize,
    /// Rows with which the chunk is complete.
    chunk_rows: usize,
    /// Size of the distinct spellings of the chunk, in bytes.
    text_bytes: usize,
    chunk: &'s mut ChunkSink<'s>,
    identifiers: Option<IdentifierCells<'s>>,
}

impl<'s> ChunkBuilder<'s> {
    /// A builder for the stored columns that passes its chunks to `chunk`.
    pub(super) fn new(
        schema: &'s Schema,
        limits: ReadLimits,
        chunk: &'s mut ChunkSink<'s>,
    ) -> Self {
        Self {
            builders: schema.stored().map(ColumnBuilder::new).collect(),
            limits,
            format: None,
            faults: FoundFaults::default(),
            rows: 0,
            in_chunk: 0,
            chunk_rows: FIRST_CHUNK_ROWS,
            text_bytes: 0,
            chunk,
            identifiers: None,
        }
    }

    /// Passes the cells of identifiers, which are not stored, and of the subject to a counter.
    pub(super) fn count_identifiers(&mut self, cells: Option<IdentifierCells<'s>>) {
        self.identifiers = cells;
    }

    /// The same builder for a file whose text is written in this format.
    pub(super) fn written_as(mut self, format: TextFormat) -> Self {
        let builders = self.builders.into_iter();
        self.builders = builders.map(|it| it.written_as(format)).collect();
        self.format = Some(format);
        self
    }

    /// The stored column with this position (slot).
    pub(super) fn spec(&self, slot: usize) -> &'s SchemaColumn {
        self.builders[slot].spec()
    }

    /// Maximum size of a cell, in bytes.
    pub(super) fn cell_bytes(&self) -> usize {
        self.limits.cell_bytes
    }

    /// Adds a cell to the current row. A cell without a slot is an identifier's and is not stored. An invalid
    /// cell is recorded as a fault.
    ///
    /// # Errors
    /// If the cell cannot be decoded.
    #[inline]
    pub(super) fn push_cell(
        &mut self,
        slot: Option<usize>,
        cell: &[u8],
        line: impl FnOnce() -> u64,
    ) -> Result<(), ReadError> {
        if cell.len() > self.limits.cell_bytes {
            return self.refuse_cell(slot, oversized(self.limits.cell_bytes), line());
        }
        let added = match slot {
            Some(slot) => {
                if let Some(identifiers) = &mut self.identifiers
                    && identifiers.subject_slot == Some(slot)
                {
                    identifiers.push_subject(cell);
                }
                self.builders[slot].push(cell)
            }
            None => check_text(cell).map(|text| {
                self.push_identifier(Some(text));
                0
            }),
        };
        match added {
            Ok(bytes) => {
                self.text_bytes += bytes;
                Ok(())
            }
            Err(refusal) => self.refuse(slot, refusal, line()),
        }
    }

    /// Adds a null cell.
    pub(super) fn push_null(&mut self, slot: Option<usize>) {
        match slot {
            Some(slot) => self.builders[slot].push_null(),
            None => self.push_identifier(None),
        }
    }

    #[inline]
    fn push_identifier(&mut self, cell: Option<&str>) {
        if let Some(identifiers) = &mut self.identifiers {
            identifiers.push(cell);
        }
    }

    /// Adds a null cell in place of a refused cell and records the fault.
    ///
    /// # Errors
    /// If the cell cannot be decoded.
    pub(super) fn refuse_cell(
        &mut self,
        slot: Option<usize>,
        refusal: Refusal,
        line: u64,
    ) -> Result<(), ReadError> {
        self.push_null(slot);
        self.refuse(slot, refusal, line)
    }

    fn refuse(
        &mut self,
        slot: Option<usize>,
        refusal: Refusal,
        line: u64,
    ) -> Result<(), ReadError> {
        let column = slot.map(|slot| self.builders[slot].spec().name());
        let fault = match refusal {
            Refusal::Undecodable(detail) => {
                return Err(undecodable(line, column.map(str::to_owned), detail));
            }
            Refusal::NotUtf8 => return Err(not_utf8(line, column, self.format.as_ref())),
            Refusal::Unfit(fault) => fault,
        };
        self.faults.push_cell(line, column, fault);
        Ok(())
    }

    /// Records a fault, for example of a record that is not added as a row.
    pub(super) fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Ends the current row. Each stored column must have a cell for it.
    ///
    /// # Errors
    /// Those of the receiver of chunks.
    pub(super) fn end_row(&mut self) -> Result<(), ReadFailure<Infallible>> {
        if let Some(identifiers) = &mut self.identifiers {
            identifiers.end_row();
        }
        self.end_rows(1)
    }

    /// Ends `rows` rows, for a reader that fills one column after the other.
    ///
    /// # Errors
    /// Those of the receiver of chunks.
    pub(super) fn end_rows(&mut self, rows: usize) -> Result<(), ReadFailure<Infallible>> {
        self.rows += rows as u64;
        self.in_chunk += rows;
        if self.in_chunk >= self.chunk_rows || self.is_large() {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn is_large(&self) -> bool {
        self.text_bytes > CHUNK_TEXT_BYTES || self.in_chunk * self.builders.len() > CHUNK_CELLS
    }

    fn end_chunk(&mut self) -> Result<(), ReadFailure<Infallible>> {
        self.text_bytes = 0;
        self.chunk_rows = (2 * self.chunk_rows).min(CHUNK_ROWS);
        let table = Table {
            rows: std::mem::take(&mut self.in_chunk),
            columns: self.builders.iter_mut().map(ColumnBuilder::take).collect(),
        };
        if self.faults.are_none() {
            (self.chunk)(table).map_err(ReadFailure::Source)?;
        }
        Ok(())
    }

    /// Ends the submission and returns its number of rows. `empty` is the message for a submission
    /// without rows.
    ///
    /// # Errors
    /// For faults, for a submission without rows, and those of the receiver of chunks.
    pub(super) fn finish(mut self, empty: &str) -> Result<u64, ReadFailure<Infallible>> {
        if let Some(refused) = self.faults.finish() {
            return Err(refused.into());
        }
        if self.rows == 0 {
            return Err(ReadError::new(ReadErrorKind::Empty, empty).into());
        }
        if self.in_chunk > 0 {
            self.end_chunk()?;
        }
        Ok(self.rows)
    }
}

/// The error of a body that cannot be decoded at some place.
pub(super) fn undecodable(line: u64, column: Option<String>, detail: &str) -> ReadError {
    let fault = Fault::new(place(line, column), detail);
    let detail = format!("the file cannot be decoded: {detail}");
    ReadError::with(ReadErrorKind::Malformed, detail, vec![fault])
}

/// The error of a cell that is not UTF-8.
fn not_utf8(line: u64, column: Option<&str>, format: Option<&TextFormat>) -> ReadError {
    let mut error = undecodable(line, column.map(str::to_owned), "a cell is not UTF-8");
    for fault in &mut error.faults {
        fault.suggested_fix = format.map(|_| suggestions::encoding());
    }
    error
}

/// A cell, or the record where the column is an identifier, whose name is not reported.
pub(super) fn place(line: u64, column: Option<String>) -> Place {
    match column {
        Some(column) => Place::Cell { line, column },
        None => Place::Record { line },
    }
}

/// Number of faults that are kept before the later ones are dropped. Columns of a Parquet file are
/// read one after the other, so the first faults found need not be the first of the file.
const KEPT_FAULTS: usize = 50 * MAX_FAULTS;

/// The faults that were found so far. A fault that is not among the first [`MAX_FAULTS`] is counted
/// and dropped.
#[derive(Default)]
pub(super) struct FoundFaults {
    kept: Vec<Fault>,
    /// The greatest line of those kept.
    last_line: Option<u64>,
    number: u64,
    by_column: BTreeMap<String, u64>,
}

impl FoundFaults {
    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        self.number == 0
    }

    /// Adds the fault of a cell, which gets its place; without a column where it is an identifier's.
    fn push_cell(&mut self, line: u64, column: Option<&str>, mut fault: Fault) {
        self.count(column);
        if self.is_among_first(Some(line)) {
            fault.place = place(line, column.map(str::to_owned));
            self.keep(fault);
        }
    }

    /// Adds a fault.
    pub(super) fn push(&mut self, fault: Fault) {
        self.count(fault.column());
        if self.is_among_first(fault.line()) {
            self.keep(fault);
        }
    }

    /// The error of the file; `None` without faults.
    pub(super) fn finish(&mut self) -> Option<ReadError> {
        self.keep_first();
        let first = self.kept.first()?;
        let verb = match self.number {
            1 => "cell does",
            _ => "cells do",
        };
        let number = match self.number {
            1 => "one".to_owned(),
            number => number.to_string(),
        };
        let which = match self.number {
            1 => "",
            _ => "; the first",
        };
        let detail = format!(
            "{number} {verb} not fit, and nothing was stored{which}: {}",
            first.detail
        );
        let mut error =
            ReadError::with(ReadErrorKind::Cells, detail, std::mem::take(&mut self.kept));
        error.faults_by_column = std::mem::take(&mut self.by_column);
        Some(error)
    }

    fn count(&mut self, column: Option<&str>) {
        self.number += 1;
        let Some(column) = column else { return };
        match self.by_column.get_mut(column) {
            Some(number) => *number += 1,
            None => drop(self.by_column.insert(column.to_owned(), 1)),
        }
    }

    /// Whether a fault can be one of the first. Of the faults of a line, those found first are.
    fn is_among_first(&self, line: Option<u64>) -> bool {
        self.kept.len() < MAX_FAULTS || line < self.last_line
    }

    fn keep(&mut self, fault: Fault) {
        self.last_line = self.last_line.max(fault.line());
        self.kept.push(fault);
        if self.kept.len() > KEPT_FAULTS {
            self.keep_first();
            self.last_line = self.kept.last().and_then(Fault::line);
        }
    }

    fn keep_first(&mut self) {
        self.kept.sort_by_key(Fault::line);
        self.kept.truncate(MAX_FAULTS);
    }
}
