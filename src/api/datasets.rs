//! `/v1/datasets`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{
    DatasetDefinition, DatasetId, TaxonomyId, TaxonomyNode, TaxonomyReference, json,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::Tree;
use pais_io::read::{TextFormat, TextParameters};

use crate::db::datasets::{self, Dataset, DatasetSummary, NewDataset, StoredDataset};
use crate::db::{deletion, taxonomies};
use crate::ids::OrganizationId;
use crate::problem::{Code, Problem};
use crate::roles::Role;

use super::error::ApiError;
use super::extract::headers::require_json;
use super::extract::{Holder, Parameters, Path, Staff, WholeBody};
use super::legal_holds::deleted;
use super::limits::Limits;
use super::located_datasets::{ResolvedDataset, check_created, create_located};
use super::page::{Page, PageQuery};
use super::removal::after_deletion;
use super::response::created;
use super::state::CallerApp;
use super::text;

/// Maximum retention: a century.
const RETENTION_DAYS: i64 = 36_500;

/// Maximum length of a description, in characters.
const DESCRIPTION_LENGTH: usize = 10_000;

/// Declare a dataset
///
/// With a `location`, the Parquet files there are read in the order of their paths and checked as a
/// submission is: the rows are encrypted and stored before the response is sent. A refused file is named in
/// `detail`, and nothing is stored. No submissions are sent to such a dataset.
#[utoipa::path(post, path = "/v1/datasets", tag = "datasets", request_body = DatasetDefinition,
    responses((status = 201, description = "Declared", body = Dataset,
        headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such taxonomy"),
        (status = 409, description = "`name_taken`"),
        (status = 422, description = "`invalid_schema`, `invalid_taxonomy`, `invalid_name`, `invalid_value`, `limit_exceeded`; `location_not_granted`; of the files at a location: `invalid_header`, `invalid_cells`, `empty_submission`"),
        (status = 503, description = "`location_unavailable`")))]
pub(super) async fn create(
    Holder(app): Holder,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Response, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let definition: DatasetDefinition = json::parse(&body)?;
        // Even a small definition may name large trees.
        let documents = app.documents.clone();
        let caller = app.clone();
        let resolving = async move || resolve(&caller, definition).await;
        let resolved = documents.load(resolving).await??;
        let id = resolved.new.id;
        match resolved.new.definition.location.clone() {
            Some(location) => create_located(&app, resolved, &location).await?,
            None => {
                let new = datasets::create(&app.db, &app.keys, app.caller, resolved.new);
                check_created(new.await?)?;
            }
        }
        let show = async move || {
            let dataset = get_dataset(&app, id).await?;
            let path = format!("/v1/datasets/{}", dataset.id);
            Ok(created(path, dataset).into_response())
        };
        documents.load(show).await?
    })
    .await
}

