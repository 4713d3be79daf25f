//! `/v1/releases/{id}/withdrawal`: a release that is served to nobody from then on.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::extract::auth::Holder;
use crate::api::extract::body::JsonBody;
use crate::api::extract::parameters::Path;
use crate::api::response::error::ApiError;
use crate::api::state::AppState;
use crate::db::withdrawals::Withdrawal;
use crate::ids::ReleaseId;

/// A withdrawal that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WithdrawalDefinition {
    /// Why; recipients of the release see it.
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: String,
}

/// Why and since when a release is served to nobody.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WithdrawalDocument {
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Why.
    pub reason: String,
}

impl From<Withdrawal> for WithdrawalDocument {
    fn from(withdrawal: Withdrawal) -> Self {
        Self {
            at: withdrawal.at,
            reason: withdrawal.reason,
        }
    }
}

/// The route of withdrawals.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Withdraw a release
///
/// Its tables and its report answer 410 from then on, to everybody; downloads under way end. Its
/// metadata stays, with the reason and the time. A withdrawal cannot be undone.
#[utoipa::path(
    post, path = "/v1/releases/{id}/withdrawal", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    request_body = WithdrawalDefinition,
    responses(
        (status = 201, description = "Withdrawn", body = WithdrawalDocument),
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
    let service = state.of(caller);
    let withdrawal = service.withdraw_release(caller, release, &definition.reason);
    let document = WithdrawalDocument::from(withdrawal.await?);
    Ok((StatusCode::CREATED, Json(document)))
}
