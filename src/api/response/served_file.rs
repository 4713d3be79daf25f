//! Serving files: conditional requests and ranges.

use std::ops::Bound;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headers::{ETag, HeaderMapExt, IfNoneMatch, IfRange, Range};
use tower::ServiceExt;
use tower_http::services::ServeFile;

use crate::api::error::ApiError;
use crate::problem::Code;

/// Whether `If-None-Match` matches the tag: by weak comparison, as RFC 9110, 13.1.2 requires.
pub(crate) fn is_cached(headers: &HeaderMap, etag: &ETag) -> bool {
    if !has_valid_tags(headers, &header::IF_NONE_MATCH) {
        return false;
    }
    let condition = headers.typed_get::<IfNoneMatch>();
    condition.is_some_and(|condition| !condition.precondition_passes(etag))
}

/// Whether no entity tag of a header has a space or a control character (RFC 9110, 8.8.3). The
/// `headers` crate relies on it.
fn has_valid_tags(headers: &HeaderMap, name: &HeaderName) -> bool {
    let mut bytes = headers.get_all(name).iter().flat_map(HeaderValue::as_bytes);
    let mut is_quoted = false;
    bytes.all(|&byte| {
        is_quoted ^= byte == b'"';
        !is_quoted || byte > b' ' && byte != 0x7f
    })
}

/// `Range`, unless `If-Range` names other bytes, by strong comparison. Anything but one valid range
/// of bytes is ignored, as RFC 9110, 14.2 permits: then the response is the whole table.
pub fn requested_range(headers: &HeaderMap, etag: &ETag) -> Option<Range> {
    if !has_valid_tags(headers, &header::IF_RANGE) {
        return None;
    }
    let has_other_bytes = match headers.typed_try_get::<IfRange>() {
        Ok(Some(condition)) => condition.is_modified(Some(etag), None),
        Ok(None) => false,
        Err(_) => true,
    };
    let range: Range = headers.typed_get()?;
    // A malformed range is dropped from the list below, so lists are recognized by the comma.
    let is_list = headers.get(header::RANGE)?.as_bytes().contains(&b',');
    // Without the table's size: every range that is well-formed counts as satisfiable.
    let (first, last) = range.satisfiable_ranges(u64::MAX).next()?;
    let is_valid = match (first, last) {
        (Bound::Included(first), Bound::Included(last)) => first <= last,
        (Bound::Included(_), Bound::Unbounded) => true,
        _ => false,
    };
    (is_valid && !is_list && !has_other_bytes).then_some(range)
}

/// Serves a file of the spool directory; `None` if it no longer exists.
///
/// # Errors
/// `unavailable` if it cannot be read.
pub(crate) async fn serve_file(
    path: PathBuf,
    method: &Method,
    range: Option<Range>,
) -> Result<Option<Response>, ApiError> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    if let Some(range) = range {
        let size = tokio::fs::metadata(&path).await.map(|file| file.len());
        request
            .headers_mut()
            .typed_insert(of_file(range, size.unwrap_or(0)));
    }
    // The error type is `Infallible`.
    let Ok(response) = ServeFile::new(path).oneshot(request).await;
    match response.status() {
        StatusCode::NOT_FOUND => Ok(None),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let refusal = ApiError::new(
                Code::RangeNotSatisfiable,
                "`Range` is outside the file; `Content-Range` has its size",
            );
            let mut refusal = refusal.into_response();
            if let Some(size) = response.headers().get(header::CONTENT_RANGE) {
                let headers = refusal.headers_mut();
                headers.insert(header::CONTENT_RANGE, size.clone());
            }
            Ok(Some(refusal))
        }
        status if status.is_success() => Ok(Some(response.map(Body::new))),
        status => {
            tracing::error!(%status, "a rendered file could not be served");
            Err(unservable())
        }
    }
}

/// The range of a file of this size: a suffix range longer than the file is the whole file (RFC 9110, 14.1.2).
fn of_file(range: Range, size: u64) -> Range {
    // A single valid range is unsatisfiable here only if it is such a suffix.
    let is_longer = range.satisfiable_ranges(size).next().is_none();
    match Range::bytes(0..) {
        Ok(all) if is_longer => all,
        _ => range,
    }
}

/// The error of a file that could not be served.
pub(crate) fn unservable() -> ApiError {
    ApiError::new(Code::Unavailable, "the file could not be served; try again")
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::{is_cached, requested_range};

    #[test]
    fn tags_are_compared_weakly_and_ranges_strongly() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::IF_NONE_MATCH,
            HeaderValue::from_static("\"x\", W/\"y\""),
        );
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        let etag = "\"y\"".parse().unwrap();
        assert!(is_cached(&headers, &etag));
        assert!(!is_cached(&headers, &"\"z\"".parse().unwrap()));
        assert!(requested_range(&headers, &etag).is_some());
        headers.insert(header::IF_RANGE, HeaderValue::from_static("W/\"y\""));
        assert!(requested_range(&headers, &etag).is_none());
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"y\""));
        assert!(requested_range(&headers, &etag).is_some());
        for ignored in [
            "bytes=0-1,3-4",
            "bytes=0-1,x",
            "bytes=2-1",
            "lines=0-1",
            "bytes=x-",
            "bytes=-",
            "bytes",
        ] {
            headers.insert(header::RANGE, HeaderValue::from_static(ignored));
            assert!(requested_range(&headers, &etag).is_none(), "{ignored}");
        }
        for accepted in ["bytes=0-0", "bytes=7-", "bytes=-5"] {
            headers.insert(header::RANGE, HeaderValue::from_static(accepted));
            assert!(requested_range(&headers, &etag).is_some(), "{accepted}");
        }
    }
}
