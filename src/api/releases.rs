//! `/v1/releases`: a job's table after a step is released; releases are listed.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use pais_anonymize::{AnonymizationRun, JobPlan, StepRecord};
use pais_core::codebook::Codebook;
use pais_core::definition::{
    CombinationQuery, DatasetId, JobDefinition, Objective, Recoding, SuppressionFor, Sweep,
};
use pais_core::model::MissingSensitive;
use pais_core::warning::Warning;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::audit::Action;
use crate::db::datasets::{self, DatasetState, StoredDataset};
use crate::db::jobs::{self, StoredJob};
use crate::db::releases::{self, NewRelease, ReleaseCreation, StoredRelease, Viewer, Withdrawal};
use crate::db::runs::SweepRow;
use crate::db::{JobStatus, Store, policies, runs, submissions};
use crate::engine::records::{SweepItem, SweepStatus};
use crate::engine::release_packing::{self, ReleaseOrigin};
use crate::engine::table_work::TableKind;
use crate::engine::{attempt, load_rows, on_thread};
use crate::ids::{JobId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::{Caller, Role};

use super::error::ApiError;
use super::extract::{Holder, HolderOrRecipient, JsonBody, Parameters, Path};
use super::page::{Page, PageQuery};

use super::response::created;
use super::state::{App, AppState};
use super::text;

/// A release that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseDefinition {
    /// A job that has succeeded.
    pub job_id: JobId,
    /// *L* of the combination, where the job is a sweep over it.
    #[serde(default)]
    pub l: Option<f64>,
    /// *K* of the combination, where the job is a sweep over it.
    #[serde(default)]
    pub k: Option<f64>,
    /// *C* of the combination, where the job is a sweep over it.
    #[serde(default)]
    pub c: Option<f64>,
    /// Recoding of the combination, where the job is a sweep over both.
    #[serde(default)]
    pub recoding: Option<Recoding>,
    /// Objective of the combination, where the job is a sweep over several.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// After which of its steps; the last when omitted.
    #[serde(default, deserialize_with = "pais_core::definition::whole::option")]
    #[schema(minimum = 0)]
    pub step: Option<i64>,
    /// A name for people.
    #[serde(default)]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    pub name: Option<String>,
}

/// A release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReleaseDocument {
    /// Its id.
    pub id: ReleaseId,
    /// The job it comes from.
    pub job_id: JobId,
    /// The dataset it comes from.
    pub dataset_id: DatasetId,
    /// A name for people.
    pub name: Option<String>,
    /// The step after which the table was released; null for a method without steps.
    pub step: Option<u32>,
    /// Rows released.
    pub rows: u64,
    /// Rows left out.
    pub suppressed_rows: u64,
    /// Its tables: `data`; or `qit` and one `st_<column>` a sensitive column.
    #[schema(value_type = Vec<TableDocument>)]
    pub tables: Value,
    /// The privacy model with its parameters.
    #[schema(value_type = Object)]
    pub privacy: Value,
    /// Column to the labels of its cut; with global recoding only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, Vec<String>>>)]
    pub cut: Option<Value>,
    /// What the verifier found.
    #[schema(value_type = Object)]
    pub verification: Value,
    /// What rows could be suppressed for; absent where none could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppression_for: Option<SuppressionFor>,
    /// How missing sensitive cells count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_sensitive: Option<MissingSensitive>,
    /// What a reader should know about it.
    pub warnings: Vec<Warning>,
    /// Of the CSV as served, hexadecimal; where there is one table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What resolves its labels: columns, roles, and the taxonomies above the cut. Absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Codebook>)]
    pub codebook: Option<Value>,
    /// The purpose of the grant, for a recipient; absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Since when and why the release is withdrawn; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawal>,
}

/// A table of a release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TableDocument {
    /// `data`, `qit` or `st_<column>`.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Of the CSV as served, hexadecimal.
    pub sha256: String,
    /// Size of the CSV as served.
    pub bytes: u64,
}

impl From<StoredRelease> for ReleaseDocument {
    fn from(release: StoredRelease) -> Self {
        let sha256 = match release.tables.as_array().map(Vec::as_slice) {
            Some([table]) => table["sha256"].as_str().map(str::to_owned),
            _ => None,
        };
        Self {
            id: release.id,
            job_id: release.job,
            dataset_id: release.dataset,
            name: release.name,
            step: release.step,
            rows: release.rows,
            suppressed_rows: release.suppressed_rows,
            tables: release.tables,
            privacy: release.privacy,
            cut: release.cut,
            verification: release.verification,
            suppression_for: release.model_options.suppression_for,
            missing_sensitive: Some(release.model_options.missing_sensitive),
            warnings: release.warnings,
            sha256,
            codebook: release.codebook,
            purpose: release.purpose,
            created_at: release.created_at,
            withdrawn: release.withdrawn,
        }
    }
}

