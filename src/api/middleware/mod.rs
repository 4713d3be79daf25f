//! What applies to every request.

pub(super) mod compression;
pub(super) mod cors;
pub(super) mod headers;
pub mod observe;
pub(super) mod panic;
pub(super) mod timeout;
