//! The router: all routes, and the middleware around them.

use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, OriginalUri, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use utoipa::OpenApi;
use utoipa::openapi::Server;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::oidc::SignIn;
use crate::problem::Code;
use crate::roles::Caller;

use super::error::ApiError;
use super::extract::query::remember_parameters;
use super::middleware::{
    compression, cors, limit_time, observe, panicked, permitted_encodings, protect,
};
use super::response::error_page;
use super::state::AppState;
use super::{
    approvals, audit, compositions, console, dataset_changes, datasets, drafts, editions, events,
    grants, health, hierarchy_previews, job_reports, jobs, legal_holds, metrics, openapi,
    organizations, packages, policies, profile, publication_data, publications, release_files,
    releases, report_links, reports, risk, steps, submissions, tables, taxonomies, tokens, whoami,
    withdrawals,
};

/// The settings of the router.
#[derive(Clone, Debug)]
pub struct RouterSettings {
    /// Longest time until a response begins. Does not apply to requests and responses that stream.
    pub request_timeout: Duration,
    /// Origins of web pages that may call the service from a browser.
    pub cors_origins: Vec<String>,
    /// The operation routes in addition to the API.
    pub operation: OperationRoutes,
    /// Where people sign in to the console; `None` if only API tokens are used.
    pub sign_in: Option<SignIn>,
}

/// Which of the probes and the metrics are served at the address of the API. The metrics need no token and have
/// figures about all organizations, so clients on other machines do not get them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationRoutes {
    /// Both: only clients on this machine reach the service.
    ProbesAndMetrics,
    /// The probes.
    Probes,
    /// Neither: they have a listener of their own ([`operation_router`]).
    Separate,
}

/// Resources whose responses begin soon.
fn prompt_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(organizations::create, organizations::list))
        .routes(routes!(organizations::get, organizations::change))
        .routes(routes!(tokens::create, tokens::list))
        .routes(routes!(tokens::list_own))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tokens::redeem))
        .routes(routes!(whoami::whoami))
        .routes(routes!(taxonomies::create, taxonomies::list))
        .routes(routes!(taxonomies::get, taxonomies::delete))
        .routes(routes!(hierarchy_previews::preview))
        .routes(routes!(datasets::list))
        .routes(routes!(datasets::get, datasets::delete))
        .routes(routes!(dataset_changes::change))
        .routes(routes!(submissions::list))
        .routes(routes!(submissions::delete))
        .routes(routes!(jobs::create, jobs::list))
        .routes(routes!(jobs::show, jobs::cancel))
        .routes(routes!(steps::steps))
        .routes(routes!(steps::sweep_rows))
        .routes(routes!(releases::create, releases::list))
        .routes(routes!(releases::show))
        .routes(routes!(withdrawals::create))
        .routes(routes!(legal_holds::place, legal_holds::lift))
        .routes(routes!(policies::show, policies::replace))
        .routes(routes!(approvals::decide))
        .routes(routes!(approvals::list))
        .routes(routes!(publications::create, publications::list))
        .routes(routes!(
            publications::show,
            publications::change,
            publications::delete
        ))
        .routes(routes!(publication_data::manifest))
        .routes(routes!(audit::list))
        .routes(routes!(packages::pais_signing_key))
}

fn probe_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
}

/// The probes and the metrics.
fn operation_routes() -> OpenApiRouter<AppState> {
    probe_routes().routes(routes!(metrics::render))
}

/// Resources whose requests or responses stream.
fn streaming_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(datasets::create))
        .routes(routes!(submissions::create))
        .routes(routes!(drafts::propose))
        .routes(routes!(events::jobs::events))
        .routes(routes!(events::editions::watch))
        .routes(routes!(editions::create, editions::list))
        .routes(routes!(publication_data::stacked))
        .routes(routes!(profile::show))
        .routes(routes!(risk::show))
        .routes(routes!(reports::report))
        .routes(routes!(job_reports::measure))
        .routes(routes!(report_links::create))
        .routes(routes!(report_links::open))
        .routes(routes!(tables::data))
        .routes(routes!(tables::table))
        .routes(routes!(release_files::list))
        .routes(routes!(release_files::file))
        .routes(routes!(packages::package))
        .routes(routes!(grants::create, grants::list))
        .routes(routes!(grants::delete))
        .routes(routes!(compositions::show))
}