/// The routes of releases.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show))
}

/// Make a release of a job's table as it stood after a step.
#[utoipa::path(
    post, path = "/v1/releases", tag = "releases",
    request_body = ReleaseDefinition,
    responses(
        (status = 201, description = "Made", body = ReleaseDocument,
         headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such job"),
        (status = 409, description = "`job_not_succeeded`, `dataset_deleted`"),
        (status = 422, description = "`no_such_step`, `invalid_job`, `invalid_name`; `below_policy`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    JsonBody(definition, _memory): JsonBody<ReleaseDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let release = create_release(&state.of(caller), caller, definition).await?;
    let path = format!("/v1/releases/{}", release.id);
    Ok(created(path, ReleaseDocument::from(release)))
}

/// List releases, oldest first: a holder's own, or those granted to a recipient.
#[utoipa::path(
    get, path = "/v1/releases", tag = "releases", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<ReleaseDocument>)),
)]
async fn list(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<ReleaseDocument>>, ApiError> {
    let page = query.parse()?;
    let limit = page.rows_to_query();
    let rows = releases::list(&state.db(caller), viewer(caller), page.after, limit).await?;
    let releases = Page::new(rows, page, |release| release.id.0);
    Ok(Json(releases.map(ReleaseDocument::from)))
}

/// Look up a release.
#[utoipa::path(
    get, path = "/v1/releases/{id}", tag = "releases",
    params(("id" = ReleaseId, Path, description = "Its id")),
    responses(
        (status = 200, description = "The release", body = ReleaseDocument),
    ),
)]
async fn show(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(id): Path<ReleaseId>,
) -> Result<Json<ReleaseDocument>, ApiError> {
    let release = load_release(&state.db(caller), caller, id).await?;
    Ok(Json(release.into()))
}

/// The table of a job that is to be released.
struct TableToRelease {
    /// The job with the parameters of the combination.
    definition: JobDefinition,
    /// The number of the combination.
    run: u32,
    step: Option<u32>,
    name: Option<String>,
}

/// Makes a release of a job's table.
///
/// # Errors
/// `not_found`; `job_not_succeeded`; `dataset_deleted`; `no_such_step`; `invalid_job` if the
/// request names no combination of the sweep; `invalid_name`; `busy`.
async fn create_release(
    app: &App,
    caller: Caller,
    request: ReleaseDefinition,
) -> Result<StoredRelease, ApiError> {
    app.storage.check()?;
    let name = request.name.as_deref().map(text::name).transpose()?;
    let job = jobs::load(&app.db, &app.keys, caller.organization, request.job_id).await?;
    let job = job.ok_or_else(|| ApiError::not_found_at("/job_id"))?;
    if job.status != JobStatus::Succeeded {
        let detail = format!(
            "the job is {}; only a job that has succeeded has a table to release",
            job.status.as_str()
        );
        return Err(ApiError::new(Code::JobNotSucceeded, detail));
    }
    let organization = caller.organization;
    let dataset = match datasets::find_any(&app.db, organization, job.dataset).await? {
        Some(DatasetState::Live(dataset)) => *dataset,
        Some(DatasetState::Deleted) | None => return Err(dataset_deleted()),
    };
    let step = request.step.map(u32::try_from).transpose();
    let step = step.map_err(|_| {
        Problem::at(
            Code::NoSuchStep,
            "/step",
            "expected the number of a step; the first is 0",
        )
    })?;
    let stored = attempt::stored_job(&job.definition)?;
    let sweep = Sweep::new(&stored)?;
    let run = sweep.find(CombinationQuery {
        l: request.l,
        k: request.k,
        c: request.c,
        recoding: request.recoding,
        objective: request.objective,
    })?;
    let definition = attempt::combination(&stored, &sweep, run)?;
    // The policy may be stricter than when the job was created.
    let policy = policies::load(&app.db, caller.organization).await?;
    let allowed = policy.check_job(&definition, &dataset.schema);
    let allowed =
        allowed.map_err(|problem| Problem::at(problem.code, "/job_id", problem.detail).into());
    app.recorded(caller, Action::ReleaseCreated, request.job_id.0, allowed)
        .await?;
    let table = TableToRelease {
        definition,
        run: run as u32,
        step,
        name,
    };
    let release = prepare_release(app, caller, &job, dataset, table).await?;
    match releases::create(&app.db, &release).await? {
        ReleaseCreation::Stored => {}
        ReleaseCreation::NoDataset => return Err(dataset_deleted()),
        ReleaseCreation::TokenEnded => return Err(ApiError::unauthenticated()),
    }
    load_release(&app.db, caller, release.id).await
}

