//! `/v1/policy`.

use axum::Json;

use crate::db::audit::Action;
use crate::db::policies;
use crate::policy::Policy;

use super::approvals::officer_required;
use super::error::ApiError;
use super::extract::{JsonBody, Staff};

/// Look up the policy of the caller's organization
///
/// Absent parameters are not restricted.
#[utoipa::path(get, path = "/v1/policy", tag = "policy",
    responses((status = 200, description = "The policy", body = Policy)))]
pub(super) async fn show(Staff(app): Staff) -> Result<Json<Policy>, ApiError> {
    let policy = policies::load(&app.db, app.caller.organization).await?;
    Ok(Json(policy))
}

/// Replace the policy of the caller's organization
///
/// It holds for new jobs, releases and grants, and earlier ones stay. With `require_approval` no grant of a release
/// that nobody has approved takes effect, not even one that was made before: recipients read the release again once
/// it is approved. Where the organization has an officer, a holder is refused.
#[utoipa::path(put, path = "/v1/policy", tag = "policy",
    request_body = Policy,
    responses(
        (status = 200, description = "The policy from now on", body = Policy),
        (status = 403, description = "`officer_required`; `forbidden`"),
        (status = 422, description = "`invalid_value`"),
    ))]
pub(super) async fn replace(
    Staff(app): Staff,
    JsonBody(policy, _memory): JsonBody<Policy>,
) -> Result<Json<Policy>, ApiError> {
    policy.check()?;
    let replaced = policies::replace(&app.db, app.caller, &policy).await;
    let replaced = match replaced {
        Ok(true) => Ok(()),
        Ok(false) => Err(officer_required()),
        Err(error) => Err(error.into()),
    };
    let subject = app.caller.organization.0;
    app.recorded(Action::PolicyChanged, subject, replaced)
        .await?;
    Ok(Json(policy))
}
