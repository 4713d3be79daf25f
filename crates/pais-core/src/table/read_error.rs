//! Why a table that is read from a file is refused.

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

/// Why a file is refused, with the first invalid cells.
pub type ReadError = Rejection<ReadErrorKind>;

/// Maximum number of faults that are reported before a table is refused.
pub const MAX_FAULTS: usize = 20;
