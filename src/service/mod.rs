//! What is not yet in the place of its resource (`crate::api`).

pub mod streams;
pub mod watch;

pub(crate) mod bounds;
pub mod compositions;
pub(crate) mod grants;
pub mod jobs;
pub mod packages;
pub mod releases;
pub(crate) mod report_links;
pub(crate) mod report_pages;
pub(crate) mod report_view;
pub(crate) mod shared_polls;
pub(crate) mod steps;

use crate::api::error::ApiError;
use crate::api::state::App;
use crate::api::text;
