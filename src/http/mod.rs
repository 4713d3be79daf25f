//! The HTTP face: router, extractors, problems, one file a resource.

pub mod auth;
pub mod events;
pub mod extract;
pub mod idempotency;
pub mod jobs;
pub mod paging;
pub mod problem;
pub mod state;
pub mod submissions;
pub mod upload;

pub use auth::{Auditor, Holder, HolderOrRecipient, Operator};
pub use extract::{Body, JsonBody, Parameters, Path};
pub use idempotency::IdempotencyKey;
pub use paging::{Page, PageQuery};
pub use problem::ApiError;
pub use state::{AppState, HttpLimits};
