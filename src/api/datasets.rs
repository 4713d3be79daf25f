//! `/v1/datasets`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{
    DatasetDefinition, DatasetId, TaxonomyId, TaxonomyNode, TaxonomyReference, json,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::{Tree, TreeLimits};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::datasets::{
    self, Dataset, DatasetCreation, DatasetSummary, NewDataset, StoredDataset,
};
use crate::db::{RowScope, deletion, taxonomies};
use crate::jobs::upkeep::reclaim_space;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::error::ApiError;
use super::extract::headers::require_json;
use super::extract::{Holder, Parameters, Path, WholeBody};
use super::legal_holds::deleted;
use super::limits::Limits;
use super::page::{Page, PageQuery};
use super::response::created;
use super::state::{App, AppState};
use super::text;

/// Maximum retention: a century.
const RETENTION_DAYS: i64 = 36_500;

/// How long the deletion of a dataset waits until its rows are removed.
const REMOVAL_WAIT: Duration = Duration::from_secs(5);

/// Maximum length of a description, in characters.
const DESCRIPTION_LENGTH: usize = 10_000;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
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
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Response, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let definition: DatasetDefinition = json::parse(&body)?;
        // Even a small definition may name large trees.
        let app = state.of(caller);
        let create = async move || {
            let dataset = create_dataset(&app, caller, definition).await?;
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
    let page = query.parse()?;
    let (db, organization) = (state.db(caller), caller.organization);
    let rows = datasets::list(&db, organization, page.after, page.rows_to_query()).await?;
    Ok(Json(Page::new(rows, page, |dataset| dataset.id.0)))
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
    Ok(Json(get_dataset(&state.of(caller), caller, id).await?))
}

/// Delete a dataset.
///
/// Its jobs are cancelled, and its rows cannot be recovered; releases stay.
#[utoipa::path(delete, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "`legal_hold`: nothing of the dataset is deleted for now")))]
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<StatusCode, ApiError> {
    let app = state.of(caller);
    // The key of the dataset is destroyed at once; the reserve is used if the disk is full.
    app.storage.make_room();
    deleted(deletion::delete_dataset(&app.db, caller, id).await?)?;
    app.wake.notify_waiters();
    // Also what is left of other organizations.
    let store = app.db.within(RowScope::Service);
    let storage = app.storage.clone();
    let removal = tokio::spawn(async move {
        if let Err(error) = reclaim_space(&store, &storage).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the rows of deleted datasets could not be removed; this is tried again"
            );
        }
    });
    // What is not removed in this time is removed in the background.
    let _ = tokio::time::timeout(REMOVAL_WAIT, removal).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Declares a dataset.
///
/// # Errors
/// A definition that is invalid or exceeds a limit; a taxonomy that does not exist;
/// `name_taken`; when the database fails.
async fn create_dataset(
    app: &App,
    caller: Caller,
    mut definition: DatasetDefinition,
) -> Result<Dataset, ApiError> {
    definition.name = text::name(&definition.name)?;
    check_definition(&definition, &app.limits)?;
    let ids = referenced_taxonomies(&definition);
    let roots = taxonomies::roots(&app.db, caller.organization, &ids).await?;
    let limits = app.limits.taxonomy;
    let trees = trees(&roots, limits)?;
    let schema = Schema::resolve(&definition, limits, |id| trees.get(&id).cloned())?;

    let id = DatasetId::new();
    let new = NewDataset {
        id,
        definition,
        trees: roots,
        wrapped_key: app.keys.new_data_key(id)?,
        warnings: schema.warnings(),
    };
    match datasets::create(&app.db, &app.keys, caller, new).await? {
        DatasetCreation::Created => get_dataset(app, caller, id).await,
        DatasetCreation::NameTaken => Err(text::name_taken("a dataset").into()),
        DatasetCreation::TaxonomyDeleted => Err(ApiError::new(
            Code::NotFound,
            "a taxonomy that the definition names was deleted",
        )),
    }
}

/// A dataset of the caller's organization, with its latest submissions.
///
/// # Errors
/// `not_found`.
pub(crate) async fn get_dataset(
    app: &App,
    caller: Caller,
    id: DatasetId,
) -> Result<Dataset, ApiError> {
    let dataset = datasets::find(&app.db, &app.keys, caller.organization, id).await?;
    dataset.ok_or_else(ApiError::not_found)
}

/// A dataset of the caller's organization, with its schema and its wrapped key.
///
/// # Errors
/// `not_found`.
pub(crate) async fn load(
    app: &App,
    caller: Caller,
    id: DatasetId,
) -> Result<StoredDataset, ApiError> {
    let db = app.db.clone();
    let load = async move || datasets::load(&db, caller.organization, id).await;
    let dataset = app.documents.load(load).await??;
    dataset.ok_or_else(ApiError::not_found)
}

/// Checks everything about a definition except its columns, which [`Schema::resolve`] checks.
pub(crate) fn check_definition(
    definition: &DatasetDefinition,
    limits: &Limits,
) -> Result<(), Problem> {
    let description = definition.description.as_deref();
    text::check_length("/description", description, DESCRIPTION_LENGTH)?;
    for (field, days) in [
        ("retention_days", definition.retention_days),
        (
            "submission_retention_days",
            definition.submission_retention_days,
        ),
    ] {
        if days.is_some_and(|days| !(1..=RETENTION_DAYS).contains(&days)) {
            return Err(Problem::at(
                Code::InvalidValue,
                format!("/{field}"),
                format!("`{field}` must be a number from 1 to {RETENTION_DAYS}"),
            ));
        }
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

/// The taxonomies that a definition refers to by id.
pub(crate) fn referenced_taxonomies(definition: &DatasetDefinition) -> Vec<TaxonomyId> {
    let columns = definition.columns.iter();
    let ids = columns.filter_map(|column| match column.taxonomy {
        Some(TaxonomyReference::Id(id)) => Some(id),
        Some(TaxonomyReference::Generated(_) | TaxonomyReference::Inline(_)) | None => None,
    });
    ids.collect()
}

/// Builds the trees of stored taxonomies. The limits may have been lowered since they were stored.
pub(crate) fn trees(
    roots: &HashMap<TaxonomyId, TaxonomyNode>,
    limits: TreeLimits,
) -> Result<HashMap<TaxonomyId, Arc<Tree>>, Problem> {
    let tree = |(&id, root)| {
        let tree = Tree::new(root, limits).map_err(|error| {
            Problem::new(Code::LimitExceeded, format!("taxonomy {id}: {error}"))
        })?;
        Ok((id, Arc::new(tree)))
    };
    roots.iter().map(tree).collect()
}
