//! Cross-origin requests from browsers.

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::CorsLayer;

use super::observe::REQUEST_ID;

/// Admits these origins. `None` if there are none: then responses have no CORS headers, and
/// `OPTIONS` is not a method.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins
        .iter()
        .filter_map(|origin| HeaderValue::try_from(origin).ok())
        .collect();
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::IF_NONE_MATCH,
            header::RANGE,
            HeaderName::from_static("idempotency-key"),
            REQUEST_ID,
        ])
        .expose_headers([
            header::CONTENT_DISPOSITION,
            header::ETAG,
            header::LOCATION,
            header::RETRY_AFTER,
            REQUEST_ID,
        ]);
    Some(layer)
}
