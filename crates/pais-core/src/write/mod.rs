//! Writers of released tables: CSV, NDJSON and Parquet.

mod csv;
mod lines;
mod ndjson;
mod ordered_pool;
mod parquet;

#[cfg(test)]
mod tests;
