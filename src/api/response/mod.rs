//! Responses: created resources, files, and self-contained HTML pages, which have no scripts and load
//! nothing from elsewhere.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

pub(crate) mod error_page;
pub(super) mod permitted_body;
pub mod served_file;

/// `201 Created` with the path of the new resource and its document.
pub(crate) fn created(path: String, document: impl Serialize) -> impl IntoResponse {
    let headers = [(header::LOCATION, path)];
    (StatusCode::CREATED, headers, Json(document))
}

/// Permits only the page's own styles. So even an unescaped value would be harmless.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1a1a1a;background:#fff}h1{font-size:1.6rem}h2{font-size:1.2rem;\
margin-top:2rem}table{border-collapse:collapse;width:100%}th,td{text-align:left;\
padding:.3rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}\
td{overflow-wrap:anywhere}\
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}td.b{width:40%}\
td.b span{display:block;height:.8rem;background:#4a78a8;min-width:1px}.yes{color:#17652c}\
.no{color:#a11}small{color:#555}code{overflow-wrap:anywhere}";

/// The response with a page. The title is also its first heading.
pub(crate) fn html_page(title: &str, content: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (content)
            }
        }
    };
    html_document(page.into_string())
}

/// The response with a whole document, which has no script and loads nothing.
pub(crate) fn html_document(text: String) -> Response {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(text)).into_response()
}
