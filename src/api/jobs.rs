//! `/v1/jobs`: jobs are created, listed and cancelled.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use pais_anonymize::JobPlan;
use pais_core::definition::{DatasetId, JobDefinition, Sweep, first_list, json};
use pais_core::warning::Warning;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::db::audit::Action;
use crate::db::datasets::{self, StoredDataset};
use crate::db::idempotency::{IdempotentAnswer, Reservation};
use crate::db::jobs::{self, JobCancellation, JobCreation, JobSummary, NewJob, StoredJob};
use crate::db::{JobStatus, policies, submissions};
use crate::engine::load_rows;
use crate::ids::{JobId, ReleaseId};
use crate::problem::{Code, Problem, ProblemDocument};
use crate::roles::Caller;

use crate::engine::table_memory;

use super::error::ApiError;
use super::extract::body::JobBody;
use super::extract::headers::require_json;
use super::extract::{Holder, Parameters, Path};
use super::idempotency::{
    IdempotencyKey, KeyedRequest, RequestKey, abandon, idempotent_answer, key_in_use, replay,
};
use super::page::{Page, PageQuery};
use super::state::{App, AppState};

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
        let app = state.of(caller);
        create_job(&app, caller, &request, key.as_ref()).await
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
    let page = query.parse()?;
    let (organization, limit) = (caller.organization, page.rows_to_query());
    let rows = jobs::list(&state.db(caller), organization, page.after, limit).await?;
    let jobs = Page::new(rows, page, |job| job.id.0);
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
    let job = load_job(&state.of(caller), caller, id).await?;
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
    let app = state.of(caller);
    match jobs::cancel(&app.db, &app.keys, caller, id).await? {
        JobCancellation::Accepted(job) => Ok((StatusCode::ACCEPTED, Json((*job).into()))),
        JobCancellation::Ended => Err(ApiError::new(
            Code::JobEnded,
            "the job has ended; there is nothing to cancel",
        )),
        JobCancellation::NotFound => Err(ApiError::not_found()),
    }
}

/// A job in its current state, without its definition.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobSummaryDocument {
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
    /// What the holder should know about its rows; empty until it has read them.
    pub warnings: Vec<Warning>,
    /// The release it made at its end, where it was asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_id: Option<ReleaseId>,
    /// Number of attempts.
    pub attempt: u32,
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

/// A job in its current state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobDocument {
    /// All but what was asked for.
    #[serde(flatten)]
    pub summary: JobSummaryDocument,
    /// What was asked for, as it was sent; when the dataset is deleted, without the sensitive and
    /// pre-generalized values that it lists.
    #[schema(value_type = JobDefinition)]
    pub definition: Value,
}

impl From<StoredJob> for JobDocument {
    fn from(job: StoredJob) -> Self {
        Self {
            summary: job.summary.into(),
            definition: job.definition,
        }
    }
}

impl From<JobSummary> for JobSummaryDocument {
    fn from(job: JobSummary) -> Self {
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
            warnings: job.warnings,
            release_id: job.release,
            attempt: job.attempt,
            created_at: job.created_at,
            started_at: job.started_at,
            ended_at: job.ended_at,
        }
    }
}

/// A job as it was sent, parsed but not yet checked against its dataset.
struct JobRequest {
    definition: JobDefinition,
    sweep: Sweep,
    sent: Value,
    sha256: [u8; 32],
}

impl JobRequest {
    /// Parses a JSON body.
    ///
    /// # Errors
    /// A body that is not JSON or not a job definition, and lists of privacy parameters that are
    /// invalid.
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        let sent: Value = json::parse(body)?;
        let definition: JobDefinition = json::parse(body)?;
        Ok(Self {
            sweep: Sweep::new(&definition)?,
            definition,
            sent,
            sha256: Sha256::digest(body).into(),
        })
    }
}

