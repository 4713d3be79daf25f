//! `/v1/datasets`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pais_core::definition::{DatasetDefinition, DatasetId, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::api::extract::auth::Holder;
use crate::api::extract::body::WholeBody;
use crate::api::extract::content_type::require_json;
use crate::api::extract::parameters::{Parameters, Path};
use crate::api::page::Page;
use crate::api::page::PageQuery;
use crate::api::response::created::created;
use crate::api::state::AppState;
use crate::db::datasets::{Dataset, DatasetSummary};
use crate::service::dataset_changes::DatasetPatch;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, change, delete))
}

/// Declare a dataset.
#[utoipa::path(post, path = "/v1/datasets", tag = "datasets", request_body = DatasetDefinition,
    responses((status = 201, description = "Declared", body = Dataset,
        headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such taxonomy"),
        (status = 409, description = "`name_taken`"),
        (status = 422, description = "`invalid_schema`, `invalid_taxonomy`, `invalid_name`, `invalid_value`, `limit_exceeded`")))]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Response, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let definition: DatasetDefinition = json::parse(&body)?;
        // Even a small definition may name large trees.
        let service = state.of(caller);
        let create = async move || {
            let dataset = service.create_dataset(caller, definition).await?;
            let path = format!("/v1/datasets/{}", dataset.id);
            Ok(created(path, dataset).into_response())
        };
        state.unscoped().documents.load(create).await?
    })
    .await
}

/// List datasets without their columns, oldest first.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<DatasetSummary>)))]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<DatasetSummary>>, ApiError> {
    let datasets = state
        .of(caller)
        .list_datasets(caller, query.parse()?)
        .await?;
    Ok(Json(datasets.into()))
}

/// Look up a dataset: its schema, number of rows, and latest submissions.
#[utoipa::path(get, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 200, description = "The dataset", body = Dataset)))]
async fn get(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<Json<Dataset>, ApiError> {
    Ok(Json(state.of(caller).get_dataset(caller, id).await?))
}

/// Change a dataset.
///
/// Columns change by name: roles, except to and from `identifier` and `subject`, taxonomies, words
/// for missing and ranges, as long as the stored rows fit. Releases stay; later jobs use the
/// changed columns.
#[utoipa::path(patch, path = "/v1/datasets/{id}", tag = "datasets", request_body = DatasetPatch,
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 200, description = "The changed dataset", body = Dataset),
        (status = 409, description = "`conflict`: the rows would have to be read again, or do not fit, or jobs or uploads of the dataset are under way"),
        (status = 422, description = "`invalid_schema`, `invalid_taxonomy`, `invalid_value`, `limit_exceeded`")))]
async fn change(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Json<Dataset>, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let patch: DatasetPatch = json::parse(&body)?;
        Ok(Json(
            state.of(caller).change_dataset(caller, id, patch).await?,
        ))
    })
    .await
}

/// Delete a dataset.
///
/// Its jobs are cancelled, and its rows are unrecoverable from then on; releases stay.
#[utoipa::path(delete, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "`legal_hold`: nothing of the dataset is deleted for now")))]
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<StatusCode, ApiError> {
    state.of(caller).delete_dataset(caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