/// List datasets without their columns, oldest first.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<DatasetSummary>)))]
pub(super) async fn list(
    Staff(app): Staff,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<DatasetSummary>>, ApiError> {
    let page = query.parse()?;
    let organization = app.caller.organization;
    let rows = datasets::list(&app.db, organization, page.after, page.rows_to_query()).await?;
    Ok(Json(Page::new(rows, page, |dataset| dataset.id.0)))
}

/// Look up a dataset: its schema, number of rows, and latest submissions.
///
/// An officer sees how many submissions there are, but none of them.
#[utoipa::path(get, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 200, description = "The dataset", body = Dataset)))]
pub(super) async fn get(
    Staff(app): Staff,
    Path(id): Path<DatasetId>,
) -> Result<Json<Dataset>, ApiError> {
    let caller = app.clone();
    let load = async move || get_dataset(&caller, id).await;
    let mut dataset = app.documents.load(load).await??;
    if app.caller.role == Role::Officer {
        // The submissions and their hashes are only for the holder.
        dataset.submissions.clear();
    }
    Ok(Json(dataset))
}

/// Delete a dataset.
///
/// Its jobs are cancelled, and its rows cannot be recovered; releases stay.
#[utoipa::path(delete, path = "/v1/datasets/{id}", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "`legal_hold`: nothing of the dataset is deleted for now")))]
pub(super) async fn delete(
    Holder(app): Holder,
    Path(id): Path<DatasetId>,
) -> Result<StatusCode, ApiError> {
    // The key of the dataset is destroyed at once; the reserve is used if the disk is full.
    app.storage.make_room();
    deleted(deletion::delete_dataset(&app.db, app.caller, id).await?)?;
    after_deletion(&app).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks and resolves a definition.
///
/// # Errors
/// A definition that is invalid or exceeds a limit; a taxonomy that does not exist; when the database fails.
async fn resolve(
    app: &CallerApp,
    mut definition: DatasetDefinition,
) -> Result<ResolvedDataset, ApiError> {
    app.storage.check()?;
    definition.name = text::name(&definition.name)?;
    check_definition(&definition, &app.limits)?;
    let taxonomies = NamedTaxonomies::load(app, &definition).await?;
    let tree = |id| taxonomies.trees.get(&id).cloned();
    let schema = Schema::resolve(&definition, app.limits.taxonomy, tree)?;
    let id = DatasetId::new();
    let new = NewDataset {
        id,
        definition,
        trees: taxonomies.roots,
        wrapped_key: app.keys.new_data_key(id)?,
        warnings: schema.warnings(),
    };
    Ok(ResolvedDataset { new, schema })
}

/// A dataset of the caller's organization, with its latest submissions.
///
/// # Errors
/// `not_found`.
pub(crate) async fn get_dataset(app: &CallerApp, id: DatasetId) -> Result<Dataset, ApiError> {
    let dataset = datasets::find(&app.db, &app.keys, app.caller.organization, id).await?;
    dataset.ok_or_else(ApiError::not_found)
}

/// A dataset of the caller's organization, with its schema and its wrapped key.
///
/// # Errors
/// `not_found`.
pub(super) async fn load(app: &CallerApp, id: DatasetId) -> Result<StoredDataset, ApiError> {
    let dataset = find(app, app.caller.organization, id).await?;
    dataset.ok_or_else(ApiError::not_found)
}

/// A dataset of an organization, as [`load`]; `None` if it has no such dataset.
///
/// # Errors
/// When the database fails.
pub(super) async fn find(
    app: &CallerApp,
    owner: OrganizationId,
    id: DatasetId,
) -> Result<Option<StoredDataset>, ApiError> {
    let db = app.db.clone();
    let load = async move || datasets::load(&db, owner, id).await;
    Ok(app.documents.load(load).await??)
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
    text_format(definition)?;
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

/// The default text format of submissions.
///
/// # Errors
/// `invalid_shape` for parts of another form, `invalid_value` for those that contradict each other.
pub(super) fn text_format(definition: &DatasetDefinition) -> Result<TextParameters, Problem> {
    let Some(format) = &definition.format else {
        return Ok(TextParameters::default());
    };
    let declared = TextParameters::try_from(format);
    let declared = declared.and_then(|declared| declared.format(TextFormat::CSV).map(|_| declared));
    declared.map_err(|error| Problem::of_declared_format(&error))
}

/// The taxonomies that a definition refers to by id.
pub(super) struct NamedTaxonomies {
    /// As they are stored.
    pub(super) roots: HashMap<TaxonomyId, TaxonomyNode>,
    /// With their trees.
    pub(super) trees: HashMap<TaxonomyId, Arc<Tree>>,
}

impl NamedTaxonomies {
    /// Loads them. The limits may have been lowered since they were stored.
    ///
    /// # Errors
    /// `limit_exceeded`; when the database fails.
    pub(super) async fn load(
        app: &CallerApp,
        definition: &DatasetDefinition,
    ) -> Result<Self, ApiError> {
        let columns = definition.columns.iter();
        let ids = columns.filter_map(|column| match column.taxonomy {
            Some(TaxonomyReference::Id(id)) => Some(id),
            Some(TaxonomyReference::Generated(_) | TaxonomyReference::Inline(_)) | None => None,
        });
        let ids: Vec<TaxonomyId> = ids.collect();
        let roots = taxonomies::roots(&app.db, app.caller.organization, &ids).await?;
        let tree = |(&id, root)| {
            let tree = Tree::new(root, app.limits.taxonomy).map_err(|error| {
                Problem::new(Code::LimitExceeded, format!("taxonomy {id}: {error}"))
            })?;
            Ok((id, Arc::new(tree)))
        };
        let trees = roots.iter().map(tree).collect::<Result<_, Problem>>()?;
        Ok(Self { roots, trees })
    }
}
