//! The metrics of this process. Their labels hold methods, routes and status codes, never ids or
//! values.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the buckets, in seconds. Uploads and rendering take long; all other requests are
/// short.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0,
];

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Sets up the metrics of this process at the first call, and returns their handle. What was
/// counted before is lost.
pub(super) fn install() -> &'static PrometheusHandle {
    HANDLE.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        let recorder = match PrometheusBuilder::new().set_buckets(&BUCKETS) {
            Ok(with_buckets) => with_buckets.build_recorder(),
            // Only an empty list is rejected.
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
        metrics::describe_gauge!("http_connections_open", "Open connections");
        metrics::describe_counter!(
            "http_connections_refused_total",
            "Connections refused because all open ones had a request under way"
        );
        metrics::describe_counter!(
            "http_connections_closed_total",
            "Connections closed by the service, by reason"
        );
        metrics::describe_counter!(
            "pais_refused_tokens_total",
            "Requests refused because of their token, by reason"
        );
        handle
    })
}
