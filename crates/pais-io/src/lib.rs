//! Tables in files.
//!
//! - [`read`]: submissions and released tables as CSV, NDJSON and Parquet
//! - [`mod@write`]: released tables in the same formats
//! - [`draft`]: the proposal of a definition from the rows of a file
//! - [`hierarchy`]: taxonomies as rows, in the formats of ARX and Amnesia
//! - [`chunk`]: the bytes in which tables are stored
//! - [`RowDigest`]: recognizes the same rows
//!
//! Sources are not trusted: their size, depth and count are bounded before a parser sees them.

#![forbid(unsafe_code)]

pub mod chunk;
pub mod draft;
mod format;
pub mod hierarchy;
pub mod read;
mod row_digest;
pub mod write;

pub use format::FileFormat;
pub use row_digest::RowDigest;
