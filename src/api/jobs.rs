//! `/v1/jobs`: jobs are created, listed and cancelled.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use pais_anonymize::JobPlan;
use pais_core::definition::{JobDefinition, JobRelease, Sweep, first_list, json};
use pais_core::table::KeyCounter;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::db::audit::Action;
use crate::db::datasets::StoredDataset;
use crate::db::idempotency::{IdempotentAnswer, Reservation};
use crate::db::jobs::{self, JobCancellation, JobCreation, JobSummary, NewJob, StoredJob};
use crate::db::policies;
use crate::db::submissions::{self, SubmissionsSize, Which};
use crate::engine::load_rows::{self, UnchangedKeyCheck};
use crate::engine::locations;
use crate::engine::table_memory::{self, TableLimits};
use crate::engine::table_work::TableKind;
use crate::executors;
use crate::ids::JobId;
use crate::problem::{Code, Problem};

use super::datasets::find;
use super::error::ApiError;
use super::extract::body::JobBody;
use super::extract::headers::require_json;
use super::extract::{Holder, Parameters, Path, Staff};
use super::idempotency::{
    IdempotencyKey, KeyedRequest, abandon, idempotent_answer, key_in_use, replay,
};
use super::page::{Page, PageQuery};
use super::state::CallerApp;

/// Memory for the sealed, opened and decoded chunks in transit, in bytes.
const CHUNK_BYTES: u64 = 128 << 20;

