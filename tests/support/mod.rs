//! What several test programs and benchmarks share.

#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod adult;
pub(crate) mod golden;
pub(crate) mod hex;
pub(crate) mod hostile_parquet;
pub(crate) mod key_file;
pub(crate) mod mutations;
pub(crate) mod poll;
pub(crate) mod split_mix;
