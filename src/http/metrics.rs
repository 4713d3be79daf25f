//! `/metrics`: Prometheus text. Labels hold methods, routes and words, never ids or values.

use std::sync::OnceLock;

use axum::http::header;
use axum::response::IntoResponse;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::AppState;

/// Seconds; uploads and renderings take long, everything else is short.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0,
];

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// The route of the metrics.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(render))
}

/// Sets up this process's metrics, once; what is counted before is lost.
pub fn install() -> &'static PrometheusHandle {
    HANDLE.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        let recorder = match PrometheusBuilder::new().set_buckets(&BUCKETS) {
            Ok(with_buckets) => with_buckets.build_recorder(),
            // Only an empty list is refused.
            Err(_) => builder.build_recorder(),
        };
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is set up; /metrics stays empty");
        }
        metrics::describe_counter!("http_requests_total", "Requests answered");
        metrics::describe_histogram!(
            "http_request_duration_seconds",
            "Time from a request's head to its answer's head"
        );
        handle
    })
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
