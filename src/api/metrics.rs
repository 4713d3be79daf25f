//! `/metrics`: the metrics in Prometheus's text format.

use axum::http::header;
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::metrics_recorder::install;
use crate::api::state::AppState;

/// The route of the metrics.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(render))
}

/// Metrics in Prometheus's text format.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(()),
    responses((status = 200, description = "Metrics", body = String,
        content_type = "text/plain; version=0.0.4")))]
async fn render() -> impl IntoResponse {
    let handle = install();
    handle.run_upkeep();
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        handle.render(),
    )
}
