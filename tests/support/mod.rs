//! What several test programs and benchmarks share.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod adult;
pub mod golden;
pub mod hex;
pub mod poll;
pub mod split_mix;
