//! `/v1/releases`: anonymized tables are created, listed and reported on.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use pais_anonymize::utility::Report;
use pais_core::codebook::Codebook;
use pais_core::definition::{CombinationQuery, DatasetId, Objective, Recoding, SuppressionFor};
use pais_core::model::MissingSensitive;
use pais_core::warning::Warning;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::releases::StoredRelease;
use crate::db::withdrawals::Withdrawal;
use crate::ids::{JobId, ReleaseId};
use crate::service::releases::ReleaseRequest;

use super::error::ApiError;
use super::extract::headers::best;
use super::extract::{Holder, HolderOrRecipient, JsonBody, Parameters, Path};
use super::page::{Page, PageQuery};
use super::response::{created, html_document};
use super::state::AppState;

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
pub struct ReleaseDocument {
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
            suppression_for: release.readings.suppression_for,
            missing_sensitive: Some(release.readings.missing_sensitive),
            warnings: release.warnings,
            sha256,
            codebook: release.codebook,
            purpose: release.purpose,
            created_at: release.created_at,
            withdrawn: release.withdrawn,
        }
    }
}

/// The report of a release. What needs raw rows is for the holder only.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReportDocument {
    /// The figures.
    #[serde(flatten)]
    pub report: Report,
    /// What a reader should know about the release.
    pub warnings: Vec<Warning>,
}

/// The routes of releases.
pub(super) fn routes() -> OpenApiRouter<AppState> {
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
        (status = 422, description = "`no_such_step`, `invalid_job`, `invalid_name`; `below_policy`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    JsonBody(definition, _memory): JsonBody<ReleaseDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let request = ReleaseRequest {
        job: definition.job_id,
        combination: CombinationQuery {
            l: definition.l,
            k: definition.k,
            c: definition.c,
            recoding: definition.recoding,
            objective: definition.objective,
        },
        step: definition.step,
        name: definition.name,
    };
    let release = state.of(caller).create_release(caller, request).await?;
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
    let releases = state
        .of(caller)
        .list_releases(caller, query.parse()?)
        .await?;
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
    let release = state.of(caller).get_release(caller, id).await?;
    Ok(Json(release.into()))
}

/// Fetch the utility and risk report of a release.
///
/// As JSON, or as a page for people where `Accept` prefers `text/html`.
#[utoipa::path(
    get, path = "/v1/releases/{id}/report", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 200, description = "The report", content((ReportDocument = "application/json"), (String = "text/html"))),
        (status = 406, description = "`not_acceptable`"),
        (status = 410, description = "`withdrawn`"),
    ),
)]
async fn report(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(id): Path<ReleaseId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let service = state.of(caller);
    let wants_page = best(&headers, &["application/json", "text/html"])? == 1;
    let (owner, mut response) = if wants_page {
        let (owner, page) = service.get_report_page(caller, id).await?;
        (owner, html_document(page.render()))
    } else {
        let (owner, report) = service.get_report(caller, id).await?;
        (owner, Json(report).into_response())
    };
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("accept"));
    service.record_fetch(caller, owner, id, "report").await?;
    Ok(response)
}
