//! `/v1/releases/{id}/withdrawal`: the holder withdraws a release.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::db::RowScope;
use crate::db::releases::{self, Withdrawal, WithdrawalCreation};
use crate::engine::locations;
use crate::ids::ReleaseId;

use super::error::ApiError;
use super::extract::{JsonBody, Path, Staff};
use super::removal::remove_soon;
use super::text;

/// A withdrawal to be made.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithdrawalDefinition {
    /// Why; recipients of the release see it.
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: String,
}

/// Withdraw a release
///
/// Its tables and its report answer 410 to everybody; downloads under way end, and its files at a location
/// are removed. Its metadata stays, with the reason and the time. A withdrawal cannot be undone.
#[utoipa::path(
    post, path = "/v1/releases/{id}/withdrawal", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    request_body = WithdrawalDefinition,
    responses(
        (status = 201, description = "Withdrawn", body = Withdrawal),
        (status = 410, description = "`withdrawn`: it was withdrawn before"),
        (status = 422, description = "`invalid_value`"),
    ),
)]
pub(super) async fn create(
    Staff(app): Staff,
    Path(release): Path<ReleaseId>,
    JsonBody(definition, _memory): JsonBody<WithdrawalDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let action = "the release is withdrawn, its recipients see it";
    let reason = text::reason(&definition.reason, action)?;
    match releases::withdraw(&app.db, app.caller, release, reason).await? {
        WithdrawalCreation::Made(withdrawal) => {
            app.settle_editions().await;
            let store = app.db.within(RowScope::Service);
            let storage = app.storage.clone();
            remove_soon(async move { locations::remove_files(&store, &storage).await }).await;
            Ok((StatusCode::CREATED, Json(withdrawal)))
        }
        WithdrawalCreation::NoRelease => Err(ApiError::not_found()),
        WithdrawalCreation::Exists => Err(ApiError::withdrawn()),
    }
}
