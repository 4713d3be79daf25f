//! Limits on the files that are read.

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
    /// Cells of at most [`ReadLimits::CELL_BYTES`], and a file of any size.
    fn default() -> Self {
        Self {
            cell_bytes: Self::CELL_BYTES,
            total_bytes: u64::MAX,
        }
    }
}
