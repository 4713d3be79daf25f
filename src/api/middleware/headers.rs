//! Headers that protect browsers and caches.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// For answers that are no pages: nothing in them is to be run or shown in a frame.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'";

/// For the pages of Swagger UI, which has its scripts, styles and images from this service. Its styles
/// are set by scripts too, and its icons are `data:` URLs.
const DOCS: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                    img-src 'self' data:; font-src 'self' data:; connect-src 'self'; \
                    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Sets the headers that an answer does not have.
pub(crate) async fn protect(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_private = path.starts_with("/v1/") || path == "/v1";
    let policy = match path.starts_with("/docs/") || path == "/docs" {
        true => DOCS,
        false => NO_PAGE,
    };
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut default = |name: HeaderName, value: &'static str| {
        let entry = headers.entry(name);
        entry.or_insert_with(|| HeaderValue::from_static(value));
    };
    default(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    default(header::REFERRER_POLICY, "no-referrer");
    default(header::CONTENT_SECURITY_POLICY, policy);
    if is_private {
        default(header::CACHE_CONTROL, "no-store");
    }
    response
}
