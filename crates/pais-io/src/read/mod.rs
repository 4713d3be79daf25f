//! Readers of submissions and of released tables: CSV, NDJSON and Parquet.

mod cells;
mod chunk_builder;
pub mod csv;
mod decoding;
mod failure;
mod header;
mod identifiers;
pub mod ndjson;
mod number_text;
pub mod parquet;
mod parquet_batches;
mod parquet_bodies;
mod parquet_cells;
mod parquet_footer;
mod parquet_pages;
mod parquet_thrift;
mod set_columns;
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

pub use chunk_builder::CHUNK_ROWS;
pub(crate) use decoding::SingleByte;
pub use failure::{ReadFailure, ReadLimits};
pub use identifiers::IdentifierRepeats;
pub(crate) use number_text::NumberText;
pub use number_text::plain_number;
pub use text_format::{
    DecimalMark, Delimiter, TextEncoding, TextFormat, TextFormatError, TextParameters,
    ThousandsMark,
};
