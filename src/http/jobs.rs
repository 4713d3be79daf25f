//! `/v1/jobs`: runs are asked for, watched and cancelled.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, body::Bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::{JobId, ReleaseId};
use crate::problem::ProblemDocument;
use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::store::JobStatus;
use crate::store::datasets;
use crate::store::idempotency::{self, Answer, Begun, Reservation};
use crate::store::jobs::{self, Cancellation, Creation, NewJob, StoredJob};
use crate::store::runs;
use crate::store::submissions;
use crate::worker::attempt;
use crate::worker::records::{self, SweepItem};
use pais_anonymize::{JobPlan, StepItem};
use pais_core::definition::{CombinationQuery, Sweep, first_list};
use pais_core::definition::{DatasetId, JobDefinition, json};

use super::bulk;
use super::extract::media_type;
use super::{ApiError, AppState, Body, Holder, IdempotencyKey, Page, PageQuery, Parameters, Path};

/// A job as it stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobDocument {
    /// Its id.
    pub id: JobId,
    /// What it runs on.
    pub dataset_id: DatasetId,
    /// Its state.
    pub status: JobStatus,
    /// Share of the work done, 0 to 1, by the time it takes; never shrinks, 1 when it has succeeded.
    pub progress: f64,
    /// What is being done: `reading`, `searching`, `verifying` or `writing`.
    pub phase: Option<String>,
    /// Rows that it reads: those of its submissions.
    pub rows: u64,
    /// Rows read so far, by this attempt.
    pub rows_read: u64,
    /// Specializations performed so far, by this attempt; over all combinations of a sweep. 0 for a
    /// job without steps.
    pub steps_done: u64,
    /// Estimated seconds until its end, from the speed it has shown; null while nothing is known,
    /// and for a job that does not run.
    pub remaining_seconds: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProblemDocument>)]
    pub error: Option<Value>,
    /// The release it made at its end, where it was asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_id: Option<ReleaseId>,
    /// How often a worker has begun.
    pub attempt: u32,
    /// What was asked for, as it was sent.
    #[schema(value_type = JobDefinition)]
    pub definition: Value,
    /// When it was asked for.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When a worker first began.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
}

impl From<StoredJob> for JobDocument {
    fn from(job: StoredJob) -> Self {
        Self {
            id: job.id,
            dataset_id: job.dataset,
            status: job.status,
            progress: job.progress,
            phase: job.phase,
            rows: job.rows,
            rows_read: job.counts.rows_read,
            steps_done: job.counts.steps_done,
            remaining_seconds: job.remaining_seconds,
            error: job.error,
            release_id: job.release,
            attempt: job.attempt,
            definition: job.definition,
            created_at: job.created_at,
            started_at: job.started_at,
            ended_at: job.ended_at,
        }
    }
}

/// The jobs' routes.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show, cancel))
        .routes(routes!(steps))
        .routes(routes!(sweep_rows))
}

