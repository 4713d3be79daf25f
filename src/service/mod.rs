//! What is not yet in the place of its resource (`crate::api`).

pub mod drafts;
pub mod idempotency;
pub mod ingest;
pub mod large_documents;
pub mod streams;
pub mod table_format;
pub mod watch;

pub(crate) mod bounds;
pub(crate) mod composition_tables;
pub mod compositions;
pub(crate) mod data_package;
pub mod dataset_changes;
pub(crate) mod datasets;
pub(crate) mod grants;
pub mod jobs;
pub mod packages;
pub(crate) mod profile;
pub mod releases;
pub(crate) mod rendered_tables;
pub(crate) mod report_links;
pub(crate) mod report_pages;
pub(crate) mod report_view;
pub(crate) mod risk;
pub(crate) mod shared_polls;
pub(crate) mod steps;
pub mod submissions;
pub(crate) mod table_work;
pub(crate) mod upload_places;

use crate::api::error::ApiError;
use crate::api::limits::Limits;
use crate::api::state::App;
use crate::api::text;
