//! Responses to requests that create something.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::db::idempotency::IdempotentAnswer;

use crate::api::error::{internal_error, problem_response};

/// `201 Created` with the path of the new resource and its document.
pub(crate) fn created(path: String, document: impl Serialize) -> impl IntoResponse {
    let headers = [(header::LOCATION, path)];
    (StatusCode::CREATED, headers, Json(document))
}

/// An answer with a path and a document, to be stored under an idempotency key.
///
/// # Errors
/// When the document cannot be written as JSON.
pub(crate) fn idempotent_answer(
    status: StatusCode,
    path: String,
    document: &impl Serialize,
) -> Result<IdempotentAnswer, serde_json::Error> {
    Ok(IdempotentAnswer {
        status: status.as_u16(),
        headers: BTreeMap::from([
            ("content-type".to_owned(), "application/json".to_owned()),
            ("location".to_owned(), path),
        ]),
        body: serde_json::to_vec(document)?,
    })
}

impl IntoResponse for IdempotentAnswer {
    fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response
            .body(Body::from(self.body))
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a stored answer is not a valid response");
                problem_response(&internal_error())
            })
    }
}
