//! Why reading a file stopped.

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
