//! Responses: errors, pages of lists, created resources, and HTML pages.

pub(super) mod created;
pub(super) mod download;
pub mod error;
pub mod error_page;
mod html;
pub mod page;
pub(super) mod report_page;
