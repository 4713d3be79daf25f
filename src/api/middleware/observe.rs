//! The id, the log span and the metrics of every request. Neither query strings nor bodies are
//! logged.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

/// The header with a request's id, in requests and responses.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id that a client sends.
const MAX_ID_BYTES: usize = 128;

/// Gives the request an id, and counts, times and logs its response.
pub async fn observe(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(&request);
    let value = HeaderValue::try_from(&id).unwrap_or_else(|_| HeaderValue::from_static("none"));
    request.headers_mut().insert(REQUEST_ID, value.clone());
    let method = method_name(request.method());
    // The route, not the path, so that labels contain neither ids nor arbitrary text of clients.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned());

    let span = tracing::info_span!("request", id, method, route);
    let mut response = next.run(request).instrument(span.clone()).await;

    let (status, took) = (response.status().as_u16(), started.elapsed());
    span.in_scope(|| {
        let ms = took.as_micros() as f64 / 1e3;
        if route.starts_with("/v1/") {
            tracing::info!(status, ms, "answered");
        } else {
            tracing::debug!(status, ms, "answered");
        }
    });
    let labels = [
        ("method", method.to_owned()),
        ("route", route),
        ("status", status.to_string()),
    ];
    metrics::histogram!("http_request_duration_seconds", &labels[..2]).record(took);
    metrics::counter!("http_requests_total", &labels).increment(1);
    response.headers_mut().insert(REQUEST_ID, value);
    response
}

/// The id that the client sent if it is valid, or else a new one.
fn request_id(request: &Request) -> String {
    let given = request.headers().get(REQUEST_ID);
    let is_valid = |text: &&str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/=+".contains(&byte);
        (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(is_allowed)
    };
    given
        .and_then(|value| value.to_str().ok())
        .filter(is_valid)
        .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "OTHER",
    }
}
