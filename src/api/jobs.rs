//! `/v1/jobs`: creation, listing and cancellation of jobs.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use pais_core::definition::JobDefinition;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::idempotency::IdempotentAnswer;
use crate::db::jobs::StoredJob;
use crate::ids::JobId;
use crate::service::jobs::JobRequest;

use super::error::ApiError;
use super::extract::body::JobBody;
use super::extract::headers::require_json;
use super::extract::{Holder, Parameters, Path};
use super::idempotency::{IdempotencyKey, idempotent_answer};
use super::job_document::{JobDocument, JobSummaryDocument};
use super::page::{Page, PageQuery};
use super::state::AppState;

/// The routes of jobs.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show, cancel))
}

/// Asks for a run
///
/// The job works on the submissions that are there now, later ones do not change it.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a retry harmless for 24 h",
            min_length = 1, max_length = 255, pattern = "^[!-~]{1,255}$")),
    request_body = JobDefinition,
    responses(
        (status = 202, description = "Queued", body = JobDocument,
         headers(("Location" = String, description = "The job"))),
        (status = 404, description = "`not_found`: no such dataset or submission"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`"),
        (status = 422, description = "`invalid_privacy`, `invalid_job`, `invalid_value`; `below_policy`: the pointer is to what the policy does not allow, the detail names its line"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    key: IdempotencyKey,
    headers: HeaderMap,
    JobBody(body): JobBody,
) -> Result<impl IntoResponse, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let request = JobRequest::parse(&body)?;
        let key = key.at("POST /v1/jobs");
        let service = state.of(caller);
        let answer = service
            .create_job(caller, &request, key.as_ref(), queued)
            .await?;
        Ok(answer)
    })
    .await
}

fn queued(job: &StoredJob) -> Result<IdempotentAnswer, serde_json::Error> {
    let document = JobDocument::from(job.clone());
    idempotent_answer(
        StatusCode::ACCEPTED,
        format!("/v1/jobs/{}", job.id),
        &document,
    )
}

/// Jobs without their definitions, oldest first
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", params(PageQuery),
    responses(
        (status = 200, description = "A page of jobs", body = Page<JobSummaryDocument>),
    ),
)]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<JobSummaryDocument>>, ApiError> {
    let jobs = state.of(caller).list_jobs(caller, query.parse()?).await?;
    Ok(Json(jobs.map(JobSummaryDocument::from)))
}

/// One job
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 200, description = "The job in its current state", body = JobDocument),
    ),
)]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
) -> Result<Json<JobDocument>, ApiError> {
    let job = state.of(caller).get_job(caller, id).await?;
    Ok(Json(job.into()))
}

/// Cancels a job
///
/// A queued job is cancelled at once, a running one within about a second.
#[utoipa::path(
    delete, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 202, description = "Cancelled, or about to be", body = JobDocument),
        (status = 409, description = "`job_ended`"),
    ),
)]
async fn cancel(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
) -> Result<(StatusCode, Json<JobDocument>), ApiError> {
    let job = state.of(caller).cancel_job(caller, id).await?;
    Ok((StatusCode::ACCEPTED, Json(job.into())))
}