/// Creates a job and wakes a worker. The answer is stored under the key of the request. A repeated
/// request gets the stored answer.
///
/// # Errors
/// `storage_full`; a job that does not fit its dataset; an idempotency key that is in use or was used with
/// another body.
async fn create_job(
    app: &App,
    caller: Caller,
    request: &JobRequest,
    key: Option<&RequestKey>,
) -> Result<IdempotentAnswer, ApiError> {
    app.storage.check()?;
    let reservation = match app.reserve(caller, key).await? {
        KeyedRequest::New(reservation) => reservation,
        KeyedRequest::Repeated(stored) => return replay(stored, &request.sha256),
    };
    let checked = check_job(app, caller, request).await;
    let subject = request.definition.dataset_id.map_or(Uuid::nil(), |id| id.0);
    let recorded = app.recorded(caller, Action::JobCreated, subject, checked);
    let dataset = match recorded.await {
        Ok(dataset) => dataset,
        Err(error) => {
            abandon(reservation).await?;
            return Err(error);
        }
    };
    insert_job(app, caller, dataset, request, reservation).await
}

/// Checks everything about a job that can be checked without its rows. Returns its dataset.
async fn check_job(
    app: &App,
    caller: Caller,
    request: &JobRequest,
) -> Result<StoredDataset, ApiError> {
    let job = &request.definition;
    let id = job.dataset_id.ok_or_else(|| {
        Problem::at(
            Code::InvalidShape,
            "/dataset_id",
            "`dataset_id` is missing; give the id of the dataset to anonymize",
        )
    })?;
    let store = app.db.clone();
    let load = async move || datasets::load(&store, caller.organization, id).await;
    let dataset = app.documents.load(load).await??;
    let dataset = dataset.ok_or_else(no_dataset)?;
    let plans = table_memory::plans(&dataset.schema, job, &request.sweep)?;
    if request.sweep.is_sweep {
        check_sweep(&plans, job)?;
    }
    let policy = policies::load(&app.db, caller.organization).await?;
    policy.check_job(job, &dataset.schema)?;
    let submissions = job.submissions.as_deref();
    let size = submissions::size(&app.db, id, submissions).await?;
    let limits = &app.limits;
    limits.table_bytes(&app.memory, &dataset.schema, &plans, size)?;
    Ok(dataset)
}

async fn insert_job(
    app: &App,
    caller: Caller,
    dataset: StoredDataset,
    request: &JobRequest,
    reservation: Option<Reservation>,
) -> Result<IdempotentAnswer, ApiError> {
    let key = load_rows::open_key(&app.keys, &dataset)?;
    let new = NewJob {
        dataset: dataset.id,
        key: &key,
        definition: &request.sent,
        body_sha256: request.sha256,
        submissions: request.definition.submissions.as_deref(),
        quotas: app.limits.quotas,
    };
    match jobs::create(&app.db, &app.keys, caller, &new, reservation, queued).await? {
        JobCreation::Queued(answer) => {
            app.wake.notify_one();
            Ok(answer)
        }
        JobCreation::NoDataset => Err(no_dataset()),
        JobCreation::NoSubmission(index) => Err(Problem::at(
            Code::NotFound,
            format!("/submissions/{index}"),
            "the dataset has no such submission",
        )
        .into()),
        JobCreation::NoRows => Err(Problem::at(
            Code::InvalidJob,
            match new.submissions {
                Some(_) => "/submissions",
                None => "/dataset_id",
            },
            "there are no rows to anonymize; send a submission first",
        )
        .into()),
        JobCreation::KeyTaken => Err(key_in_use()),
    }
}

/// A job of the caller's organization.
///
/// # Errors
/// `not_found`.
pub(super) async fn load_job(app: &App, caller: Caller, id: JobId) -> Result<StoredJob, ApiError> {
    let job = jobs::load(&app.db, &app.keys, caller.organization, id).await?;
    job.ok_or_else(ApiError::not_found)
}

fn check_sweep(plans: &[JobPlan], job: &JobDefinition) -> Result<(), Problem> {
    if !plans.iter().all(JobPlan::takes_sweeps) {
        return Err(Problem::at(
            Code::InvalidJob,
            first_list(job).unwrap_or_default(),
            "lists of values are possible only for `lkc` and its special cases, and for groups \
             that are generalized; give one value",
        ));
    }
    if job.release == Some(true) {
        return Err(Problem::at(
            Code::InvalidJob,
            "/release",
            "a job with lists has a table for each combination; leave `release` out, and create \
             releases of the combinations you choose",
        ));
    }
    Ok(())
}

fn no_dataset() -> ApiError {
    ApiError::not_found_at("/dataset_id")
}
