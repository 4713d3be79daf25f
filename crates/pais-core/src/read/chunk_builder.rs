//! Builds chunks from the rows of a submission, for every format.

use crate::read::error::{ReadError, ReadErrorKind, ReadFailure};
use crate::read::limits::ReadLimits;
use crate::rejection::{Fault, Place};

use crate::read::cells::{ColumnBuilder, Refusal, check_text, oversized};
use crate::read::identifiers::IdentifierCells;
use crate::schema::{Schema, SchemaColumn};
use crate::table::Table;

/// Maximum number of rows of a chunk.
pub const CHUNK_ROWS: usize = 65_536;

/// A chunk ends when its distinct text is larger than this, in bytes: it must fit into a field of
/// the database, and several are in memory at a time.
const CHUNK_TEXT_BYTES: usize = 16 << 20;

/// A chunk ends when it has more cells than this, of which each takes 4 bytes.
const CHUNK_CELLS: usize = 128 * CHUNK_ROWS;

/// Maximum number of faults that are reported before a submission is refused.
pub const MAX_FAULTS: usize = 20;

/// Number of faults that are kept before the later ones are dropped. Columns of a Parquet file are
/// read one after the other, so the first faults found need not be the first of the file.
const KEPT_FAULTS: usize = 50 * MAX_FAULTS;

/// Maximum number of bytes of one record, so that a record without an end does not fill the memory.
pub(super) const RECORD_BYTES: u64 = 8 << 20;

/// Builds chunks from the rows of a submission. Cells are checked and coded, and up to
/// [`MAX_FAULTS`] faults are collected. No chunk is passed on after the first fault.
pub(super) struct ChunkBuilder<'s, F> {
    builders: Vec<ColumnBuilder<'s>>,
    limits: ReadLimits,
    faults: Vec<Fault>,
    rows: u64,
    in_chunk: usize,
    /// Size of the distinct spellings of the chunk, in bytes.
    text_bytes: usize,
    chunk: F,
    identifiers: Option<IdentifierCells<'s>>,
}

impl<'s, E, F: FnMut(Table) -> Result<(), E>> ChunkBuilder<'s, F> {
    /// A builder for the stored columns that passes its chunks to `chunk`.
    pub(super) fn new(schema: &'s Schema, limits: ReadLimits, chunk: F) -> Self {
        Self {
            builders: schema.stored().map(ColumnBuilder::new).collect(),
            limits,
            faults: Vec::new(),
            rows: 0,
            in_chunk: 0,
            text_bytes: 0,
            chunk,
            identifiers: None,
        }
    }

    /// Passes the cells of identifiers, which are not stored, to a counter.
    pub(super) fn count_identifiers(&mut self, cells: Option<IdentifierCells<'s>>) {
        self.identifiers = cells;
    }

