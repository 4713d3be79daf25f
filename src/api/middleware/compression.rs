//! Compression of responses.

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};

/// Compresses responses as `Accept-Encoding` asks. Leaves out Parquet, which is compressed already,
/// and responses with an entity tag.
pub(crate) fn layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new().compress_when(
        DefaultPredicate::new()
            .and(NotForContentType::const_new(
                "application/vnd.apache.parquet",
            ))
            .and(without_etag),
    )
}

/// A strong entity tag identifies the exact bytes that are sent.
fn without_etag(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !headers.contains_key(header::ETAG)
}

/// Prevents the compression of byte ranges, which count in the uncompressed table.
pub(crate) async fn uncompressed_ranges(mut request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::RANGE) {
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    next.run(request).await
}
