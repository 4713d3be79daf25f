//! `/v1/taxonomies`.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::response::IntoResponse;
use pais_core::definition::{TaxonomyId, TaxonomyNode};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::extract::auth::Holder;
use crate::http::extract::body::{JsonBody, WholeBody};
use crate::http::extract::content_type::media_type;
use crate::http::extract::page_query::PageQuery;
use crate::http::extract::parameters::{Parameters, Path};
use crate::http::response::created::created;
use crate::http::response::error::ApiError;
use crate::http::response::page::Page;
use crate::http::state::AppState;
use crate::problem::Code;
use crate::store::taxonomies::{Taxonomy, TaxonomySummary};

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get))
}

/// A new taxonomy.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTaxonomy {
    /// Unique in the organization.
    name: String,
    /// The tree; labels are unique in it.
    root: TaxonomyNode,
}

/// The name of a taxonomy whose body is CSV.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct NameQuery {
    /// Unique in the organization; for a CSV body, where it is required.
    name: Option<String>,
}

/// Make a taxonomy.
///
/// From a tree in JSON, or from hierarchy rows in CSV (`leaf;level1;…;top`, one row a leaf, the
/// format that ARX and Amnesia use) with `?name=`.
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
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let service = &state.service;
    let taxonomy = match media_type(request.headers()).as_str() {
        "application/json" => {
            let JsonBody(new) = JsonBody::<NewTaxonomy>::from_request(request, &state).await?;
            service
                .create_taxonomy(caller, &new.name, &new.root)
                .await?
        }
        "text/csv" => {
            let name = query.name.ok_or_else(|| {
                ApiError::new(
                    Code::InvalidParameter,
                    "name the taxonomy with `?name=` when its body is CSV",
                )
            })?;
            let WholeBody(rows) = WholeBody::from_request(request, &state).await?;
            service
                .create_taxonomy_from_rows(caller, &name, &rows)
                .await?
        }
        _ => {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send the tree with `Content-Type: application/json`, or hierarchy rows with \
                 `Content-Type: text/csv`",
            ));
        }
    };
    let path = format!("/v1/taxonomies/{}", taxonomy.summary.id);
    Ok(created(path, taxonomy))
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
    let taxonomies = state.service.list_taxonomies(caller, page).await?;
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
) -> Result<Json<Taxonomy>, ApiError> {
    Ok(Json(state.service.get_taxonomy(caller, id).await?))
}
