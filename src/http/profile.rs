//! `/v1/datasets/{id}/profile`: what a holder may learn of its rows without seeing one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Code;
use crate::store::{datasets, submissions};
use crate::worker::{WorkError, load_rows, on_thread};
use pais_anonymize::Unobserved;
use pais_core::definition::DatasetId;
use pais_core::table::Column;
use pais_core::table::profile::{self, ColumnProfile};

use super::{ApiError, AppState, Holder, Path, bulk};

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
pub fn routes() -> OpenApiRouter<AppState> {
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
    ),
)]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
) -> Result<Json<ProfileDocument>, ApiError> {
    let dataset = datasets::load(&state.store, caller.organization, id).await?;
    let dataset = dataset.ok_or_else(ApiError::not_found)?;
    let rows = submissions::count_rows(&state.store, id, None).await?;
    bulk::check_fits(&state, &dataset.schema, &[], rows)?;
    let place = bulk::place(bulk::Held::Raw).await?;
    let unobserved = Arc::new(Unobserved::default());
    let table = load_rows::load(&state.store, &state.keys, &dataset, None, unobserved).await;
    let mut table = table.map_err(|failure| match failure {
        // Deleted under way: from then on it is as if it had never been there.
        WorkError::Problem(problem) if problem.code == Code::DatasetDeleted => {
            ApiError::not_found()
        }
        failure => failure.into(),
    })?;
    let document = on_thread(move || {
        let _place = place;
        // Without a submission there is no chunk that would bring the columns.
        let stored = dataset.schema.stored().count();
        table.columns.resize_with(stored, Column::default);
        Ok(ProfileDocument {
            dataset_id: id,
            rows: table.rows as u64,
            columns: profile::profile(&dataset.schema, &table),
        })
    });
    Ok(Json(document.await?))
}
