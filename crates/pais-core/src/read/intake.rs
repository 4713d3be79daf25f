//! Rows of a submission on their way into chunks, whatever format they come in.

use crate::read::error::{ReadError, ReadErrorKind, ReadFailure};
use crate::rejection::{Fault, Place};

use crate::read::cells::{ColumnBuilder, Refusal, check_text};
use crate::schema::{Schema, SchemaColumn};
use crate::table::Table;

/// Rows of a chunk.
pub const CHUNK_ROWS: usize = 65_536;

/// Offending cells named before a submission is refused.
pub const MAX_FAULTS: usize = 20;

/// Bytes that one record may take, so that one without an end does not fill the memory.
pub(super) const RECORD_BYTES: u64 = 8 << 20;

/// Rows of a submission on their way into chunks: cells are checked and coded, up to
/// [`MAX_FAULTS`] offending ones collected, and no chunk is handed on after the first of them.
pub(super) struct Intake<'s, F> {
    builders: Vec<ColumnBuilder<'s>>,
    faults: Vec<Fault>,
    rows: u64,
    in_chunk: usize,
    chunk: F,
}

impl<'s, E, F: FnMut(Table) -> Result<(), E>> Intake<'s, F> {
    /// An intake of the stored columns, whose chunks go to `chunk`.
    pub(super) fn new(schema: &'s Schema, chunk: F) -> Self {
        Self {
            builders: schema.stored().map(ColumnBuilder::new).collect(),
            faults: Vec::new(),
            rows: 0,
            in_chunk: 0,
            chunk,
        }
    }

    /// The stored column in a slot.
    pub(super) fn spec(&self, slot: usize) -> &'s SchemaColumn {
        self.builders[slot].spec()
    }

    /// Adds a cell to the current row; without a slot it is an identifier's and is dropped.
    /// Whether it fits.
    ///
    /// # Errors
    /// For what cannot be decoded; a cell that does not fit is noted as a fault.
    #[inline]
    pub(super) fn cell(
        &mut self,
        slot: Option<usize>,
        cell: &[u8],
        line: impl FnOnce() -> u64,
    ) -> Result<bool, ReadError> {
        let refused = match slot {
            Some(slot) => self.builders[slot].push(cell).err(),
            None => check_text(cell).err(),
        };
        match refused {
            None => Ok(true),
            Some(refusal) => self.refuse(slot, refusal, line()),
        }
    }

    /// Adds a cell that holds nothing.
    pub(super) fn null(&mut self, slot: Option<usize>) {
        if let Some(slot) = slot {
            self.builders[slot].push_null();
        }
    }

    /// Notes a refused cell for which nothing stands in the row yet; it never fits.
    ///
    /// # Errors
    /// For what cannot be decoded.
    pub(super) fn refuse_cell(
        &mut self,
        slot: Option<usize>,
        refusal: Refusal,
        line: u64,
    ) -> Result<bool, ReadError> {
        self.null(slot);
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
        self.faults.push(Fault {
            place: place(line, column),
            detail,
            suggested_fix: fix,
        });
        Ok(false)
    }

    /// Notes a fault of a record that becomes no row.
    pub(super) fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Whether so many faults are found that reading on tells nothing more.
    pub(super) fn is_refused(&self) -> bool {
        self.faults.len() >= MAX_FAULTS
    }

    /// Ends the current row, each stored column of which has a cell.
    ///
    /// # Errors
    /// Those of the receiver of chunks.
    pub(super) fn end_row(&mut self) -> Result<(), ReadFailure<E>> {
        self.end_rows(1)
    }

    /// Ends the current rows of a reader that fills column after column.
    ///
    /// # Errors
    /// Those of the receiver of chunks.
    pub(super) fn end_rows(&mut self, rows: usize) -> Result<(), ReadFailure<E>> {
        self.rows += rows as u64;
        self.in_chunk += rows;
        if self.in_chunk >= CHUNK_ROWS {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<(), ReadFailure<E>> {
        let table = Table {
            rows: std::mem::take(&mut self.in_chunk),
            columns: self.builders.iter_mut().map(ColumnBuilder::take).collect(),
        };
        if self.faults.is_empty() {
            (self.chunk)(table).map_err(ReadFailure::Sink)?;
        }
        Ok(())
    }

    /// Ends the submission; its number of rows.
    ///
    /// # Errors
    /// For offending cells, for no rows, and those of the receiver of chunks.
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

/// The problem of a body that cannot be decoded at some place.
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
