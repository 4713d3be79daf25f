//! `/v1/taxonomies`.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::{Code, Problem};
use crate::store::taxonomies::{self, Taxonomy, TaxonomySummary};
use pais_core::definition::TaxonomyId;
use pais_core::definition::TaxonomyNode;
use pais_core::taxonomy::{Tree, TreeLimits, hierarchy};

use super::extract::media_type;
use super::{ApiError, AppState, Body, Holder, JsonBody, Page, PageQuery, Parameters, Path, text};

/// The routes of this resource.
pub fn routes() -> OpenApiRouter<AppState> {
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
    let limits = state.limits.taxonomy;
    let (name, tree) = match media_type(request.headers()).as_str() {
        "application/json" => {
            let JsonBody(new) = JsonBody::<NewTaxonomy>::from_request(request, &state).await?;
            (text::name(&new.name)?, tree(&new.root, limits)?)
        }
        "text/csv" => {
            let name = query.name.ok_or_else(|| {
                ApiError::new(
                    Code::InvalidParameter,
                    "name the taxonomy with `?name=` when its body is CSV",
                )
            })?;
            let name = text::name(&name)?;
            let Body(rows) = Body::from_request(request, &state).await?;
            let root = hierarchy::parse(&rows, limits)?;
            let tree = Tree::new(&root, limits)
                .map_err(|error| Problem::new(Code::InvalidTaxonomy, error.to_string()))?;
            (name, tree)
        }
        _ => {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send the tree with `Content-Type: application/json`, or hierarchy rows with \
                 `Content-Type: text/csv`",
            ));
        }
    };
    let made = taxonomies::create(&state.store, caller, &name, &tree)
        .await?
        .ok_or_else(|| text::name_taken("a taxonomy"))?;
    let location = format!("/v1/taxonomies/{}", made.summary.id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(made),
    ))
}

fn tree(root: &TaxonomyNode, limits: TreeLimits) -> Result<Tree, Problem> {
    Tree::new(root, limits).map_err(|error| {
        let pointer = format!("/root{}", error.pointer());
        Problem::at(Code::InvalidTaxonomy, pointer, error.to_string())
    })
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
    let organization = caller.organization;
    let rows = taxonomies::list(&state.store, organization, page.after, page.limit + 1).await?;
    Ok(Json(Page::cut(rows, page, |row| row.id.0)))
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
    let found = taxonomies::find(&state.store, caller.organization, id).await?;
    found.map(Json).ok_or_else(ApiError::not_found)
}
