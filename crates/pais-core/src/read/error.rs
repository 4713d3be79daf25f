//! Why a file is refused.

use crate::rejection::Rejection;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// It cannot be decoded.
    Malformed,
    /// Its columns are not the declared ones.
    Header,
    /// Some of its cells do not fit their columns.
    Cells,
    /// It has no rows.
    Empty,
    /// It decodes to more bytes than the limit.
    TooLarge,
}

/// Why a file is refused, with the first offending cells.
pub type ReadError = Rejection<ReadErrorKind>;

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
