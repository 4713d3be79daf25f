//! The HTTP layer: requests are parsed, passed to [`crate::service`], and answered.
//!
//! - `routes`: one file for each resource, with its handlers and documents.
//! - `extract`: what handlers take from a request: the caller, the path, the query, the body.
//! - `upload`: bodies that are read as they stream.
//! - `response`: errors as problem documents, pages of lists, HTML pages.
//! - `middleware`: what applies to every request.
//! - `openapi`: the OpenAPI document.
//! - `router` puts them together, `serve` listens, and `connections` limits what is open.

pub mod audit;
pub mod compositions;
pub mod connections;
pub mod dataset_changes;
pub mod datasets;
pub mod drafts;
pub mod error;
pub mod events;
pub mod extract;
pub mod grants;
pub mod health;
pub(crate) mod idempotency;
pub mod job_document;
pub mod jobs;
pub mod legal_holds;
pub mod limits;
mod metrics;
pub mod middleware;
pub mod openapi;
pub mod organizations;
pub mod packages;
pub mod page;
pub mod policies;
pub mod profile;
pub mod rate_limiter;
pub(crate) mod raw_rows;
pub mod refused_tokens;
pub mod releases;
pub mod report_links;
pub mod response;
pub mod risk;
mod router;
mod serve;
pub mod state;
pub mod steps;
pub mod submissions;
pub mod tables;
pub mod taxonomies;
pub(crate) mod text;
pub mod tls;
pub mod tokens;
pub mod upload;
pub mod withdrawals;

pub use connections::ConnectionLimits;
pub use limits::Limits;
pub use rate_limiter::RateLimiter;
pub use refused_tokens::RefusedTokens;
pub use router::{RouterSettings, api_document, document_text, operation_router, router};
pub use serve::serve;
pub use state::{App, AppState};
pub use upload::UploadPace;
