//! `/v1/taxonomies`.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{TaxonomyId, TaxonomyNode, json};
use pais_core::taxonomy::Tree;
use pais_io::hierarchy;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::db::taxonomies::{self, Taxonomy, TaxonomyDeletion, TaxonomySummary};
use crate::problem::{Code, Problem};

use super::error::ApiError;
use super::extract::headers::media_type;
use super::extract::{Holder, Parameters, Path, Staff, WholeBody};
use super::page::{Page, PageQuery};
use super::response::created;
use super::state::CallerApp;
use super::text;

/// A new taxonomy.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTaxonomy {
    /// Unique in the organization.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    name: String,
    /// The tree; labels are unique in it.
    root: TaxonomyNode,
}

/// The name of a taxonomy whose body is CSV.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct NameQuery {
    /// Unique in the organization. Required for a CSV body; a tree in JSON has its name in the body.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    name: Option<String>,
}

/// Make a taxonomy.
///
/// From a tree in JSON, or from hierarchy rows in CSV (`leaf;level1;…;top`, one row a leaf) with
/// `?name=`. Files of ARX and Amnesia are read as they are: rows of different length are leaves at
/// different depths, rows without a common top get `*`, and Amnesia's own format is recognized.
#[utoipa::path(post, path = "/v1/taxonomies", tag = "datasets", params(NameQuery),
    request_body(content((NewTaxonomy = "application/json"), (String = "text/csv"))),
    responses((status = 201, description = "Made", body = Taxonomy,
        headers(("Location" = String, description = "Its path"))),
        (status = 409, description = "`name_taken`"),
        (status = 422, description = "`invalid_taxonomy`, `invalid_name`, `limit_exceeded`")))]
pub(super) async fn create(
    Holder(app): Holder,
    Parameters(query): Parameters<NameQuery>,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Response, ApiError> {
    let format = TreeFormat::from_headers(&headers)?;
    body.process(async move |body| {
        let taxonomy = make(&app, format, query, &body).await?;
        let path = format!("/v1/taxonomies/{}", taxonomy.summary.id);
        Ok(created(path, taxonomy).into_response())
    })
    .await
}

/// The format of the body with a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TreeFormat {
    Json,
    Csv,
}

impl TreeFormat {
    fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        match media_type(headers).as_str() {
            "application/json" => Ok(Self::Json),
            "text/csv" => Ok(Self::Csv),
            _ => Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send the tree with `Content-Type: application/json`, or hierarchy rows with \
                 `Content-Type: text/csv`",
            )),
        }
    }
}

async fn make(
    app: &CallerApp,
    format: TreeFormat,
    query: NameQuery,
    body: &[u8],
) -> Result<Taxonomy, ApiError> {
    let limits = app.limits.taxonomy;
    let (name, tree) = match format {
        TreeFormat::Json => {
            if query.name.is_some() {
                let detail = "a tree in JSON has its name in the body; leave out `?name=`";
                return Err(ApiError::new(Code::InvalidName, detail));
            }
            let new: NewTaxonomy = json::parse(body)?;
            let name = text::name(&new.name)?;
            let tree = Tree::new(&new.root, limits).map_err(|error| {
                let pointer = format!("/root{}", error.pointer());
                Problem::at(Code::InvalidTaxonomy, pointer, error.to_string())
            })?;
            (name, tree)
        }
        TreeFormat::Csv => {
            let name = query.name.ok_or_else(|| {
                let detail = "name the taxonomy with `?name=` when its body is CSV";
                ApiError::new(Code::InvalidParameter, detail)
            })?;
            let name = text::name(&name)?;
            let root = hierarchy::parse(body, limits)?;
            let tree = Tree::new(&root, limits)
                .map_err(|error| Problem::new(Code::InvalidTaxonomy, error.to_string()))?;
            (name, tree)
        }
    };
    let made = taxonomies::create(&app.db, app.caller, &name, &tree).await?;
    Ok(made.ok_or_else(|| {
        let mut problem = text::name_taken("a taxonomy");
        if format == TreeFormat::Csv {
            // The name is in the query, which pointers do not name.
            problem.errors.clear();
        }
        problem
    })?)
}

/// List taxonomies without their trees, oldest first.
#[utoipa::path(get, path = "/v1/taxonomies", tag = "datasets", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<TaxonomySummary>)))]
pub(super) async fn list(
    Staff(app): Staff,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<TaxonomySummary>>, ApiError> {
    let page = query.parse()?;
    let organization = app.caller.organization;
    let rows = taxonomies::list(&app.db, organization, page.after, page.rows_to_query()).await?;
    Ok(Json(Page::new(rows, page, |taxonomy| taxonomy.id.0)))
}

/// Fetch a taxonomy with its tree.
#[utoipa::path(get, path = "/v1/taxonomies/{id}", tag = "datasets",
    params(("id" = TaxonomyId, Path, description = "Its id")),
    responses((status = 200, description = "The taxonomy", body = Taxonomy)))]
pub(super) async fn get(
    Staff(app): Staff,
    Path(id): Path<TaxonomyId>,
) -> Result<Response, ApiError> {
    let documents = app.documents.clone();
    let load = async move || {
        let taxonomy = taxonomies::find(&app.db, app.caller.organization, id).await?;
        Ok(Json(taxonomy.ok_or_else(ApiError::not_found)?).into_response())
    };
    documents.load(load).await?
}

/// Delete a taxonomy that no dataset uses.
#[utoipa::path(delete, path = "/v1/taxonomies/{id}", tag = "datasets",
    params(("id" = TaxonomyId, Path, description = "Its id")),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "`taxonomy_in_use`")))]
pub(super) async fn delete(
    Holder(app): Holder,
    Path(id): Path<TaxonomyId>,
) -> Result<StatusCode, ApiError> {
    match taxonomies::delete(&app.db, app.caller, id).await? {
        TaxonomyDeletion::Deleted => Ok(StatusCode::NO_CONTENT),
        TaxonomyDeletion::NotFound => Err(ApiError::not_found()),
        TaxonomyDeletion::InUse => Err(ApiError::new(
            Code::TaxonomyInUse,
            "a dataset uses this taxonomy; delete the dataset first",
        )),
    }
}
