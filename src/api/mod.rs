//! The HTTP API. A resource is one file: its routes, its rules and its documents. Handlers call
//! [`crate::db`] with the rows that their caller may access.
//!
//! - `state`: what handlers share, and the database for a caller.
//! - `extract`: extractors for the parts of a request: the caller, the path, the query, the body.
//! - `upload`: bodies that are read as they stream. `raw_rows`: work on the rows of a dataset.
//! - `page`: lists. `idempotency`: repeated requests.
//! - `error`: errors as problem documents. `response`: files and HTML pages.
//! - `middleware`, `rate_limits`, `limits`: what applies to every request.
//! - `openapi`: the OpenAPI document. `console`: the web application for people.
//! - `router` puts them together, `serve` listens, and `connections` limits what is open.

pub mod approvals;
mod audit;
pub mod compositions;
pub mod connections;
pub mod console;
pub mod dataset_changes;
pub mod datasets;
mod downloads;
pub mod drafts;
pub(crate) mod editions;
pub mod error;
pub mod events;
pub mod extract;
mod found_table;
pub mod grants;
pub mod health;
mod hierarchy_previews;
pub(crate) mod idempotency;
mod job_reports;
pub mod jobs;
pub(crate) mod large_documents;
pub mod legal_holds;
pub mod limits;
mod located_datasets;
mod metrics;
pub mod middleware;
pub mod openapi;
pub mod organizations;
pub mod packages;
pub mod page;
pub mod policies;
pub mod profile;
pub(crate) mod publication_data;
pub(crate) mod publications;
pub mod rate_limits;
pub(crate) mod raw_rows;
mod release_files;
pub mod releases;
pub mod removal;
mod report_links;
pub mod reports;
pub mod response;
pub mod risk;
mod router;
mod serve;
pub mod state;
pub mod steps;
mod stored_submissions;
pub mod submissions;
pub mod tables;
pub mod taxonomies;
pub(crate) mod text;
pub mod tls;
pub mod tokens;
pub mod upload;
pub mod whoami;
pub mod withdrawals;

pub use connections::ConnectionLimits;
pub use limits::Limits;
pub use rate_limits::{RateLimiter, RefusedTokens};
pub use router::{
    OperationRoutes, RouterSettings, api_document, document_text, operation_router, router,
};
pub use serve::Server;
pub use state::{App, AppState};
pub use upload::UploadPace;
