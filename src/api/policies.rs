//! `/v1/policy`, and `/v1/releases/{id}/approval`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use crate::db::audit::Action;
use crate::db::policies::{self, Approval, ApprovalCreation};
use crate::ids::ReleaseId;
use crate::policy::Policy;
use crate::problem::Code;

use super::editions;
use super::error::ApiError;
use super::extract::{Holder, JsonBody, Path};

/// Look up the policy of the holder's organization
///
/// What is absent is not restricted.
#[utoipa::path(get, path = "/v1/policy", tag = "policy",
    responses((status = 200, description = "The policy", body = Policy)))]
pub(super) async fn show(Holder(app): Holder) -> Result<Json<Policy>, ApiError> {
    let policy = policies::load(&app.db, app.caller.organization).await?;
    Ok(Json(policy))
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
pub(super) async fn replace(
    Holder(app): Holder,
    JsonBody(policy, _memory): JsonBody<Policy>,
) -> Result<Json<Policy>, ApiError> {
    policy.check()?;
    policies::replace(&app.db, app.caller, &policy).await?;
    Ok(Json(policy))
}

/// Approve a release that another token has made
#[utoipa::path(post, path = "/v1/releases/{id}/approval", tag = "policy",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 201, description = "Approved", body = Approval),
        (status = 409, description = "`conflict`: this token made the release, or it is approved already"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`below_policy`: the policy was raised since the release was made"),
    ))]
pub(super) async fn approve(
    Holder(app): Holder,
    Path(release): Path<ReleaseId>,
) -> Result<impl IntoResponse, ApiError> {
    let conflict = |detail| Err(ApiError::new(Code::Conflict, detail));
    let approved = policies::approve(&app.db, app.caller, release).await;
    let approved = approved.map_err(ApiError::from);
    let recorded = app.recorded(Action::ReleaseApproved, release.0, approved);
    match recorded.await? {
        ApprovalCreation::Made(approval) => {
            editions::settle(&app).await;
            Ok((StatusCode::CREATED, Json(approval)))
        }
        ApprovalCreation::NoRelease => Err(ApiError::not_found()),
        ApprovalCreation::Withdrawn => Err(ApiError::withdrawn()),
        ApprovalCreation::SameToken => conflict(
            "this token made the release; somebody else with a token of their own approves it",
        ),
        ApprovalCreation::Exists => conflict("the release is approved already"),
    }
}
