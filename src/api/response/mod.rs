//! Responses: errors, pages of lists, created resources, and HTML pages.

pub(super) mod created;
pub mod error_page;
pub(super) mod html;
pub(super) mod permitted_body;
pub mod served_file;
