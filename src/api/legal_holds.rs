//! `/v1/datasets/{id}/legal-hold`: nothing of the dataset is deleted.

use axum::Json;
use axum::http::StatusCode;
use pais_core::definition::DatasetId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::db::deletion::Deletion;
use crate::db::legal_holds::{self, LegalHold};
use crate::problem::Code;

use super::error::{ApiError, done};
use super::extract::{JsonBody, Path, Staff};
use super::text;

/// A legal hold to be placed.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LegalHoldDefinition {
    /// Why the rows must be kept.
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: Option<String>,
}

/// The reason of a hold that was placed without one.
const NO_REASON: &str = "no reason was given";

/// Place a legal hold on a dataset
///
/// Until it is lifted, neither the dataset nor a submission of it is deleted: a request is answered with
/// 409 `legal_hold`, and retention waits. A second hold replaces the reason and keeps the time. The body may be left out.
#[utoipa::path(
    put, path = "/v1/datasets/{id}/legal-hold", tag = "datasets",
    params(("id" = DatasetId, Path, description = "The dataset")),
    request_body = Option<LegalHoldDefinition>,
    responses(
        (status = 200, description = "The hold", body = LegalHold),
        (status = 422, description = "`invalid_value`"),
    ),
)]
pub(super) async fn place(
    Staff(app): Staff,
    Path(dataset): Path<DatasetId>,
    body: Option<JsonBody<Option<LegalHoldDefinition>>>,
) -> Result<Json<LegalHold>, ApiError> {
    let given = body.and_then(|JsonBody(definition, _memory)| definition?.reason);
    let reason = given.as_deref().unwrap_or(NO_REASON);
    let reason = text::reason(reason, "the rows must be kept")?;
    let placed = legal_holds::place(&app.db, app.caller, dataset, reason).await?;
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
pub(super) async fn lift(
    Staff(app): Staff,
    Path(dataset): Path<DatasetId>,
) -> Result<StatusCode, ApiError> {
    done(legal_holds::lift(&app.db, app.caller, dataset).await?)
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
