//! Writers of released tables: CSV, NDJSON and Parquet.

mod csv;
mod ndjson;
mod ordered_parallel;
mod parquet;
mod text_table;

#[cfg(test)]
mod tests;
