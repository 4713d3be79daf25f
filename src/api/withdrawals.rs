//! `/v1/releases/{id}/withdrawal`: the holder withdraws a release.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::releases::{self, Withdrawal, WithdrawalCreation};
use crate::ids::ReleaseId;

use super::error::ApiError;
use super::extract::{Holder, JsonBody, Path};
use super::state::AppState;
use super::text;

/// A withdrawal that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithdrawalDefinition {
    /// Why; recipients of the release see it.
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: String,
}

/// The route of withdrawals.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Withdraw a release
///
/// Its tables and its report answer 410 to everybody; downloads under way end. Its
/// metadata stays, with the reason and the time. A withdrawal cannot be undone.
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
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
    JsonBody(definition, _memory): JsonBody<WithdrawalDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let action = "the release is withdrawn, its recipients see it";
    let reason = text::reason(&definition.reason, action)?;
    match releases::withdraw(&state.db(caller), caller, release, reason).await? {
        WithdrawalCreation::Made(withdrawal) => Ok((StatusCode::CREATED, Json(withdrawal))),
        WithdrawalCreation::NoRelease => Err(ApiError::not_found()),
        WithdrawalCreation::Exists => Err(ApiError::withdrawn()),
    }
}
