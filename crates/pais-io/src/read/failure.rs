//! Limits on the files that are read, and why reading one stopped.

use std::convert::Infallible;
use std::io;

use pais_core::table::{ReadError, Table};

/// Why reading a file stopped.
#[derive(Debug)]
pub enum ReadFailure<E> {
    /// The file is refused.
    Refused(ReadError),
    /// The source failed.
    Source(io::Error),
    /// The receiver of chunks failed.
    Sink(E),
}

impl<E> From<ReadError> for ReadFailure<E> {
    fn from(error: ReadError) -> Self {
        Self::Refused(error)
    }
}

impl<E> ReadFailure<E> {
    /// A failure of the source, which may carry a [`ReadError`].
    pub(super) fn source(error: io::Error) -> Self {
        match error.downcast::<ReadError>() {
            Ok(error) => Self::Refused(error),
            Err(error) => Self::Source(error),
        }
    }
}

/// Where the chunks of a file go. After an error, a file is not read further.
pub(super) type ChunkSink<'a> = dyn FnMut(Table) -> io::Result<()> + 'a;

/// Reads a file by `read`, and passes its chunks to `chunk`.
///
/// Readers know one type of receiver, whatever its errors are. So they are compiled once, with the optimization
/// of this crate, and not for each caller with that of its crate.
pub(super) fn read_into<E>(
    mut chunk: impl FnMut(Table) -> Result<(), E>,
    read: impl FnOnce(&mut ChunkSink<'_>) -> Result<u64, ReadFailure<Infallible>>,
) -> Result<u64, ReadFailure<E>> {
    let mut failed = None;
    let read = read(&mut |table| {
        chunk(table).map_err(|error| {
            failed = Some(error);
            io::Error::other("the receiver of chunks has failed")
        })
    });
    match (failed, read) {
        (Some(error), _) => Err(ReadFailure::Sink(error)),
        (None, Ok(rows)) => Ok(rows),
        (None, Err(ReadFailure::Refused(error))) => Err(ReadFailure::Refused(error)),
        (None, Err(ReadFailure::Source(error))) => Err(ReadFailure::Source(error)),
        (None, Err(ReadFailure::Sink(never))) => match never {},
    }
}

/// Limits on one file. Both are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum size of a cell, as text.
    pub cell_bytes: usize,
    /// Maximum size of a Parquet file, decoded. The size of other formats is that of their source.
    pub total_bytes: u64,
}

impl ReadLimits {
    /// Maximum size of a cell, if nothing else is set.
    pub(crate) const CELL_BYTES: usize = 65_536;
}

impl Default for ReadLimits {
    /// Cells of at most `ReadLimits::CELL_BYTES`, and a file of any size.
    fn default() -> Self {
        Self {
            cell_bytes: Self::CELL_BYTES,
            total_bytes: u64::MAX,
        }
    }
}
