//! `/v1/taxonomies`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{TaxonomyId, TaxonomyNode, json};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::api::extract::auth::Holder;
use crate::api::extract::body::WholeBody;
use crate::api::extract::content_type::media_type;
use crate::api::extract::parameters::{Parameters, Path};
use crate::api::page::Page;
use crate::api::page::PageQuery;
use crate::api::response::created::created;
use crate::api::state::App;
use crate::api::state::AppState;
use crate::db::taxonomies::{Taxonomy, TaxonomySummary};
use crate::problem::Code;
use crate::roles::Caller;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, delete))
}

/// A new taxonomy.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTaxonomy {
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
struct NameQuery {
    /// Unique in the organization; for a CSV body, where it is required.
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
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Parameters(query): Parameters<NameQuery>,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Response, ApiError> {
    let format = TreeFormat::from_headers(&headers)?;
    body.process(async move |body| {
        let taxonomy = make(&state.of(caller), caller, format, query, &body).await?;
        let path = format!("/v1/taxonomies/{}", taxonomy.summary.id);
        Ok(created(path, taxonomy).into_response())
    })
    .await
}

/// The format of the body with a tree.
#[derive(Clone, Copy)]
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
    service: &App,
    caller: Caller,
    format: TreeFormat,
    query: NameQuery,
    body: &[u8],
) -> Result<Taxonomy, ApiError> {
    match format {
        TreeFormat::Json => {
            let new: NewTaxonomy = json::parse(body)?;
            let made = service.create_taxonomy(caller, &new.name, &new.root);
            Ok(made.await?)
        }
        TreeFormat::Csv => {
            let name = query.name.ok_or_else(|| {
                ApiError::new(
                    Code::InvalidParameter,
                    "name the taxonomy with `?name=` when its body is CSV",
                )
            })?;
            let made = service.create_taxonomy_from_rows(caller, &name, body);
            Ok(made.await?)
        }
    }
}

/// List taxonomies without their trees, oldest first.
#[utoipa::path(get, path = "/v1/taxonomies", tag = "datasets", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<TaxonomySummary>)))]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<TaxonomySummary>>, ApiError> {
    let page = query.parse()?;
    let taxonomies = state.of(caller).list_taxonomies(caller, page).await?;
    Ok(Json(taxonomies.into()))
}

/// Fetch a taxonomy with its tree.
#[utoipa::path(get, path = "/v1/taxonomies/{id}", tag = "datasets",
    params(("id" = TaxonomyId, Path, description = "Its id")),
    responses((status = 200, description = "The taxonomy", body = Taxonomy)))]
async fn get(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<TaxonomyId>,
) -> Result<Response, ApiError> {
    let service = state.of(caller);
    let load = async move || {
        let taxonomy = service.get_taxonomy(caller, id).await?;
        Ok(Json(taxonomy).into_response())
    };
    state.unscoped().documents.load(load).await?
}

/// Delete a taxonomy that no dataset uses.
#[utoipa::path(delete, path = "/v1/taxonomies/{id}", tag = "datasets",
    params(("id" = TaxonomyId, Path, description = "Its id")),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "`taxonomy_in_use`")))]
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<TaxonomyId>,
) -> Result<StatusCode, ApiError> {
    state.of(caller).delete_taxonomy(caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
