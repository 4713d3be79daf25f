//! Writers of released tables: CSV, NDJSON and Parquet, and the columns of bounds that they can
//! have.

mod bounds;
mod csv;
mod ndjson;
mod ordered_parallel;
mod parquet;
mod text_table;

pub use bounds::{BoundedColumn, names_of_bounds, taken_name};

#[cfg(test)]
mod tests;