/// Create a job
///
/// The job reads the submissions that are current now, that is, not replaced by another one. Later submissions
/// do not change it. A column that is released unchanged (insensitive, sensitive, class) and has
/// distinct values in at least 90 % of its 20 or more non-missing rows makes the service refuse the job, unless
/// `acknowledge_unchanged` says why. About a tenth of the rows is read to decide that, all of them where
/// a column is such a key.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a retry harmless for 24 h",
            min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]{0,253}[!-~])?$")),
    request_body = JobDefinition,
    responses(
        (status = 202, description = "Queued", body = StoredJob,
         headers(("Location" = String, description = "The job"))),
        (status = 404, description = "`not_found`: no such dataset or submission"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`; `conflict`: the columns of the dataset were changed meanwhile"),
        (status = 422, description = "`invalid_privacy`, `invalid_job`, `invalid_value`, with a pointer to `executor` where it is not one of the service, or does not take the job; `location_not_granted`; `unchanged_key`: a column that is nearly a key would be released unchanged; `below_policy`: the pointer is to what the policy does not allow, the detail names its line"),
    ),
)]
pub(super) async fn create(
    Holder(app): Holder,
    key: IdempotencyKey,
    headers: HeaderMap,
    JobBody(body): JobBody,
) -> Result<impl IntoResponse, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let request = JobRequest::parse(&body)?;
        create_job(&app, &request, &key).await
    })
    .await
}

fn queued(job: &StoredJob) -> Result<IdempotentAnswer, serde_json::Error> {
    let path = format!("/v1/jobs/{}", job.id);
    idempotent_answer(StatusCode::ACCEPTED, path, job)
}

/// List jobs without their definitions, oldest first.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs", params(PageQuery),
    responses(
        (status = 200, description = "A page of jobs", body = Page<JobSummary>),
    ),
)]
pub(super) async fn list(
    Staff(app): Staff,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<JobSummary>>, ApiError> {
    let page = query.parse()?;
    let (organization, limit) = (app.caller.organization, page.rows_to_query());
    let rows = jobs::list(&app.db, organization, page.after, limit).await?;
    Ok(Json(Page::new(rows, page, |job| job.id.0)))
}

/// Look up a job.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 200, description = "The job in its current state", body = StoredJob),
    ),
)]
pub(super) async fn show(
    Staff(app): Staff,
    Path(id): Path<JobId>,
) -> Result<Json<StoredJob>, ApiError> {
    Ok(Json(load_job(&app, id).await?))
}

/// Cancel a job
///
/// A queued job is cancelled at once, a running one within about a second.
#[utoipa::path(
    delete, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = JobId, Path, description = "The job")),
    responses(
        (status = 202, description = "Cancelled, or about to be", body = StoredJob),
        (status = 409, description = "`job_ended`"),
    ),
)]
pub(super) async fn cancel(
    Holder(app): Holder,
    Path(id): Path<JobId>,
) -> Result<(StatusCode, Json<StoredJob>), ApiError> {
    match jobs::cancel(&app.db, &app.keys, app.caller, id).await? {
        JobCancellation::Accepted(job) => {
            app.settle_editions().await;
            Ok((StatusCode::ACCEPTED, Json(*job)))
        }
        JobCancellation::Ended => Err(ApiError::new(
            Code::JobEnded,
            "the job has ended; there is nothing to cancel",
        )),
        JobCancellation::NotFound => Err(ApiError::not_found()),
    }
}

/// A job as it was sent, parsed but not yet checked against its dataset.
struct JobRequest {
    /// Without its executor.
    definition: JobDefinition,
    /// The name of the executor that is to count its rows.
    executor: Option<String>,
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
        let mut definition: JobDefinition = json::parse(body)?;
        Ok(Self {
            executor: definition.take_executor(),
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
    app: &CallerApp,
    request: &JobRequest,
    key: &IdempotencyKey,
) -> Result<IdempotentAnswer, ApiError> {
    app.storage.check()?;
    let mut reservation = match app.reserve("POST /v1/jobs", key).await? {
        KeyedRequest::New(reservation) => reservation,
        KeyedRequest::Repeated(stored) => return replay(stored, &request.sha256),
    };
    let made = insert_job(app, request, &mut reservation).await;
    let subject = request.definition.dataset_id.map_or(Uuid::nil(), |id| id.0);
    let recorded = app.recorded(Action::JobCreated, subject, made).await;
    abandon(reservation).await?;
    recorded
}

/// Checks everything about a job that can be checked without its rows. Returns its dataset.
async fn check_job(app: &CallerApp, request: &JobRequest) -> Result<StoredDataset, ApiError> {
    let job = &request.definition;
    let id = job.dataset_id.ok_or_else(|| {
        Problem::at(
            Code::InvalidShape,
            "/dataset_id",
            "`dataset_id` is missing; give the id of the dataset to anonymize",
        )
    })?;
    let dataset = find(app, app.caller.organization, id)
        .await?
        .ok_or_else(no_dataset)?;
    let executor = request.executor.as_deref();
    let executor = executor.map(|name| app.executors.find(name)).transpose()?;
    let plans = table_memory::plans(&dataset.schema, job, &request.sweep)?;
    if request.sweep.is_sweep {
        check_sweep(&plans, job)?;
    }
    if executor.is_some() {
        check_scaled(request, &dataset)?;
    }
    if let Some(location) = job.release.as_ref().and_then(JobRelease::location) {
        let (organization, pointer) = (app.caller.organization, "/release/location/url");
        locations::granted(&app.db, &app.storage, organization, &location.url, pointer).await?;
    }
    let policy = policies::load(&app.db, app.caller.organization).await?;
    policy.check_job(job, &dataset.schema)?;
    let which = which(job);
    let size = submissions::size(&app.db, id, which).await?;
    let limits = TableLimits::new(app.limits.job_bytes, &app.memory);
    let needed = match executor {
        None => limits.needed(&dataset.schema, &plans, size, 0)?,
        Some(executor) => limits.of_executor(executor.memory)?,
    };
    refuse_keys(app, &dataset, request, &plans, size, needed).await?;
    Ok(dataset)
}

/// Refuses a job that an executor does not take, whatever its rows are.
///
/// # Errors
/// `invalid_job` with a pointer to the executor.
fn check_scaled(request: &JobRequest, dataset: &StoredDataset) -> Result<(), Problem> {
    let job = &request.definition;
    if request.sweep.is_sweep {
        return Err(Problem::at(
            Code::InvalidJob,
            executors::POINTER,
            "lists of values cannot be run by an executor; give one value, or leave `executor` out",
        ));
    }
    let wanted = job.release.as_ref().filter(|release| release.is_wanted());
    if wanted.is_some_and(|release| release.location().is_none()) {
        return Err(Problem::at(
            Code::InvalidJob,
            executors::POINTER,
            "an executor writes a release to a location; give `release` a `location`, or leave \
             `release` or `executor` out",
        ));
    }
    executors::check_job(&dataset.schema, &job.parse()?)
}

/// The submissions that a job reads.
fn which(job: &JobDefinition) -> Which<'_> {
    let listed = job.submissions.as_deref();
    listed.map_or(Which::Current, Which::Listed)
}

/// Refuses a job that would release a key of its rows unchanged.
///
/// Reads rows only until every column that is released unchanged has too many repeated values for a
/// key: about a tenth of the rows, or all rows if a column is a key or nearly a key.
///
/// # Errors
/// `unchanged_key`; `busy`; `dataset_deleted` where rows are deleted meanwhile.
async fn refuse_keys(
    app: &CallerApp,
    dataset: &StoredDataset,
    request: &JobRequest,
    plans: &[JobPlan],
    size: SubmissionsSize,
    job_bytes: u64,
) -> Result<(), ApiError> {
    let combination = request.sweep.combinations.first();
    let (Some(plan), Some(combination)) = (plans.first(), combination) else {
        return Ok(());
    };
    let job = combination.apply(&request.definition).parse()?;
    let schema = plan.schema(&dataset.schema);
    let counter = KeyCounter::new(schema, &job, size.rows);
    if counter.is_decided() || size.rows == 0 {
        return Ok(());
    }
    let which = which(&request.definition);
    // A few chunks never need more than the whole run, and the hashes need less than the text, of which the run
    // has several copies.
    let hashes = counter.bytes_needed(size.text_bytes);
    if request.executor.is_some() && hashes > job_bytes {
        // The job decides it when it reads its rows; it keeps a bounded number of values.
        return Ok(());
    }
    let bytes = hashes.saturating_add(CHUNK_BYTES).min(job_bytes);
    let check = UnchangedKeyCheck {
        schema: schema.clone(),
        rows: size.rows,
        job,
    };
    let organization = app.caller.organization;
    let guard = app.tables.begin(TableKind::Counted, organization, bytes);
    let guard = guard.await?;
    let (store, keys) = (&app.db, &app.keys);
    Ok(load_rows::refuse_keys(store, keys, dataset, which, check, guard.share()).await?)
}

/// Checks a job and queues it. The reservation is taken by the commit.
async fn insert_job(
    app: &CallerApp,
    request: &JobRequest,
    reservation: &mut Option<Reservation>,
) -> Result<IdempotentAnswer, ApiError> {
    let dataset = check_job(app, request).await?;
    let key = dataset.open_key(&app.keys)?;
    let new = NewJob {
        dataset: dataset.id,
        columns_revision: dataset.columns_revision,
        key: &key,
        definition: &request.sent,
        body_sha256: request.sha256,
        submissions: request.definition.submissions.as_deref(),
        quotas: app.limits.quotas,
        check: &|policy| policy.check_job(&request.definition, &dataset.schema),
    };
    match jobs::create(&app.db, &app.keys, app.caller, &new, reservation, queued).await? {
        JobCreation::Queued(answer) => {
            app.wake.notify_one();
            Ok(answer)
        }
        JobCreation::NoDataset => Err(no_dataset()),
        JobCreation::ColumnsChanged => Err(ApiError::new(
            Code::Conflict,
            "the columns of the dataset were changed while the job was checked; send it again",
        )),
        JobCreation::NoSubmission(index) => Err(Problem::at(
            Code::NotFound,
            format!("/submissions/{index}"),
            "the dataset has no such submission, or another has taken its place",
        )
        .into()),
        JobCreation::NoRows => Err(Problem::at(
            Code::InvalidJob,
            match new.submissions {
                Some(_) => "/submissions",
                None => "/dataset_id",
            },
            match new.submissions {
                Some([]) => "no submission is named; name one, or leave `submissions` out for all",
                _ => "there are no rows to anonymize; send a submission first",
            },
        )
        .into()),
        JobCreation::KeyTaken => Err(key_in_use()),
    }
}

/// A job of the caller's organization.
///
/// # Errors
/// `not_found`.
pub(super) async fn load_job(app: &CallerApp, id: JobId) -> Result<StoredJob, ApiError> {
    let job = jobs::load(&app.db, &app.keys, app.caller.organization, id).await?;
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
    if job.release.as_ref().is_some_and(JobRelease::is_wanted) {
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
