//! Extractors for handlers. A request that does not fit is refused with a problem document.

pub mod auth;
pub mod body;
pub mod headers;
pub mod query;

pub use auth::{Admin, Anyone, Holder, LogReader, ReleaseReader, Staff, StaffOrAuditor};
pub use body::{JsonBody, WholeBody};
pub use query::{Parameters, Path};
