//! `/v1/releases`: anonymized tables are made and looked up.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::{JobId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::{Caller, Role};
use crate::store::JobStatus;
use crate::store::datasets::{self, Found, StoredDataset};
use crate::store::jobs::{self as stored_jobs, StoredJob};
use crate::store::releases::{self, NewRelease, StoredRelease, Viewer};
use crate::store::runs;
use crate::worker::records;
use crate::worker::release_packing::{self, Origin};
use crate::worker::{attempt, load_rows, on_thread};
use pais_anonymize::utility::Report;
use pais_anonymize::{AnonymizationRun, JobPlan, Unobserved};
use pais_core::definition::{CombinationQuery, Sweep};
use pais_core::definition::{DatasetId, JobDefinition};

use super::accept;
use super::bulk;
use super::report_page;
use super::{
    ApiError, AppState, Holder, HolderOrRecipient, JsonBody, Page, PageQuery, Parameters, Path,
    text,
};

/// A release that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseDefinition {
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
    /// After which of its steps; the last when omitted.
    #[serde(default)]
    pub step: Option<i64>,
    /// A name for people.
    #[serde(default)]
    pub name: Option<String>,
}

/// A release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReleaseDocument {
    /// Its id.
    pub id: ReleaseId,
    /// The job it comes from.
    pub job_id: JobId,
    /// The dataset it comes from.
    pub dataset_id: DatasetId,
    /// A name for people.
    pub name: Option<String>,
    /// The step it stands at; null for a method without steps.
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
    /// Of the CSV as served, hexadecimal; where there is one table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// A table of a release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TableDocument {
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
            sha256,
            created_at: release.created_at,
        }
    }
}

/// On whose behalf a caller looks at releases.
pub(super) fn viewer(caller: Caller) -> Viewer {
    match caller.role {
        Role::Holder => Viewer::Holder(caller.organization),
        Role::Admin | Role::Recipient | Role::Auditor => Viewer::Recipient(caller.organization),
    }
}

/// The releases' routes.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show))
        .routes(routes!(report))
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
        (status = 422, description = "`no_such_step`, `invalid_job`, `invalid_name`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    JsonBody(definition): JsonBody<ReleaseDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let name = definition.name.as_deref().map(text::name).transpose()?;
    let job = stored_jobs::load(&state.store, caller.organization, definition.job_id).await?;
    let job = job.ok_or_else(|| {
        Problem::at(
            Code::NotFound,
            "/job_id",
            "there is nothing here for this token; check the id",
        )
    })?;
    if job.status != JobStatus::Succeeded {
        let detail = format!(
            "the job is {}; only one that has succeeded has a table to release",
            job.status.as_str()
        );
        return Err(ApiError::new(Code::JobNotSucceeded, detail));
    }
    let dataset = match datasets::find_any(&state.store, caller.organization, job.dataset).await? {
        Some(Found::Live(dataset)) => *dataset,
        Some(Found::Deleted) | None => return Err(dataset_deleted()),
    };
    let step = definition.step.map(u32::try_from).transpose();
    let step =
        step.map_err(|_| Problem::at(Code::NoSuchStep, "/step", "steps are numbered from 0 on"))?;
    let stored = attempt::stored_job(&job.definition)?;
    let sweep = Sweep::new(&stored)?;
    let run = sweep.find(CombinationQuery {
        l: definition.l,
        k: definition.k,
        c: definition.c,
    })?;
    let asked = Asked {
        job: attempt::combination(&stored, &sweep, run)?,
        run: run as u32,
        step,
        name,
    };
    let release = prepare(&state, caller, &job, dataset, asked).await?;
    if !releases::create(&state.store, &release).await? {
        return Err(dataset_deleted());
    }
    let made = releases::load(&state.store, viewer(caller), release.id).await?;
    let made = made.ok_or_else(ApiError::not_found)?;
    let location = format!("/v1/releases/{}", made.id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(ReleaseDocument::from(made)),
    ))
}

