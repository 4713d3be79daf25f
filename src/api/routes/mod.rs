//! The routes, one file for each resource.

pub mod audit;
pub mod compositions;
pub mod datasets;
pub mod drafts;
pub mod events;
pub mod grants;
pub mod health;
pub mod job_document;
pub mod jobs;
pub mod legal_holds;
mod metrics;
pub mod organizations;
pub mod packages;
pub mod policies;
pub mod profile;
pub mod releases;
pub mod report_links;
pub mod risk;
pub mod steps;
pub mod submissions;
pub mod tables;
pub mod taxonomies;
pub mod tokens;
pub mod withdrawals;

use utoipa_axum::router::OpenApiRouter;

use super::state::AppState;

/// Resources whose responses begin soon.
pub(super) fn prompt_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(organizations::routes())
        .merge(tokens::routes())
        .merge(taxonomies::routes())
        .merge(datasets::routes())
        .merge(submissions::list_routes())
        .merge(jobs::routes())
        .merge(steps::routes())
        .merge(withdrawals::routes())
        .merge(legal_holds::routes())
        .merge(policies::routes())
        .merge(audit::routes())
        .merge(packages::key_routes())
}

/// The probes and the metrics.
pub(super) fn operation_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(metrics::routes())
}

/// Resources whose requests or responses stream.
pub(super) fn streaming_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(submissions::routes())
        .merge(drafts::routes())
        .merge(events::routes())
        .merge(profile::routes())
        .merge(risk::routes())
        .merge(releases::routes())
        .merge(report_links::routes())
        .merge(tables::routes())
        .merge(packages::routes())
        .merge(grants::routes())
        .merge(compositions::routes())
}
