//! `/v1/organizations`.

use axum::Json;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::db::Store;
use crate::db::organizations::{self, Access, Organization};
use crate::ids::OrganizationId;
use crate::problem::{Code, Problem};

use super::error::ApiError;
use super::extract::{Admin, JsonBody, Parameters, Path};
use super::page::{Page, PageQuery};
use super::response::created;
use super::text;

/// Maximum length of a display name, in characters.
const DISPLAY_NAME_LENGTH: usize = 200;

/// A new organization.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOrganization {
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
pub(super) async fn create(
    Admin(app): Admin,
    JsonBody(new, _memory): JsonBody<NewOrganization>,
) -> Result<impl IntoResponse, ApiError> {
    let display_name = new.display_name.as_deref();
    check_name(&new.name)?;
    text::check_length("/display_name", display_name, DISPLAY_NAME_LENGTH)?;
    let made = organizations::create(&app.db, Some(app.caller), &new.name, display_name).await?;
    let organization = made.ok_or_else(|| text::name_taken("an organization"))?;
    let path = format!("/v1/organizations/{}", organization.id);
    Ok(created(path, organization))
}

/// List organizations, oldest first.
#[utoipa::path(get, path = "/v1/organizations", tag = "administration", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Organization>)))]
pub(super) async fn list(
    Admin(app): Admin,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Organization>>, ApiError> {
    let page = query.parse()?;
    let rows = organizations::list(&app.db, page.after, page.rows_to_query()).await?;
    Ok(Json(Page::new(rows, page, |organization| {
        organization.id.0
    })))
}

/// Look up an organization.
#[utoipa::path(get, path = "/v1/organizations/{id}", tag = "administration",
    params(("id" = OrganizationId, Path, description = "Its id")),
    responses((status = 200, description = "The organization", body = Organization)))]
pub(super) async fn get(
    Admin(app): Admin,
    Path(id): Path<OrganizationId>,
) -> Result<Json<Organization>, ApiError> {
    Ok(Json(find(&app.db, id).await?))
}

/// What changes of an organization.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrganizationChange {
    /// Whether its tokens, and those of its people, are refused.
    disabled: bool,
}

/// Disable an organization, or enable it again
///
/// While it is disabled its tokens are refused, and what they have under way ends. It publishes no editions, and
/// reads none of the releases that it was granted until it is enabled. Its datasets, its releases and the grants of
/// these to others stay: what others are not to read is withdrawn before.
#[utoipa::path(patch, path = "/v1/organizations/{id}", tag = "administration",
    params(("id" = OrganizationId, Path, description = "Its id")),
    request_body = OrganizationChange,
    responses((status = 200, description = "The organization from now on", body = Organization),
        (status = 409, description = "`conflict`: the administrator's own organization")))]
pub(super) async fn change(
    Admin(app): Admin,
    Path(id): Path<OrganizationId>,
    JsonBody(change, _memory): JsonBody<OrganizationChange>,
) -> Result<Json<Organization>, ApiError> {
    let access = if change.disabled {
        Access::Disabled
    } else {
        Access::Enabled
    };
    if id == app.caller.organization && access == Access::Disabled {
        let detail = "this is your own organization: nobody could enable it again";
        return Err(ApiError::new(Code::Conflict, detail));
    }
    if !organizations::set_access(&app.db, app.caller, id, access).await? {
        return Err(ApiError::not_found());
    }
    Ok(Json(find(&app.db, id).await?))
}

async fn find(db: &Store, id: OrganizationId) -> Result<Organization, ApiError> {
    let found = organizations::find(&mut *db.connection().await?, &id.to_string()).await?;
    found.ok_or_else(ApiError::not_found)
}

/// Checks an organization's name. A name in the form of a UUID is rejected, because requests refer
/// to an organization by its name or its id.
///
/// # Errors
/// `invalid_name`.
pub fn check_name(name: &str) -> Result<(), Problem> {
    let slug = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let detail = if !(1..=63).contains(&name.len()) || !name.bytes().all(slug) {
        "an organization's name has 1 to 63 lower-case letters, digits and hyphens"
    } else if name.parse::<Uuid>().is_ok() {
        "an organization's name cannot have the form of an id"
    } else {
        return Ok(());
    };
    Err(Problem::at(Code::InvalidName, "/name", detail))
}
