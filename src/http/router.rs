//! All routes, and the layers around them.

use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, OriginalUri, Request, State};
use axum::http::request::Parts;
use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header,
};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::cors::CorsLayer;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::observe::{REQUEST_ID, observe};
use super::problem::problem_response;
use super::{
    ApiError, AppState, audit, datasets, error_page, events, grants, health, jobs, metrics,
    openapi, organizations, profile, releases, submissions, tables, taxonomies, tokens,
};

/// What the router needs beside the state.
#[derive(Clone, Debug)]
pub struct RouterSettings {
    /// Longest time until an answer begins, where it is not a stream that is asked for or sent.
    pub request_timeout: Duration,
    /// Origins of web pages that may call the service from a browser.
    pub cors_origins: Vec<String>,
}

/// Resources whose answers begin soon.
fn prompt_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(organizations::routes())
        .merge(tokens::routes())
        .merge(taxonomies::routes())
        .merge(datasets::routes())
        .merge(jobs::routes())
        .merge(grants::routes())
        .merge(audit::routes())
        .merge(health::routes())
        .merge(metrics::routes())
}

/// Resources whose requests or answers take as long as their bytes flow.
fn streaming_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(submissions::routes())
        .merge(events::routes())
        .merge(profile::routes())
        .merge(releases::routes())
        .merge(tables::routes())
}

/// The OpenAPI document of the service.
pub fn api_document() -> utoipa::openapi::OpenApi {
    let mut document = OpenApiRouter::with_openapi(openapi::Base::openapi())
        .merge(prompt_routes())
        .merge(streaming_routes())
        .into_openapi();
    openapi::complete(&mut document);
    document
}

/// The service.
pub fn router(state: AppState, settings: &RouterSettings) -> Router {
    metrics::install();
    let timeout = middleware::from_fn_with_state(settings.request_timeout, give_up);
    let (prompt, _) = prompt_routes().layer(timeout).split_for_parts();
    let (streaming, _) = streaming_routes().split_for_parts();
    let document = bytes::Bytes::from(document_text());
    let document = get(async move || ([(header::CONTENT_TYPE, "application/json")], document));
    let browser = SwaggerUi::new("/docs").config(Config::from("/openapi.json"));

    let compression = CompressionLayer::new().compress_when(
        // Parquet is compressed by itself.
        DefaultPredicate::new()
            .and(NotForContentType::const_new(
                "application/vnd.apache.parquet",
            ))
            .and(without_etag),
    );
    let layers = ServiceBuilder::new()
        .layer(SetSensitiveRequestHeadersLayer::new([
            header::AUTHORIZATION,
        ]))
        .layer(middleware::from_fn(observe))
        .layer(CatchPanicLayer::custom(panicked))
        .option_layer(cors(&settings.cors_origins))
        .layer(middleware::from_fn(ranges_as_they_are))
        .layer(compression);
    Router::new()
        .merge(prompt)
        .merge(streaming)
        .route("/openapi.json", document)
        .route("/docs/errors", get(async || error_page::page()))
        .merge(browser)
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(layers)
        .with_state(state)
}

/// The OpenAPI document as JSON text, ending with a line break.
pub fn document_text() -> String {
    // A document is made of strings and maps with string keys; serializing it cannot fail.
    let text = serde_json::to_string_pretty(&api_document()).unwrap_or_default();
    text + "\n"
}

/// `None` where no origin is named: then nothing is said of origins, and `OPTIONS` is no method.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins
        .iter()
        .filter_map(|origin| HeaderValue::try_from(origin).ok())
        .collect();
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
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

async fn give_up(State(after): State<Duration>, request: Request, next: Next) -> Response {
    match tokio::time::timeout(after, next.run(request)).await {
        Ok(response) => response,
        Err(_) => problem_response(&Problem::new(
            Code::RequestTimeout,
            format!(
                "there was no answer within {} s; try again",
                after.as_secs()
            ),
        )),
    }
}

/// A strong entity tag names the very bytes that are sent.
fn without_etag(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !headers.contains_key(header::ETAG)
}

/// Byte ranges count in the table as it is, so its parts must not be compressed.
async fn ranges_as_they_are(mut request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::RANGE) {
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    next.run(request).await
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic's own message is in the log by the panic hook; it may hold anything.
    tracing::error!("a handler panicked");
    problem_response(&Problem::new(
        Code::Internal,
        "something went wrong on our side; the log has it under this request's id",
    ))
}

async fn no_such_path(State(state): State<AppState>, mut parts: Parts) -> ApiError {
    match identified(&mut parts, &state).await {
        Ok(()) => ApiError::new(
            Code::NotFound,
            "there is no such path; /openapi.json has those there are",
        ),
        Err(refused) => refused,
    }
}

async fn wrong_method(State(state): State<AppState>, mut parts: Parts) -> ApiError {
    match identified(&mut parts, &state).await {
        Ok(()) => ApiError::new(
            Code::MethodNotAllowed,
            "this path does not take this method; the header `Allow` names those it takes",
        ),
        Err(refused) => refused,
    }
}

/// Who may not call at all learns nothing about what there is to call.
async fn identified(parts: &mut Parts, state: &AppState) -> Result<(), ApiError> {
    let path = parts.extensions.get::<OriginalUri>();
    let path = path.map_or(parts.uri.path(), |OriginalUri(uri)| uri.path());
    if path.starts_with("/v1/") {
        Caller::from_request_parts(parts, state).await?;
    }
    Ok(())
}