/// Asks for a run
///
/// The job works on the submissions that are there now, later ones do not change it.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a retry harmless for 24 h")),
    request_body = JobDefinition,
    responses(
        (status = 202, description = "Queued", body = JobDocument,
         headers(("Location" = String, description = "The job"))),
        (status = 404, description = "`not_found`: no such dataset or submission"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`"),
        (status = 422, description = "`invalid_privacy`, `invalid_job`, `invalid_value`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    IdempotencyKey(key): IdempotencyKey,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, ApiError> {
    let body = JobBody::read(&headers, &body)?;
    let reservation = match key {
        None => None,
        Some(key) => {
            let organization = caller.organization;
            match idempotency::begin(&state.store, organization, "POST /v1/jobs", &key).await? {
                Begun::Fresh(reservation) => Some(reservation),
                Begun::InUse => return Err(ApiError::key_in_use()),
                Begun::Kept(kept) => return Ok(kept.replay(&body.sha256)?.into_response()),
            }
        }
    };
    let dataset = match check(&state, caller, &body).await {
        Ok(dataset) => dataset,
        Err(error) => {
            if let Some(reservation) = reservation {
                reservation.abandon().await?;
            }
            return Err(error);
        }
    };
    make(&state, caller, dataset, &body, reservation).await
}

/// A job as it was sent.
struct JobBody {
    definition: JobDefinition,
    sweep: Sweep,
    sent: Value,
    sha256: [u8; 32],
}

impl JobBody {
    fn read(headers: &HeaderMap, body: &Bytes) -> Result<Self, ApiError> {
        if media_type(headers) != "application/json" {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send the body with `Content-Type: application/json`",
            ));
        }
        let sent: Value = json::parse(body)?;
        if holds_nul(&sent) {
            return Err(ApiError::new(
                Code::MalformedJson,
                "a string of the body contains NUL; remove it",
            ));
        }
        let definition: JobDefinition = json::parse(body)?;
        Ok(Self {
            sweep: Sweep::new(&definition)?,
            definition,
            sent,
            sha256: Sha256::digest(body).into(),
        })
    }
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

async fn check(state: &AppState, caller: Caller, body: &JobBody) -> Result<DatasetId, ApiError> {
    let id = body.definition.dataset_id.ok_or_else(|| {
        Problem::at(
            Code::InvalidShape,
            "/dataset_id",
            "`dataset_id` is missing; give the id of the dataset to anonymize",
        )
    })?;
    let dataset = datasets::load(&state.store, caller.organization, id).await?;
    let dataset = dataset.ok_or_else(no_dataset)?;
    let combinations = body.sweep.combinations.iter();
    let plans = combinations
        .map(|combination| JobPlan::new(&dataset.schema, &combination.apply(&body.definition)))
        .collect::<Result<Vec<_>, _>>()?;
    if body.sweep.is_sweep {
        check_sweep(&plans, &body.definition)?;
    }
    let submissions = body.definition.submissions.as_deref();
    let rows = submissions::count_rows(&state.store, id, submissions).await?;
    bulk::check_fits(state, &dataset.schema, &plans, rows)?;
    for plan in &plans {
        plan.check_work(rows)?;
    }
    Ok(id)
}

fn check_sweep(plans: &[JobPlan], job: &JobDefinition) -> Result<(), Problem> {
    if !plans.iter().all(JobPlan::has_steps) {
        return Err(Problem::at(
            Code::InvalidJob,
            first_list(job).unwrap_or_default(),
            "lists of values are for the models that are reached by top-down specialization; \
             give one value",
        ));
    }
    if job.release == Some(true) {
        return Err(Problem::at(
            Code::InvalidJob,
            "/release",
            "a job with lists has a table for each combination; leave `release` out, and make \
             releases of those you choose",
        ));
    }
    Ok(())
}

fn no_dataset() -> Problem {
    Problem::at(
        Code::NotFound,
        "/dataset_id",
        "there is nothing here for this token; check the id",
    )
}

async fn make(
    state: &AppState,
    caller: Caller,
    dataset: DatasetId,
    body: &JobBody,
    reservation: Option<Reservation>,
) -> Result<Response, ApiError> {
    let new = NewJob {
        dataset,
        definition: &body.sent,
        body_sha256: body.sha256,
        submissions: body.definition.submissions.as_deref(),
    };
    match jobs::create(&state.store, caller, &new, reservation, queued).await? {
        Creation::Queued(answer) => {
            state.wake.notify_one();
            Ok(answer.into_response())
        }
        Creation::NoDataset => Err(no_dataset().into()),
        Creation::NoSubmission(index) => Err(Problem::at(
            Code::NotFound,
            format!("/submissions/{index}"),
            "the dataset has no such submission",
        )
        .into()),
        Creation::NoRows => Err(Problem::at(
            Code::InvalidJob,
            match new.submissions {
                Some(_) => "/submissions",
                None => "/dataset_id",
            },
            "there are no rows to anonymize; send a submission first",
        )
        .into()),
        Creation::KeyTaken => Err(ApiError::key_in_use()),
    }
}

fn queued(job: &StoredJob) -> Answer {
    let document = JobDocument::from(job.clone());
    Answer {
        status: StatusCode::ACCEPTED.as_u16(),
        headers: BTreeMap::from([
            ("content-type".to_owned(), "application/json".to_owned()),
            ("location".to_owned(), format!("/v1/jobs/{}", job.id)),
        ]),
        // Ids, words, numbers and JSON, which are always JSON.
        body: serde_json::to_vec(&document).unwrap_or_default(),
    }
}

/// Jobs, oldest first
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", params(PageQuery),
    responses(
        (status = 200, description = "A page of jobs", body = Page<JobDocument>),
    ),
)]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<JobDocument>>, ApiError> {
    let page = query.parse()?;
    let organization = caller.organization;
    let jobs = jobs::list(&state.store, organization, page.after, page.limit + 1).await?;
    let jobs = jobs.into_iter().map(JobDocument::from).collect();
    Ok(Json(Page::cut(jobs, page, |job: &JobDocument| job.id.0)))
}

/// One job
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 200, description = "The job as it stands", body = JobDocument),
    ),
)]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
) -> Result<Json<JobDocument>, ApiError> {
    let job = jobs::load(&state.store, caller.organization, id).await?;
    let job = job.ok_or_else(ApiError::not_found)?;
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
    match jobs::cancel(&state.store, caller, id).await? {
        Cancellation::Accepted(job) => Ok((StatusCode::ACCEPTED, Json((*job).into()))),
        Cancellation::Ended => Err(ApiError::new(
            Code::JobEnded,
            "the job has ended; there is nothing to cancel",
        )),
        Cancellation::NotFound => Err(ApiError::not_found()),
    }
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
    let (after, limit) = number_page(query.limit, query.cursor.as_deref())?;
    let job = jobs::load(&state.store, caller.organization, id).await?;
    let job = job.ok_or_else(ApiError::not_found)?;
    let sweep = Sweep::new(&attempt::stored_job(&job.definition)?)?;
    let run = sweep.find(CombinationQuery {
        l: query.l,
        k: query.k,
        c: query.c,
    })?;
    let from = after.map_or(0, |after| after.saturating_add(1));
    let items = runs::steps(&state.store, id, run as u32, from, limit + 1).await?;
    let items = items.into_iter().map(records::step_item);
    let mut items = items.collect::<Result<Vec<_>, _>>()?;
    let more = items.len() as i64 > limit;
    items.truncate(limit as usize);
    let next_cursor = items
        .last()
        .filter(|_| more)
        .map(|item| item.step.to_string());
    Ok(Json(Page { items, next_cursor }))
}

/// Combinations of a sweep
///
/// One row for each combination of the job's lists of `l`, `k` and `c`, in the order of the
/// lists; none for a job without lists or one that has not succeeded. Any combination that has
/// succeeded can be released: `POST /v1/releases` with its `l`, `k` and `c`.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/sweep", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), PageQuery),
    responses((status = 200, description = "A page of combinations", body = Page<SweepItem>)),
)]
async fn sweep_rows(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<SweepItem>>, ApiError> {
    let (after, limit) = number_page(query.limit, query.cursor.as_deref())?;
    let job = jobs::load(&state.store, caller.organization, id).await?;
    job.ok_or_else(ApiError::not_found)?;
    let from = after.map_or(0, |after| after.saturating_add(1));
    let mut rows = runs::sweep(&state.store, id, from, limit + 1).await?;
    let more = rows.len() as i64 > limit;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| more).map(|(run, _)| run.to_string());
    let items = rows.into_iter().map(|(_, item)| records::sweep_item(item));
    let items = items.collect::<Result<_, _>>()?;
    Ok(Json(Page { items, next_cursor }))
}

/// A page of steps, and of which combination they are where the job is a sweep.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StepQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// *L* of the combination.
    l: Option<f64>,
    /// *K* of the combination.
    k: Option<f64>,
    /// *C* of the combination.
    c: Option<f64>,
}

/// Steps and combinations are counted, so their cursor is a number where other lists have an id.
fn number_page(limit: Option<i64>, cursor: Option<&str>) -> Result<(Option<u32>, i64), Problem> {
    let sized = PageQuery {
        limit,
        cursor: None,
    };
    let limit = sized.parse()?.limit;
    let after = cursor.map(str::parse).transpose();
    let after = after.map_err(|_| {
        Problem::new(
            Code::InvalidParameter,
            "`cursor` is the `next_cursor` of a page before",
        )
    })?;
    Ok((after, limit))
}

#[cfg(test)]
mod tests {
    use super::holds_nul;
    use serde_json::json;

    #[test]
    fn nul_is_found_at_any_depth() {
        assert!(holds_nul(&json!({"a": [{"b\u{0}": 1}]})));
        assert!(holds_nul(&json!(["x\u{0}"])));
        assert!(!holds_nul(&json!({"a": ["\\u0000", 1, null]})));
    }
}
