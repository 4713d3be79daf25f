//! Dictionary-encoded tables, used by ingest, engines, verifier and releases.
//!
//! A cell is a `u32` code into its column's dictionary. Text is read once per distinct value.

pub mod cells;
pub mod chunk;
pub mod codes;
pub mod column;
pub mod csv;
pub mod encoded;
pub mod finished;
pub mod header;
mod in_order;
pub mod intake;
mod lines;
pub mod ndjson;
pub mod parquet;
mod parquet_cells;
mod parquet_pages;
pub mod profile;
pub mod released;
mod released_ndjson;
mod released_parquet;
pub mod schema;
pub mod sets;

pub use column::{Column, NULL_CODE, Table};
pub use encoded::{Domain, EncodedTable, QuasiIdentifier, SensitiveColumn};
pub use intake::ReadFailure;
pub use released::{COUNT_COLUMN, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};
pub use schema::{Schema, SchemaColumn};
pub use sets::SetColumn;

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod parquet_tests;
#[cfg(test)]
mod rendering_tests;
#[cfg(test)]
mod tests;