/// The OpenAPI document of the service.
pub fn api_document() -> utoipa::openapi::OpenApi {
    let mut document = OpenApiRouter::with_openapi(openapi::Base::openapi())
        .merge(prompt_routes())
        .merge(streaming_routes())
        .merge(operation_routes())
        .into_openapi();
    openapi::complete(&mut document);
    document
}

/// The OpenAPI document as JSON text, with a line break at its end.
///
/// # Errors
/// When the document cannot be written as JSON.
pub fn document_text() -> Result<String, serde_json::Error> {
    Ok(api_document().to_pretty_json()? + "\n")
}

/// The router of the service.
///
/// # Errors
/// When the OpenAPI document cannot be written as JSON.
pub fn router(state: AppState, settings: &RouterSettings) -> Result<Router, serde_json::Error> {
    metrics::install();
    let timeout = from_fn_with_state(settings.request_timeout, limit_time);
    let (prompt, _) = prompt_routes().layer(timeout).split_for_parts();
    let (streaming, _) = streaming_routes().split_for_parts();
    let operation = match settings.operation {
        OperationRoutes::ProbesAndMetrics => Router::from(operation_routes()),
        OperationRoutes::Probes => Router::from(probe_routes()),
        OperationRoutes::Separate => Router::new(),
    };
    let mut document = api_document();
    remember_parameters(&document);
    if let Some(url) = &state.public_url {
        document.servers = Some(vec![Server::new(url)]);
    }
    let document = bytes::Bytes::from(document.to_pretty_json()? + "\n");
    let document = get(async move || ([(header::CONTENT_TYPE, "application/json")], document));
    let swagger_ui = SwaggerUi::new("/docs").config(Config::from("/openapi.json"));
    let layers = ServiceBuilder::new()
        .layer(SetSensitiveRequestHeadersLayer::new([
            header::AUTHORIZATION,
        ]))
        .layer(from_fn(observe))
        .layer(from_fn_with_state(state.is_https(), protect))
        .layer(CatchPanicLayer::custom(panicked))
        .option_layer(cors(&settings.cors_origins))
        .layer(from_fn(permitted_encodings))
        .layer(compression());
    Ok(Router::new()
        .merge(prompt)
        .merge(streaming)
        .merge(operation)
        .route("/openapi.json", document)
        .merge(console::routes(settings.sign_in.clone()))
        .route("/docs/errors", get(async || error_page::page()))
        .merge(swagger_ui)
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(layers)
        .with_state(state))
}

/// The router of the probes and the metrics, for a listener of its own.
pub fn operation_router(state: AppState) -> Router {
    metrics::install();
    let layers = ServiceBuilder::new()
        .layer(from_fn(observe))
        .layer(from_fn_with_state(state.is_https(), protect))
        .layer(CatchPanicLayer::custom(panicked));
    Router::from(operation_routes())
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(layers)
        .with_state(state)
}

async fn unknown_path(State(state): State<AppState>, parts: Parts) -> ApiError {
    let detail = "there is no such path; /openapi.json lists the paths";
    no_route(&state, parts, ApiError::new(Code::NotFound, detail)).await
}

async fn wrong_method(State(state): State<AppState>, parts: Parts) -> ApiError {
    let detail = "this path does not have this method; the header `Allow` lists its methods";
    no_route(&state, parts, ApiError::new(Code::MethodNotAllowed, detail)).await
}

/// The error of a request without a route. Below `/v1/` a valid token is required first, so that a
/// client without one cannot find out which paths exist.
async fn no_route(state: &AppState, mut parts: Parts, error: ApiError) -> ApiError {
    let path = parts.extensions.get::<OriginalUri>();
    let path = path.map_or(parts.uri.path(), |OriginalUri(uri)| uri.path());
    if path.starts_with("/v1/")
        && let Err(refused) = Caller::from_request_parts(&mut parts, state).await
    {
        return refused;
    }
    error
}
