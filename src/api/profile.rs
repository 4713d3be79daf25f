//! `/v1/datasets/{id}/profile`: what a holder can learn about the rows without seeing one.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use pais_core::definition::DatasetId;
use pais_core::table::profile::ColumnProfile;
use pais_core::warning::Warning;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::api::extract::auth::Holder;
use crate::api::extract::parameters::Path;
use crate::api::state::AppState;

/// A dataset in numbers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProfileDocument {
    /// The dataset.
    pub dataset_id: DatasetId,
    /// Number of rows in all its submissions.
    pub rows: u64,
    /// The stored columns in the declared order; identifiers are not stored.
    pub columns: Vec<ColumnProfile>,
    /// Number of persons in all submissions; absent without a column of the role `subject`, as are
    /// the two fields that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<u64>,
    /// Rows of the person with the most rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_subject_max: Option<u64>,
    /// Number of persons with rows in more than one submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_subjects: Option<u64>,
    /// By identifier column, the number of rows whose identifier occurred before in the same
    /// submission, a lower bound where there are millions of identifiers. Absent with a column of
    /// the role `subject`, and where none were counted: identifiers of Parquet files are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier_repeats: Option<BTreeMap<String, u64>>,
    /// What the holder should know about the rows.
    pub warnings: Vec<Warning>,
}

/// The profile's route.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Profile a dataset: each column in numbers.
///
/// How many distinct and missing values there are, the range of numbers, the sizes of sets, how many
/// persons there are; never a row, and never a value of another kind.
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
    let profile = state.of(caller).profile_dataset(caller, id).await?;
    let subjects = profile.subjects;
    Ok(Json(ProfileDocument {
        dataset_id: id,
        rows: profile.rows,
        columns: profile.columns,
        subjects: subjects.map(|counts| counts.subjects),
        rows_per_subject_max: subjects.map(|counts| counts.rows_per_subject_max),
        shared_subjects: subjects.map(|counts| counts.shared_subjects),
        identifier_repeats: profile.identifier_repeats,
        warnings: profile.warnings,
    }))
}
