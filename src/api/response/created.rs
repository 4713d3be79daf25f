//! Responses to requests that create something.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;

/// `201 Created` with the path of the new resource and its document.
pub(crate) fn created(path: String, document: impl Serialize) -> impl IntoResponse {
    let headers = [(header::LOCATION, path)];
    (StatusCode::CREATED, headers, Json(document))
}
