//! `/v1/organizations`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::api::extract::auth::Admin;
use crate::api::extract::body::JsonBody;
use crate::api::extract::parameters::{Parameters, Path};
use crate::api::page::Page;
use crate::api::page::PageQuery;
use crate::api::response::created::created;
use crate::api::state::AppState;
use crate::db::organizations::Organization;
use crate::ids::OrganizationId;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, change))
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
    #[schema(max_length = 200)]
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
    Admin(caller): Admin,
    JsonBody(new, _memory): JsonBody<NewOrganization>,
) -> Result<impl IntoResponse, ApiError> {
    let display_name = new.display_name.as_deref();
    let organization = state
        .of(caller)
        .create_organization(caller, &new.name, display_name)
        .await?;
    let path = format!("/v1/organizations/{}", organization.id);
    Ok(created(path, organization))
}

/// List organizations, oldest first.
#[utoipa::path(get, path = "/v1/organizations", tag = "administration", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Organization>)))]
async fn list(
    State(state): State<AppState>,
    Admin(caller): Admin,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Organization>>, ApiError> {
    let organizations = state.of(caller).list_organizations(query.parse()?).await?;
    Ok(Json(organizations.into()))
}

/// Look up an organization.
#[utoipa::path(get, path = "/v1/organizations/{id}", tag = "administration",
    params(("id" = OrganizationId, Path, description = "Its id")),
    responses((status = 200, description = "The organization", body = Organization)))]
async fn get(
    State(state): State<AppState>,
    Admin(caller): Admin,
    Path(id): Path<OrganizationId>,
) -> Result<Json<Organization>, ApiError> {
    Ok(Json(state.of(caller).get_organization(id).await?))
}

/// What changes of an organization.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizationChange {
    /// Whether its tokens, and those of its people, are refused.
    disabled: bool,
}

/// Disable an organization, or enable it again
///
/// While it is disabled its tokens are refused, and what they have under way ends. Its datasets and
/// releases stay, and its grants take effect again when it is enabled.
#[utoipa::path(patch, path = "/v1/organizations/{id}", tag = "administration",
    params(("id" = OrganizationId, Path, description = "Its id")),
    request_body = OrganizationChange,
    responses((status = 200, description = "The organization from now on", body = Organization),
        (status = 409, description = "`conflict`: the administrator's own organization")))]
async fn change(
    State(state): State<AppState>,
    Admin(caller): Admin,
    Path(id): Path<OrganizationId>,
    JsonBody(change, _memory): JsonBody<OrganizationChange>,
) -> Result<Json<Organization>, ApiError> {
    let service = state.of(caller);
    let changed = service.set_organization_disabled(caller, id, change.disabled);
    Ok(Json(changed.await?))
}
