//! What applies to every request: its id, its log line and its metrics, protective headers, compression,
//! cross-origin requests, the time limit, and handlers that panic. Neither query strings nor bodies are
//! logged.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header,
};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::cors::CorsLayer;
use tracing::Instrument;
use uuid::Uuid;

use crate::problem::{Code, Problem};
use crate::telemetry::traces::{TraceContext, TraceSpan};

use super::error::{internal_error, problem_response};

/// The header with a request's id, in requests and responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header of W3C Trace Context with the span of the client.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Maximum length of an id that a client sends.
const MAX_ID_BYTES: usize = 128;

/// Gives the request an id, and counts, times and logs its response.
pub(crate) async fn observe(mut request: Request, next: Next) -> Response {
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

    let is_http_1 = request.version() < Version::HTTP_2;
    let has_ended = Arc::new(AtomicBool::new(request.body().is_end_stream()));
    let request = request.map(|body| {
        Body::new(WatchedBody {
            body,
            has_ended: Arc::clone(&has_ended),
        })
    });
    let is_call = route.starts_with("/v1/");
    let trace = is_call.then(|| trace(&request, method, &route, &id));
    let trace_id = trace.as_ref().and_then(TraceSpan::trace_id);
    let trace_id = trace_id.map(tracing::field::display);
    // An error: `log.filter` must not leave out the ids of the lines that it keeps.
    let span = tracing::error_span!("request", id, method, route, trace_id);
    let answered = next.run(request).instrument(span.clone());
    let mut response = match &trace {
        Some(trace) => trace.within(answered).await,
        None => answered.await,
    };

    let (status, took) = (response.status().as_u16(), started.elapsed());
    span.in_scope(|| {
        let ms = took.as_micros() as f64 / 1e3;
        if is_call {
            tracing::info!(status, ms, "answered");
        } else {
            tracing::debug!(status, ms, "answered");
        }
    });
    if let Some(trace) = trace {
        trace.set_number("http.response.status_code", status.into());
        if response.status().is_server_error() {
            trace.fail();
        }
    }
    let labels = [
        ("method", method.to_owned()),
        ("route", route),
        ("status", status.to_string()),
    ];
    metrics::histogram!("http_request_duration_seconds", &labels[..2]).record(took);
    metrics::counter!("http_requests_total", &labels).increment(1);
    response.headers_mut().insert(REQUEST_ID, value);
    // The server closes the connection if a body was not read to the end. Without this header the client
    // would send its next request on it.
    if is_http_1 && !has_ended.load(Ordering::Relaxed) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// The body of a request, with a flag that says whether it was read to the end.
struct WatchedBody {
    body: Body,
    has_ended: Arc<AtomicBool>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Begins the span of a call of the API.
fn trace(request: &Request, method: &'static str, route: &str, id: &str) -> TraceSpan {
    let name = || format!("{method} {route}");
    let trace = TraceSpan::of_request(name, client_span(request.headers()));
    trace.set("http.request.method", method);
    trace.set("http.route", route);
    trace.set("pais.request_id", id);
    trace
}

/// The span that a request belongs to, according to the client.
fn client_span(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    TraceContext::parse(value.to_str().ok()?)
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

/// For answers that are not pages: nothing in them may be run or shown in a frame.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'";

/// For the pages of Swagger UI, which has its scripts, styles and images from this service. Its styles
/// are set by scripts too, and its icons are `data:` URLs.
const DOCS: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                    img-src 'self' data:; font-src 'self' data:; connect-src 'self'; \
                    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long a browser that has reached the service over TLS uses only TLS: a year.
const ONLY_TLS: &str = "max-age=31536000";

/// Sets the headers that an answer does not have; `is_https` says whether clients reach the service over TLS.
pub(crate) async fn protect(
    State(is_https): State<bool>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    // The address of a linked report is secret.
    let is_private = path.starts_with("/v1/") || path == "/v1" || path.starts_with("/reports/");
    let policy = if path.starts_with("/docs/") || path == "/docs" {
        DOCS
    } else {
        NO_PAGE
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
    if is_https {
        default(header::STRICT_TRANSPORT_SECURITY, ONLY_TLS);
    }
    response
}

/// Compresses responses as `Accept-Encoding` asks. Leaves out Parquet, which is compressed already,
/// and responses with an entity tag.
pub(crate) fn compression() -> CompressionLayer<impl Predicate> {
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

/// Removes `identity;q=0` and `*;q=0` from `Accept-Encoding`: they would turn the response into 406 although the
/// request has already had its effect; and the whole header for byte ranges, which count in the uncompressed table.
pub(crate) async fn permitted_encodings(mut request: Request, next: Next) -> Response {
    let headers = request.headers_mut();
    if headers.contains_key(header::RANGE) {
        headers.remove(header::ACCEPT_ENCODING);
    }
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let members = values.filter_map(|value| value.to_str().ok());
    let mut members: Vec<&str> = members.flat_map(|value| value.split(',')).collect();
    let all = members.len();
    members.retain(|member| !forbids_uncompressed(member));
    if members.len() < all {
        let permitted = HeaderValue::try_from(members.join(","));
        headers.remove(header::ACCEPT_ENCODING);
        if let Ok(permitted) = permitted
            && !permitted.is_empty()
        {
            headers.insert(header::ACCEPT_ENCODING, permitted);
        }
    }
    next.run(request).await
}

/// Whether a member of `Accept-Encoding` is `identity` or `*` with the weight 0.
fn forbids_uncompressed(member: &str) -> bool {
    let (coding, weight) = member.split_once(';').unwrap_or((member, ""));
    let is_uncompressed =
        matches!(coding.trim(), "*") || coding.trim().eq_ignore_ascii_case("identity");
    let weight = weight.trim().trim_start_matches(['q', 'Q', '=', ' ']);
    is_uncompressed && weight.parse() == Ok(0.0)
}

/// Admits these origins. `None` if there are none: then responses have no CORS headers, and
/// `OPTIONS` is not a method.
pub(crate) fn cors(origins: &[String]) -> Option<CorsLayer> {
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

/// Ends requests whose response has not begun within `limit`.
pub(crate) async fn limit_time(
    State(limit): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => problem_response(&Problem::new(
            Code::RequestTimeout,
            format!(
                "there was no answer within {} s; try again",
                limit.as_secs()
            ),
        )),
    }
}

/// The response for a handler that panicked. The panic hook has logged where; the panic's own
/// message may contain a value, so it is neither logged nor sent.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    problem_response(&internal_error())
}
