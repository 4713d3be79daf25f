//! `/v1/organizations`.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::OrganizationId;
use crate::store::organizations::{self, Organization};

use super::{ApiError, AppState, JsonBody, Operator, Page, PageQuery, Parameters, Path, text};

/// The routes of this resource.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get))
}

/// A new organization.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrganization {
    /// 1 to 63 lower-case letters, digits and hyphens; unique in the service.
    #[schema(
        example = "red-cross-bts",
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9-]+$"
    )]
    name: String,
    /// Its name for people.
    display_name: Option<String>,
}

/// Make an organization.
#[utoipa::path(post, path = "/v1/organizations", tag = "administration",
    request_body = NewOrganization,
    responses((status = 201, description = "Made", body = Organization,
        headers(("Location" = String, description = "Its path"))),
        (status = 409, description = "`name_taken`"), (status = 422, description = "`invalid_name`")))]
async fn create(
    State(state): State<AppState>,
    Operator(caller): Operator,
    JsonBody(new): JsonBody<NewOrganization>,
) -> Result<impl IntoResponse, ApiError> {
    organizations::check_name(&new.name)?;
    text::free("/display_name", new.display_name.as_deref(), 200)?;
    let made = organizations::create(
        &state.store,
        Some(caller),
        &new.name,
        new.display_name.as_deref(),
    )
    .await?
    .ok_or_else(|| text::name_taken("an organization"))?;
    let location = format!("/v1/organizations/{}", made.id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(made),
    ))
}

/// List organizations, oldest first.
#[utoipa::path(get, path = "/v1/organizations", tag = "administration", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Organization>)))]
async fn list(
    State(state): State<AppState>,
    _: Operator,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Organization>>, ApiError> {
    let page = query.parse()?;
    let rows = organizations::list(&state.store, page.after, page.limit + 1).await?;
    Ok(Json(Page::cut(rows, page, |row| row.id.0)))
}

/// Look up an organization.
#[utoipa::path(get, path = "/v1/organizations/{id}", tag = "administration",
    params(("id" = OrganizationId, Path, description = "Its id")),
    responses((status = 200, description = "The organization", body = Organization)))]
async fn get(
    State(state): State<AppState>,
    _: Operator,
    Path(id): Path<OrganizationId>,
) -> Result<Json<Organization>, ApiError> {
    let found = organizations::find(state.store.pool(), &id.to_string()).await?;
    found.map(Json).ok_or_else(ApiError::not_found)
}
