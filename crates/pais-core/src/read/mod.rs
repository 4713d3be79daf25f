//! Readers of submissions and of released tables: CSV, NDJSON and Parquet.

pub mod anatomized;
mod cells;
mod chunk_builder;
pub mod csv;
mod decoding;
mod error;
mod fixed_point;
mod header;
mod identifiers;
mod limits;
pub mod ndjson;
mod number_text;
pub mod parquet;
mod parquet_batches;
mod parquet_bodies;
mod parquet_cells;
mod parquet_footer;
mod parquet_pages;
mod parquet_thrift;
pub mod reimport;
mod set_columns;
mod stored_cells;
mod suggestions;
mod text_format;

#[cfg(test)]
mod date_tests;
#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod parquet_attack_tests;
#[cfg(test)]
mod parquet_tests;
#[cfg(test)]
mod read_back_tests;
#[cfg(test)]
mod set_column_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
#[cfg(test)]
mod value_tests;

pub use chunk_builder::{CHUNK_ROWS, MAX_FAULTS};
pub use error::{ReadError, ReadErrorKind, ReadFailure};
pub use fixed_point::{ReadBackError, read_back_error};
pub use identifiers::IdentifierRepeats;
pub use limits::ReadLimits;
pub use stored_cells::{UnfitCells, unfit_cells};
pub use text_format::{
    DecimalMark, Delimiter, TextEncoding, TextFormat, TextFormatError, TextParameters,
    ThousandsMark,
};
