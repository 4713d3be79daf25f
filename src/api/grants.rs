//! `/v1/releases/{id}/grants`: who may fetch a release.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::grants::{NewGrant, StoredGrant};
use crate::ids::{GrantId, OrganizationId, ReleaseId};

use super::error::ApiError;
use super::extract::{Holder, JsonBody, Parameters, Path};
use super::page::{Page, PageQuery};
use super::response::created;
use super::state::AppState;

/// A grant that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantDefinition {
    /// Name or id of the organization that may fetch the release.
    #[schema(min_length = 1)]
    pub recipient: String,
    /// The purpose for which it needs the data.
    #[schema(min_length = 1, max_length = 2000)]
    pub purpose: String,
    /// Until when; without an end when omitted.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// Why the grant is made although the releases that the recipient then knows may break a privacy
    /// model together. It is kept in the audit log.
    #[schema(min_length = 1, max_length = 2000)]
    pub acknowledge_composition_risk: Option<String>,
}

/// A grant in its current state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GrantDocument {
    /// Its id.
    pub id: GrantId,
    /// What may be fetched.
    pub release_id: ReleaseId,
    /// By whom.
    pub recipient: RecipientDocument,
    /// The purpose.
    pub purpose: String,
    /// Until when; null for without end.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The organization that may fetch a release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecipientDocument {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
}

impl From<StoredGrant> for GrantDocument {
    fn from(grant: StoredGrant) -> Self {
        Self {
            id: grant.id,
            release_id: grant.release,
            recipient: RecipientDocument {
                id: grant.recipient,
                name: grant.recipient_name,
            },
            purpose: grant.purpose,
            expires_at: grant.expires_at,
            created_at: grant.created_at,
        }
    }
}

/// The grants' routes.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(delete))
}

/// Grant a release to a recipient
///
/// The release is decided together with all releases of its dataset that the recipient may read or
/// has fetched. Where an adversary with all of them could break a privacy model, the grant is refused
/// unless `acknowledge_composition_risk` says why the risk is taken.
#[utoipa::path(
    post, path = "/v1/releases/{id}/grants", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    request_body = GrantDefinition,
    responses(
        (status = 201, description = "Granted", body = GrantDocument,
         headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such release or recipient"),
        (status = 409, description = "`grant_exists`; `approval_required`: the policy requires approval first; `composition_risk`: the releases together break a privacy model"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`invalid_value`; `below_policy`; `limit_exceeded`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
    JsonBody(definition, _memory): JsonBody<GrantDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let new = NewGrant {
        release,
        recipient: &definition.recipient,
        purpose: &definition.purpose,
        expires_at: definition.expires_at,
        acknowledged_risk: definition.acknowledge_composition_risk.as_deref(),
    };
    let grant = state.of(caller).create_grant(caller, new).await?;
    let path = format!("/v1/releases/{release}/grants/{}", grant.id);
    Ok(created(path, GrantDocument::from(grant)))
}

/// List the grants of a release, oldest first, expired ones too.
#[utoipa::path(
    get, path = "/v1/releases/{id}/grants", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), PageQuery),
    responses(
        (status = 200, description = "A page", body = Page<GrantDocument>),
    ),
)]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<GrantDocument>>, ApiError> {
    let page = query.parse()?;
    let grants = state.of(caller).list_grants(caller, release, page).await?;
    Ok(Json(grants.map(GrantDocument::from)))
}

/// Withdraw a grant.
#[utoipa::path(
    delete, path = "/v1/releases/{id}/grants/{grant_id}", tag = "releases",
    params(
        ("id" = ReleaseId, Path, description = "The release"),
        ("grant_id" = GrantId, Path, description = "The grant"),
    ),
    responses(
        (status = 204, description = "Withdrawn"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path((release, grant)): Path<(ReleaseId, GrantId)>,
) -> Result<StatusCode, ApiError> {
    state
        .of(caller)
        .delete_grant(caller, release, grant)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
