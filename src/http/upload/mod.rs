//! Bodies that are read as they stream: never held in memory as a whole.

pub(super) mod encoding;
pub(super) mod incoming;