    /// The stored column with this position (slot).
    pub(super) fn spec(&self, slot: usize) -> &'s SchemaColumn {
        self.builders[slot].spec()
    }

    /// Maximum size of a cell, in bytes.
    pub(super) fn cell_bytes(&self) -> usize {
        self.limits.cell_bytes
    }

    /// Adds a cell to the current row and returns whether it is valid. A cell without a slot is an
    /// identifier's and is not stored. An invalid cell is recorded as a fault.
    ///
    /// # Errors
    /// If the cell cannot be decoded.
    #[inline]
    pub(super) fn push_cell(
        &mut self,
        slot: Option<usize>,
        cell: &[u8],
        line: impl FnOnce() -> u64,
    ) -> Result<bool, ReadError> {
        if cell.len() > self.limits.cell_bytes {
            return self.refuse_cell(slot, oversized(self.limits.cell_bytes), line());
        }
        let added = match slot {
            Some(slot) => self.builders[slot].push(cell),
            None => check_text(cell).map(|text| {
                self.push_identifier(Some(text));
                0
            }),
        };
        match added {
            Ok(bytes) => {
                self.text_bytes += bytes;
                Ok(true)
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

    /// Adds a null cell in place of a refused cell and records the fault. Always returns `false`.
    ///
    /// # Errors
    /// If the cell cannot be decoded.
    pub(super) fn refuse_cell(
        &mut self,
        slot: Option<usize>,
        refusal: Refusal,
        line: u64,
    ) -> Result<bool, ReadError> {
        self.push_null(slot);
        self.refuse(slot, refusal, line)
    }

    fn refuse(
        &mut self,
        slot: Option<usize>,
        refusal: Refusal,
        line: u64,
    ) -> Result<bool, ReadError> {
        let column = slot.map(|slot| self.builders[slot].spec().name.to_string());
        let (detail, fix) = match refusal {
            Refusal::Undecodable(detail) => return Err(undecodable(line, column, detail)),
            Refusal::Unfit { detail, fix } => (detail, fix),
        };
        self.add_fault(Fault {
            place: place(line, column),
            detail,
            suggested_fix: fix,
        });
        Ok(false)
    }

    /// Records a fault, for example of a record that is not added as a row.
    pub(super) fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
        if self.faults.len() > KEPT_FAULTS {
            self.faults.sort_by_key(Fault::line);
            self.faults.truncate(MAX_FAULTS);
        }
    }

    /// Whether [`MAX_FAULTS`] faults are found, so that further rows need not be read.
    pub(super) fn has_max_faults(&self) -> bool {
        self.faults.len() >= MAX_FAULTS
    }

    /// Ends the current row. Each stored column must have a cell for it.
    ///
    /// # Errors
    /// Those of the receiver of chunks.
    pub(super) fn end_row(&mut self) -> Result<(), ReadFailure<E>> {
        self.end_rows(1)
    }

    /// Ends `rows` rows, for a reader that fills one column after the other.
    ///
    /// # Errors
    /// Those of the receiver of chunks.
    pub(super) fn end_rows(&mut self, rows: usize) -> Result<(), ReadFailure<E>> {
        self.rows += rows as u64;
        self.in_chunk += rows;
        if self.in_chunk >= CHUNK_ROWS || self.is_large() {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn is_large(&self) -> bool {
        self.text_bytes > CHUNK_TEXT_BYTES || self.in_chunk * self.builders.len() > CHUNK_CELLS
    }

    fn end_chunk(&mut self) -> Result<(), ReadFailure<E>> {
        self.text_bytes = 0;
        let table = Table {
            rows: std::mem::take(&mut self.in_chunk),
            columns: self.builders.iter_mut().map(ColumnBuilder::take).collect(),
        };
        if self.faults.is_empty() {
            (self.chunk)(table).map_err(ReadFailure::Sink)?;
        }
        Ok(())
    }

    /// Ends the submission and returns its number of rows. `empty` is the message for a submission
    /// without rows.
    ///
    /// # Errors
    /// For faults, for a submission without rows, and those of the receiver of chunks.
    pub(super) fn finish(mut self, empty: &str) -> Result<u64, ReadFailure<E>> {
        if !self.faults.is_empty() {
            self.faults.sort_by_key(Fault::line);
            self.faults.truncate(MAX_FAULTS);
            return Err(refused(self.faults).into());
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

/// A cell, or the record where the column is an identifier, whose name is not reported.
fn place(line: u64, column: Option<String>) -> Place {
    match column {
        Some(column) => Place::Cell { line, column },
        None => Place::Record { line },
    }
}

/// The error of a submission with offending cells.
fn refused(faults: Vec<Fault>) -> ReadError {
    let first = faults[0].detail.clone();
    let detail = match faults.len() {
        1 => format!("one cell does not fit, and nothing was stored: {first}"),
        MAX_FAULTS => {
            format!(
                "at least {MAX_FAULTS} cells do not fit, and nothing was stored; the first: {first}"
            )
        }
        count => format!("{count} cells do not fit, and nothing was stored; the first: {first}"),
    };
    ReadError::with(ReadErrorKind::Cells, detail, faults)
}
