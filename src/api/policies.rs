//! `/v1/policy`, and `/v1/releases/{id}/approval`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::api::extract::auth::Holder;
use crate::api::extract::body::JsonBody;
use crate::api::extract::parameters::Path;
use crate::api::state::AppState;
use crate::ids::{ReleaseId, TokenId};
use crate::policy::Policy;

/// The approval of a release by a second token of its holder.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ApprovalDocument {
    /// The release.
    pub release_id: ReleaseId,
    /// With which token.
    pub token_id: TokenId,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// The routes of the policy and of approvals.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(show, replace))
        .routes(routes!(approve))
}

/// Look up the policy of the holder's organization
///
/// What is absent is not restricted.
#[utoipa::path(get, path = "/v1/policy", tag = "policy",
    responses((status = 200, description = "The policy", body = Policy)))]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
) -> Result<Json<Policy>, ApiError> {
    Ok(Json(state.of(caller).get_policy(caller).await?))
}

/// Replace the policy of the holder's organization
///
/// It holds for new jobs, releases and grants. Releases and grants that were made before are not
/// taken back; with `require_approval` a grant takes effect only once its release is approved.
#[utoipa::path(put, path = "/v1/policy", tag = "policy",
    request_body = Policy,
    responses(
        (status = 200, description = "The policy from now on", body = Policy),
        (status = 422, description = "`invalid_value`"),
    ))]
async fn replace(
    State(state): State<AppState>,
    Holder(caller): Holder,
    JsonBody(policy, _memory): JsonBody<Policy>,
) -> Result<Json<Policy>, ApiError> {
    Ok(Json(state.of(caller).replace_policy(caller, policy).await?))
}

/// Approve a release that another token has made
#[utoipa::path(post, path = "/v1/releases/{id}/approval", tag = "policy",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 201, description = "Approved", body = ApprovalDocument),
        (status = 409, description = "`conflict`: this token made the release, or it is approved already"),
        (status = 410, description = "`withdrawn`"),
    ))]
async fn approve(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
) -> Result<impl IntoResponse, ApiError> {
    let approval = state.of(caller).approve_release(caller, release).await?;
    let document = ApprovalDocument {
        release_id: release,
        token_id: approval.by,
        at: approval.at,
    };
    Ok((StatusCode::CREATED, Json(document)))
}
