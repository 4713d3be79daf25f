//! What is not yet in the place of its resource (`crate::api`).

pub mod ingest;
pub mod large_documents;
pub mod streams;
pub mod table_format;
pub mod watch;

pub(crate) mod bounds;
pub(crate) mod composition_tables;
pub mod compositions;
pub(crate) mod data_package;
pub(crate) mod grants;
pub mod jobs;
pub mod packages;
pub mod releases;
pub(crate) mod rendered_tables;
pub(crate) mod report_links;
pub(crate) mod report_pages;
pub(crate) mod report_view;
pub(crate) mod shared_polls;
pub(crate) mod steps;
pub(crate) mod table_work;

use crate::api::error::ApiError;
use crate::api::state::App;
use crate::api::text;
