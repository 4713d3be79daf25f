//! All error codes, with their meanings and what to do, as a page.

use axum::response::Response;
use maud::{Markup, html};

use crate::problem::Code;

use super::html_page;

/// The table of all codes as a page. The id of each row is the fragment of the problem's `type`.
pub(crate) fn page() -> Response {
    let content = html! {
        p { "The meaning of each code of a problem document, and what to do about it." }
        table {
            tr { th { "Code" } th { "Status" } th { "Meaning" } th { "What to do" } }
            @for &code in Code::ALL {
                tr id=(code.as_str()) {
                    td { code { (code.as_str()) } }
                    td { (code.status()) }
                    td { (code.title()) }
                    td { (with_code(code.remedy())) }
                }
            }
        }
    };
    html_page("Error codes", &content)
}

/// Text in which the parts between backquotes are marked as code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
