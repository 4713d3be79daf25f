//! `/metrics`: the metrics of this process in Prometheus's text format. Their labels hold methods, routes
//! and status codes, never ids or values.

use std::sync::OnceLock;

use axum::http::header;
use axum::response::IntoResponse;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::connections::Reason;

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
        let with_buckets = PrometheusBuilder::new().set_buckets(&BUCKETS);
        // Only an empty list is rejected.
        let recorder = with_buckets.unwrap_or_default().build_recorder();
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
        // So that their rate is 0, not absent, before the first one.
        metrics::counter!("pais_leases_lost_total").absolute(0);
        metrics::counter!("http_connections_refused_total").absolute(0);
        for reason in Reason::ALL {
            let reason = reason.as_str();
            metrics::counter!("http_connections_closed_total", "reason" => reason).absolute(0);
        }
        metrics::describe_counter!(
            "http_connections_refused_total",
            "Connections refused because all open ones had a request under way"
        );
        metrics::describe_counter!(
            "http_connections_closed_total",
            "Connections closed by the service, by reason"
        );
        metrics::describe_counter!("pais_problems_total", "Problem documents sent, by code");
        metrics::describe_counter!("pais_submitted_rows_total", "Rows stored");
        metrics::describe_counter!("pais_job_attempts_total", "Attempts ended, by outcome");
        metrics::describe_histogram!("pais_job_attempt_seconds", "Time of an attempt at a job");
        metrics::describe_histogram!(
            "pais_job_phase_seconds",
            "Time of a run in a phase that it came to, without the wait for memory"
        );
        metrics::describe_counter!("pais_leases_lost_total", "Leases that this process lost");
        metrics::describe_gauge!("pais_jobs_queued", "Jobs that wait, of all organizations");
        metrics::describe_gauge!("pais_jobs_running", "Jobs that run, in all processes");
        metrics::describe_gauge!(
            "pais_queue_age_seconds",
            "How long the first of the waiting jobs has waited"
        );
        metrics::describe_gauge!(
            "pais_memory_reserved_bytes",
            "Memory that jobs and requests of this process have reserved"
        );
        metrics::describe_gauge!("pais_memory_limit_bytes", "Memory that they can reserve");
        metrics::describe_gauge!(
            "pais_disk_free_bytes",
            "Free space, by what is stored there"
        );
        metrics::describe_gauge!(
            "pais_database_connections",
            "Connections of this process to the database, by state"
        );
        metrics::describe_gauge!("pais_database_connections_limit", "Most of them");
        metrics::describe_counter!(
            "pais_refused_tokens_total",
            "Requests refused because of their token, by reason"
        );
        handle
    })
}

/// Metrics in Prometheus's text format.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(()),
    responses((status = 200, description = "Metrics", body = String,
        content_type = "text/plain; version=0.0.4")))]
pub(super) async fn render() -> impl IntoResponse {
    let handle = install();
    handle.run_upkeep();
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        handle.render(),
    )
}
