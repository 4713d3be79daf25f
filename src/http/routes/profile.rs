//! `/v1/datasets/{id}/profile`: what a holder can learn about the rows without seeing one.

use axum::Json;
use axum::extract::State;
use pais_core::definition::DatasetId;
use pais_core::table::profile::ColumnProfile;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::extract::auth::Holder;
use crate::http::extract::parameters::Path;
use crate::http::response::error::ApiError;
use crate::http::state::AppState;

/// A dataset in numbers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProfileDocument {
    /// The dataset.
    pub dataset_id: DatasetId,
    /// Number of rows in all its submissions.
    pub rows: u64,
    /// The stored columns in the declared order; identifiers are not stored.
    pub columns: Vec<ColumnProfile>,
}

/// The profile's route.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Profile a dataset: each column in numbers.
///
/// How many distinct and missing values there are, the range of numbers, the sizes of sets; never
/// a row, and never a value of another kind.
#[utoipa::path(
    get, path = "/v1/datasets/{id}/profile", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses(
        (status = 200, description = "The profile", body = ProfileDocument),
        (status = 422, description = "`limit_exceeded`: its rows need more memory than there is"),
    ),
)]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<Json<ProfileDocument>, ApiError> {
    let (rows, columns) = state.service.profile_dataset(caller, id).await?;
    Ok(Json(ProfileDocument {
        dataset_id: id,
        rows,
        columns,
    }))
}
