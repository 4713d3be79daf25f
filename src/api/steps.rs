//! `/v1/jobs/{id}/steps` and `/v1/jobs/{id}/sweep`: what a job found.

use axum::Json;
use axum::extract::State;
use pais_anonymize::StepItem;
use pais_core::definition::{CombinationQuery, Objective, Recoding};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::engine::records::SweepItem;
use crate::ids::JobId;

use super::error::ApiError;
use super::extract::{Holder, Parameters, Path};
use super::page::{NumberedPageQuery, Page, page_request};
use super::state::AppState;

/// The routes of a job's results.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(steps))
        .routes(routes!(sweep_rows))
}

/// Steps of a top-down run
///
/// From step 0, the topmost table, on; none for a job without steps or one that has not
/// succeeded. The cursor is the number of the last step seen.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/steps", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), StepQuery),
    responses(
        (status = 200, description = "A page of steps", body = Page<StepItem>),
        (status = 422, description = "`invalid_job`: which combination of the sweep?"),
    ),
)]
async fn steps(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<StepQuery>,
) -> Result<Json<Page<StepItem>>, ApiError> {
    let page = page_request(query.limit, query.cursor.as_deref())?;
    let combination = CombinationQuery {
        l: query.l,
        k: query.k,
        c: query.c,
        recoding: query.recoding,
        objective: query.objective,
    };
    let service = state.of(caller);
    let steps = service.list_steps(caller, id, combination, page).await?;
    Ok(Json(steps))
}

/// Combinations of a sweep
///
/// One row for each combination of the job's lists of `l`, `k`, `c`, recodings and objectives, in
/// the order of the lists; none for a job without lists or one that has not succeeded. Any combination that has
/// succeeded can be released: `POST /v1/releases` with its parameters.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/sweep", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), NumberedPageQuery),
    responses((status = 200, description = "A page of combinations", body = Page<SweepItem>)),
)]
async fn sweep_rows(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<NumberedPageQuery>,
) -> Result<Json<Page<SweepItem>>, ApiError> {
    let page = query.parse()?;
    let combinations = state.of(caller).list_combinations(caller, id, page).await?;
    Ok(Json(combinations))
}

/// A page of steps, and of which combination they are where the job is a sweep.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StepQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,9}$")]
    cursor: Option<String>,
    /// *L* of the combination.
    l: Option<f64>,
    /// *K* of the combination.
    k: Option<f64>,
    /// *C* of the combination.
    c: Option<f64>,
    /// Recoding of the combination.
    recoding: Option<Recoding>,
    /// Objective of the combination.
    objective: Option<Objective>,
}
