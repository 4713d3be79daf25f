//! Writers of released tables: CSV, NDJSON and Parquet.

mod csv;
mod ndjson;
mod ordered_parallel;
mod parquet;
mod text_table;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;

pub use csv::{csv, safe_csv};
pub use ndjson::ndjson;
pub use parquet::{ParquetFile, parquet, parquet_files};
