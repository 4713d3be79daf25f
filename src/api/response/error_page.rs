//! All error codes, with their meanings and what to do, as a page and as Markdown.

use std::fmt::Write;

use axum::response::Response;
use maud::{Markup, html};

use crate::problem::Code;

use super::html_page;

/// The table of all codes as Markdown: `docs/errors.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         Errors are problem documents (RFC 9457) of the media type `application/problem+json`: \
         `{type, title, status, detail, code, errors?}`. `code` is one of this table and never \
         changes its meaning; `type` links to its row on the page `/docs/errors` of the service; \
         `errors` names places by `pointer` (RFC 6901, into a JSON body) or by `line` and \
         `column` (of a file), each with a `detail` and, if there is one, a `suggested_fix`. \
         An error never contains the value of a cell.\n\n\
         This file is generated from the source: `make bless` writes it.\n\n\
         | code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for &code in Code::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            code.as_str(),
            code.status(),
            code.title(),
            code.remedy()
        );
    }
    text
}

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
