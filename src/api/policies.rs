//! `/v1/policy`, and `/v1/releases/{id}/approval`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use pais_core::codebook::Codebook;
use pais_core::definition::{ColumnRole, PrivacyDefinition};

use crate::db::policies::{self, Approval, ApprovalCreation};
use crate::db::releases::{self, StoredRelease, Viewer};
use crate::db::{Store, StoreError};
use crate::ids::ReleaseId;
use crate::policy::{Policy, ReleasedTable};
use crate::problem::Code;

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
    ))]
pub(super) async fn approve(
    Holder(app): Holder,
    Path(release): Path<ReleaseId>,
) -> Result<impl IntoResponse, ApiError> {
    let conflict = |detail| Err(ApiError::new(Code::Conflict, detail));
    match policies::approve(&app.db, app.caller, release).await? {
        ApprovalCreation::Made(approval) => Ok((StatusCode::CREATED, Json(approval))),
        ApprovalCreation::NoRelease => Err(ApiError::not_found()),
        ApprovalCreation::Withdrawn => Err(ApiError::withdrawn()),
        ApprovalCreation::SameToken => conflict(
            "this token made the release; somebody else with a token of their own approves it",
        ),
        ApprovalCreation::Exists => conflict("the release is approved already"),
    }
}

/// Checks a finished release against the policy; `pointer` is its place in the body that was
/// sent.
///
/// # Errors
/// `below_policy`; when the database fails or what it has of the release is damaged.
pub(crate) async fn check_release(
    db: &Store,
    policy: &Policy,
    release: &StoredRelease,
    pointer: &str,
) -> Result<(), ApiError> {
    let damaged = || StoreError::Damaged("a release");
    let privacy: PrivacyDefinition =
        serde_json::from_value(release.privacy.clone()).map_err(|_| damaged())?;
    let viewer = Viewer::Holder(release.organization);
    let columns = releases::other_columns(db, viewer, release.id).await?;
    let roles = match release.codebook.clone() {
        Some(codebook) => {
            let codebook: Codebook = serde_json::from_value(codebook).map_err(|_| damaged())?;
            let columns = codebook.columns.into_iter();
            columns.map(|column| (column.name, column.role)).collect()
        }
        // A release of an early version: nothing says that other columns are insensitive.
        None => columns
            .iter()
            .map(|name| (name.clone(), ColumnRole::Sensitive))
            .collect(),
    };
    let raw_rows = release.rows + release.suppressed_rows;
    let table = ReleasedTable {
        privacy: &privacy,
        suppressed: release.suppressed_rows as f64 / raw_rows.max(1) as f64,
        other_columns: &columns,
        roles: &roles,
    };
    Ok(policy.check_release(&table, pointer)?)
}
