//! Limits on the files that are read, and why reading one stopped.

use pais_core::table::ReadError;

/// Why reading a file stopped.
#[derive(Debug)]
pub enum ReadFailure<E> {
    /// The file is refused.
    Refused(ReadError),
    /// The source failed.
    Source(std::io::Error),
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
    pub(super) fn source(error: std::io::Error) -> Self {
        match error.downcast::<ReadError>() {
            Ok(error) => Self::Refused(error),
            Err(error) => Self::Source(error),
        }
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
