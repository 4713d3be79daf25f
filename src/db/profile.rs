//! What the profile of a dataset says beside its columns: how its rows came in submissions.

use std::collections::BTreeMap;

use pais_core::definition::{DatasetId, SubmissionId};
use sqlx::types::Json;

use super::{Store, StoreError};

/// A dataset's submissions with their numbers of rows, in the order in which rows are loaded.
///
/// # Errors
/// When the database fails.
pub(crate) async fn rows_by_submission(
    store: &Store,
    dataset: DatasetId,
) -> Result<Vec<(SubmissionId, u64)>, StoreError> {
    let rows: Vec<(SubmissionId, i64)> =
        sqlx::query_as("SELECT id, rows FROM submissions WHERE dataset_id = $1 ORDER BY id")
            .bind(dataset)
            .fetch_all(&mut *store.connection().await?)
            .await?;
    let submissions = rows.into_iter();
    Ok(submissions
        .map(|(id, rows)| (id, rows.cast_unsigned()))
        .collect())
}

/// By identifier column, the number of rows whose identifier occurred before in their submission;
/// `None` if none were counted.
///
/// # Errors
/// When the database fails.
pub(crate) async fn identifier_repeats(
    store: &Store,
    dataset: DatasetId,
) -> Result<Option<BTreeMap<String, u64>>, StoreError> {
    let counted: Option<Json<BTreeMap<String, u64>>> = sqlx::query_scalar(
        "SELECT jsonb_object_agg(name, rows) FROM (
             SELECT c.key AS name, sum(c.value::bigint) AS rows
             FROM submissions s, jsonb_each_text(s.identifier_repeats) c
             WHERE s.dataset_id = $1
             GROUP BY c.key) counted",
    )
    .bind(dataset)
    .fetch_one(&mut *store.connection().await?)
    .await?;
    Ok(counted.map(|Json(counted)| counted))
}
