//! Code that tests, benchmarks and experiments share.

#![forbid(unsafe_code)]

pub mod adult;
pub mod adversary;
pub mod enlarged;
pub mod golden;
pub mod hex;
pub mod hostile_parquet;
pub mod key_file;
pub mod median;
pub mod memory;
pub mod mutations;
pub mod poll;
pub mod raw_rows;
pub mod recoding;
#[cfg(feature = "service")]
pub mod service;
pub use pais_core::split_mix;
pub mod summary_file;
