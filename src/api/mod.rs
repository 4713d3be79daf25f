//! The HTTP layer: requests are parsed, passed to [`crate::service`], and answered.
//!
//! - `routes`: one file for each resource, with its handlers and documents.
//! - `extract`: what handlers take from a request: the caller, the path, the query, the body.
//! - `upload`: bodies that are read as they stream.
//! - `response`: errors as problem documents, pages of lists, HTML pages.
//! - `middleware`: what applies to every request.
//! - `openapi`: the OpenAPI document.
//! - `router` puts them together, `serve` listens, and `connections` limits what is open.

pub mod connections;
pub mod extract;
mod metrics_recorder;
pub mod middleware;
pub mod openapi;
pub mod rate_limiter;
pub mod refused_tokens;
pub mod response;
mod router;
pub mod routes;
mod serve;
mod state;
pub mod tls;
pub mod upload;

pub use connections::ConnectionLimits;
pub use rate_limiter::RateLimiter;
pub use refused_tokens::RefusedTokens;
pub use router::{RouterSettings, api_document, document_text, operation_router, router};
pub use serve::serve;
pub use state::AppState;
pub use upload::UploadPace;
