//! Writers of released tables: CSV, NDJSON and Parquet.

mod csv;
mod text_table;
mod ndjson;
mod ordered_parallel;
mod parquet;

#[cfg(test)]
mod tests;