fn dataset_deleted() -> ApiError {
    ApiError::new(
        Code::DatasetDeleted,
        "the job's dataset was deleted, and its rows with it; releases made before stay",
    )
}

/// Which table of a job is to be released.
struct Asked {
    /// The job under the combination.
    job: JobDefinition,
    /// The combination's number.
    run: u32,
    step: Option<u32>,
    name: Option<String>,
}

/// Runs the job's engine up to the step, and packs the verified table.
async fn prepare(
    state: &AppState,
    caller: Caller,
    job: &StoredJob,
    dataset: StoredDataset,
    asked: Asked,
) -> Result<NewRelease, ApiError> {
    let Asked {
        job: definition,
        run,
        step,
        name,
    } = asked;
    let store = &state.store;
    let key = load_rows::open_key(&state.keys, &dataset)?;
    let steps = runs::step_records(store, &key, job.id, run).await?;
    let steps = steps.into_iter().map(records::step_record);
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    if steps.is_empty() && JobPlan::new(&dataset.schema, &definition)?.has_steps() {
        let detail = "no generalization meets this combination; the job's `sweep` says why";
        return Err(ApiError::new(Code::JobNotSucceeded, detail));
    }
    if let Some(step) = step
        && !steps.iter().any(|record| record.item.step == step)
    {
        let detail = match steps.last() {
            Some(last) => format!("the job has steps 0 to {}", last.item.step),
            None => "the job has no steps; leave `step` out".to_owned(),
        };
        return Err(Problem::at(Code::NoSuchStep, "/step", detail).into());
    }
    let origin = Origin {
        organization: caller.organization,
        job: job.id,
        dataset: dataset.id,
        name,
        by: Some(caller.token),
        created_at: store.now(),
    };
    let place = bulk::place(bulk::Held::Raw).await?;
    let unobserved = Arc::new(Unobserved::default());
    let ids = Some(job.submissions.as_slice());
    let table = load_rows::load(store, &state.keys, &dataset, ids, unobserved).await?;
    let schema = dataset.schema;
    let release = on_thread(move || {
        let _place = place;
        let prepared = AnonymizationRun::new(schema, definition, table, &Unobserved::default())?;
        let release = prepared.release(&steps, step, &Unobserved::default())?;
        drop(prepared);
        release_packing::pack(release, origin)
    });
    Ok(release.await?)
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
    let rows = releases::list(&state.store, viewer(caller), page.after, page.limit + 1).await?;
    let rows = rows.into_iter().map(ReleaseDocument::from).collect();
    Ok(Json(Page::cut(rows, page, |row: &ReleaseDocument| {
        row.id.0
    })))
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
    let release = releases::load(&state.store, viewer(caller), id).await?;
    let release = release.ok_or_else(ApiError::not_found)?;
    Ok(Json(release.into()))
}

/// Fetch the utility and risk report of a release.
///
/// As JSON, or as a page for people where `Accept` prefers `text/html`.
#[utoipa::path(
    get, path = "/v1/releases/{id}/report", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 200, description = "The report", content((Report = "application/json"), (String = "text/html"))),
        (status = 406, description = "`not_acceptable`"),
    ),
)]
async fn report(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(id): Path<ReleaseId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let store = &state.store;
    let found = releases::report(store, viewer(caller), id).await?;
    let (owner, report) = found.ok_or_else(ApiError::not_found)?;
    let wants_page = accept::best(&headers, &["application/json", "text/html"])? == 1;
    let mut response = if wants_page {
        let release = releases::load(store, viewer(caller), id).await?;
        let release = release.ok_or_else(ApiError::not_found)?;
        report_page::page(&release.into(), &report)
    } else {
        Json(report).into_response()
    };
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("accept"));
    if caller.role == Role::Recipient {
        releases::record_fetch(store, caller, owner, id, "report").await?;
    }
    Ok(response)
}
