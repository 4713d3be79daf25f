//! `/v1/datasets`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::{Code, Problem};
use crate::store::datasets::{self, Dataset};
use crate::store::taxonomies;
use pais_core::definition::TaxonomyNode;
use pais_core::definition::{DatasetDefinition, DatasetId, TaxonomyId, TaxonomyReference};
use pais_core::schema::Schema;
use pais_core::taxonomy::Tree;

use super::{
    ApiError, AppState, Holder, HttpLimits, JsonBody, Page, PageQuery, Parameters, Path, text,
};

/// Longest retention: a century.
const RETENTION_DAYS: i64 = 36_500;

/// Longest description, in bytes.
const DESCRIPTION_BYTES: usize = 10_000;

/// The routes of this resource.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, delete))
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
    JsonBody(mut definition): JsonBody<DatasetDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    definition.name = text::name(&definition.name)?;
    check(&definition, state.limits)?;
    let ids = named_taxonomies(&definition);
    let roots = taxonomies::roots(&state.store, caller.organization, &ids).await?;
    let trees = trees(&roots, state.limits)?;
    Schema::resolve(&definition, state.limits.taxonomy, |id| {
        trees.get(&id).cloned()
    })?;

    let id = DatasetId::new();
    let wrapped_key = state.keys.new_data_key(id)?;
    let made = datasets::create(&state.store, caller, id, definition, roots, wrapped_key)
        .await?
        .ok_or_else(|| text::name_taken("a dataset"))?;
    let location = format!("/v1/datasets/{id}");
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(made),
    ))
}

/// What of a definition does not depend on its columns' fitting together.
fn check(definition: &DatasetDefinition, limits: HttpLimits) -> Result<(), Problem> {
    let description = definition.description.as_deref();
    text::free("/description", description, DESCRIPTION_BYTES)?;
    if let Some(days) = definition.retention_days
        && !(1..=RETENTION_DAYS).contains(&days)
    {
        return Err(Problem::at(
            Code::InvalidValue,
            "/retention_days",
            format!("`retention_days` is a number from 1 to {RETENTION_DAYS}"),
        ));
    }
    if definition.columns.len() > limits.columns {
        return Err(Problem::at(
            Code::LimitExceeded,
            "/columns",
            format!(
                "a dataset has at most {} columns (limits.columns)",
                limits.columns
            ),
        ));
    }
    Ok(())
}

fn named_taxonomies(definition: &DatasetDefinition) -> Vec<TaxonomyId> {
    let named = definition
        .columns
        .iter()
        .filter_map(|column| match column.taxonomy {
            Some(TaxonomyReference::Id(id)) => Some(id),
            Some(TaxonomyReference::Inline(_)) | None => None,
        });
    named.collect()
}

fn trees(
    roots: &HashMap<TaxonomyId, TaxonomyNode>,
    limits: HttpLimits,
) -> Result<HashMap<TaxonomyId, Arc<Tree>>, Problem> {
    let tree = |(&id, root)| {
        let tree = Tree::new(root, limits.taxonomy).map_err(|error| {
            Problem::new(Code::LimitExceeded, format!("taxonomy {id}: {error}"))
        })?;
        Ok((id, Arc::new(tree)))
    };
    roots.iter().map(tree).collect()
}

/// List datasets, oldest first.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Dataset>)))]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Dataset>>, ApiError> {
    let page = query.parse()?;
    let organization = caller.organization;
    let rows = datasets::list(&state.store, organization, page.after, page.limit + 1).await?;
    Ok(Json(Page::cut(rows, page, |row| row.id.0)))
}

/// Look up a dataset: its schema, number of rows, and submissions.
#[utoipa::path(get, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 200, description = "The dataset", body = Dataset)))]
async fn get(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<Json<Dataset>, ApiError> {
    let found = datasets::find(&state.store, caller.organization, id).await?;
    found.map(Json).ok_or_else(ApiError::not_found)
}

/// Delete a dataset.
///
/// Its jobs are cancelled, and its rows are unrecoverable from then on; releases stay.
#[utoipa::path(delete, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 204, description = "Deleted")))]
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<StatusCode, ApiError> {
    if !datasets::delete(&state.store, caller, id).await? {
        return Err(ApiError::not_found());
    }
    state.wake.notify_waiters();
    Ok(StatusCode::NO_CONTENT)
}
