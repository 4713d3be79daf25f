//! What handlers take from a request. A request that does not fit is refused with a problem
//! document.

pub(super) mod accept;
pub mod auth;
pub mod body;
pub mod client_address;
pub(super) mod content_type;
pub mod parameters;
pub(super) mod query_names;
pub mod text_query;

pub use auth::{Admin, Anyone, Auditor, Holder, HolderOrAuditor, HolderOrRecipient};
pub use body::{JsonBody, WholeBody};
pub use parameters::{Parameters, Path};
