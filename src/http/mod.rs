//! The HTTP face: router, extractors, problems, one file a resource.

pub mod audit;
pub mod auth;
pub mod datasets;
pub mod extract;
pub mod health;
pub mod idempotency;
pub mod metrics;
pub mod observe;
pub mod openapi;
pub mod organizations;
pub mod paging;
pub mod problem;
pub mod rate;
pub mod router;
pub mod serve;
pub mod state;
pub mod taxonomies;
pub mod text;
pub mod tokens;

pub use auth::{Auditor, Holder, HolderOrRecipient, Operator};
pub use extract::{Body, JsonBody, Parameters, Path};
pub use idempotency::IdempotencyKey;
pub use paging::{Page, PageQuery};
pub use problem::ApiError;
pub use router::{RouterSettings, api_document, document_text, router};
pub use serve::serve;
pub use state::{AppState, HttpLimits};
