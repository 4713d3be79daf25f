//! `/v1/datasets/{id}/legal-hold`: nothing of a dataset is deleted.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use pais_core::definition::DatasetId;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::deletion::Deletion;
use crate::db::legal_holds::{self, LegalHold};
use crate::problem::Code;

use super::error::{ApiError, found};
use super::extract::{Holder, JsonBody, Path};
use super::state::AppState;
use super::text;

/// A legal hold that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LegalHoldDefinition {
    /// Why the rows must be kept.
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: String,
}

/// The routes of legal holds.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(place, lift))
}

/// Place a legal hold on a dataset
///
/// Until it is lifted, neither the dataset nor a submission of it is deleted: a request is answered with
/// 409 `legal_hold`, and retention waits. A second hold replaces the reason and keeps the time.
#[utoipa::path(
    put, path = "/v1/datasets/{id}/legal-hold", tag = "datasets",
    params(("id" = DatasetId, Path, description = "The dataset")),
    request_body = LegalHoldDefinition,
    responses(
        (status = 200, description = "The hold", body = LegalHold),
        (status = 422, description = "`invalid_value`"),
    ),
)]
async fn place(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(dataset): Path<DatasetId>,
    JsonBody(definition, _memory): JsonBody<LegalHoldDefinition>,
) -> Result<Json<LegalHold>, ApiError> {
    let reason = text::reason(&definition.reason, "the rows must be kept")?;
    let placed = legal_holds::place(&state.db(caller), caller, dataset, reason).await?;
    Ok(Json(placed.ok_or_else(ApiError::not_found)?))
}

/// Lift the legal hold of a dataset
///
/// What its retention would have deleted meanwhile is deleted within a minute.
#[utoipa::path(
    delete, path = "/v1/datasets/{id}/legal-hold", tag = "datasets",
    params(("id" = DatasetId, Path, description = "The dataset")),
    responses((status = 204, description = "It has no hold any more")),
)]
async fn lift(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(dataset): Path<DatasetId>,
) -> Result<StatusCode, ApiError> {
    found(legal_holds::lift(&state.db(caller), caller, dataset).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The answer to a request for a deletion.
///
/// # Errors
/// `not_found` and `legal_hold`.
pub(crate) fn deleted(deletion: Deletion) -> Result<(), ApiError> {
    match deletion {
        Deletion::Done => Ok(()),
        Deletion::NotFound => Err(ApiError::not_found()),
        Deletion::Held => Err(ApiError::new(
            Code::LegalHold,
            "the dataset has a legal hold; `GET /v1/datasets/{id}` has the reason",
        )),
    }
}
