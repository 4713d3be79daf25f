//! Connections: how many may be open, how long one may be idle, and how a request is counted.
//!
//! A connection without a request holds nothing that others need: it is closed after some time, or earlier if a
//! limit is reached and another client connects.

mod activity;
mod registry;

use std::time::Duration;

pub use activity::ClientAddress;
pub(super) use activity::Reason;
pub(super) use activity::{Activity, WatchedStream};
pub(super) use registry::{Admission, Connections, OpenConnection};

/// Limits of the connections of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open connections in all.
    pub connections: usize,
    /// Open connections of one [`ClientAddress`].
    pub per_address: usize,
    /// Longest time until the head of a request is complete, from the connection or from its first
    /// byte.
    pub header_timeout: Duration,
    /// Longest time without a request.
    pub keep_alive: Duration,
}