/// Replays the recorded steps up to the requested one, verifies the table, and packs it.
async fn prepare_release(
    app: &App,
    caller: Caller,
    job: &StoredJob,
    dataset: StoredDataset,
    table: TableToRelease,
) -> Result<NewRelease, ApiError> {
    let TableToRelease {
        definition,
        run,
        step,
        name,
    } = table;
    let store = &app.db;
    let key = load_rows::open_key(&app.keys, &dataset)?;
    let steps = runs::step_records(store, &key, job.id, run).await?;
    let job_to_run = definition.parse()?;
    let plan = JobPlan::new(&dataset.schema, &job_to_run)?;
    // The one row of a sweep from this combination on; none for a job without lists.
    let combinations = runs::sweep(store, job.id, run, 1).await?;
    let failed =
        |row: &SweepRow<SweepItem>| row.run == run && row.item.status == SweepStatus::Failed;
    if combinations.iter().any(failed) {
        let detail =
            "no generalization meets this combination; `GET /v1/jobs/{id}/sweep` has the reason";
        return Err(ApiError::new(Code::JobNotSucceeded, detail));
    }
    check_step(&steps, step)?;
    let origin = ReleaseOrigin {
        organization: caller.organization,
        holder: load_rows::holder(store, caller.organization).await?,
        job: job.id,
        dataset: dataset.id,
        definition: dataset.definition.clone(),
        name,
        by: caller.into(),
        created_at: store.now(),
    };
    let ids = Some(job.submissions.as_slice());
    let size = submissions::size(store, dataset.id, ids).await?;
    let plans = [plan];
    let needed = app
        .limits
        .table_bytes(&app.memory, &dataset.schema, &plans, size)?;
    let organization = caller.organization;
    let guard = app.tables.begin(TableKind::Raw, organization, needed);
    let guard = guard.await?;
    let work = guard.share();
    let table = load_rows::load(store, &app.keys, &dataset, ids, work.clone()).await?;
    let schema = dataset.schema;
    let order_key = key.order_key();
    let release = on_thread(move || {
        let run = AnonymizationRun::new(schema, job_to_run, table, &*work)?;
        let run = run.with_order_key(order_key);
        let found = run.search_recorded(steps, &*work)?;
        let release = run.release(&found, step, &*work)?;
        let schema = run.schema();
        drop(run);
        release_packing::pack(release, origin, &definition, &schema, &key)
    });
    let release = release.await?;
    drop(guard);
    Ok(release)
}

/// A release that the caller may see.
///
/// # Errors
/// `not_found`.
pub(super) async fn load_release(
    db: &Store,
    caller: Caller,
    id: ReleaseId,
) -> Result<StoredRelease, ApiError> {
    let release = releases::load(db, viewer(caller), id).await?;
    release.ok_or_else(ApiError::not_found)
}

/// As whom a caller reads releases.
pub(super) fn viewer(caller: Caller) -> Viewer {
    match caller.role {
        Role::Holder => Viewer::Holder(caller.organization),
        Role::Admin | Role::Recipient | Role::Auditor => Viewer::Recipient(caller.organization),
    }
}

fn check_step(steps: &[StepRecord], step: Option<u32>) -> Result<(), Problem> {
    let Some(step) = step else { return Ok(()) };
    if steps.iter().any(|record| record.item.step == step) {
        return Ok(());
    }
    let detail = match steps.last() {
        Some(last) => format!("the job has steps 0 to {}", last.item.step),
        None => "the job has no steps; leave `step` out".to_owned(),
    };
    Err(Problem::at(Code::NoSuchStep, "/step", detail))
}

fn dataset_deleted() -> ApiError {
    ApiError::new(
        Code::DatasetDeleted,
        "the job's dataset was deleted with its rows; only earlier releases remain",
    )
}
