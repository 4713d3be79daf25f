//! The keys of submissions, which open their rows: each sealed with the key of its dataset, and kept
//! where it can be destroyed.

use std::collections::BTreeMap;

use pais_core::definition::{DatasetId, SubmissionId};

use super::seal::{DataKey, SubmissionKey};
use super::{Store, StoreError};

/// The keys of a dataset's submissions (of all if `None`).
///
/// # Errors
/// When the database or a key fails.
pub(crate) async fn load(
    store: &Store,
    key: &DataKey,
    dataset: DatasetId,
    submissions: Option<&[SubmissionId]>,
) -> Result<BTreeMap<SubmissionId, SubmissionKey>, StoreError> {
    let stored: Vec<SubmissionId> = sqlx::query_scalar(
        "SELECT id FROM submissions
         WHERE dataset_id = $1 AND ($2::uuid[] IS NULL OR id = ANY($2))",
    )
    .bind(dataset)
    .bind(submissions)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let mut keys = BTreeMap::new();
    for id in stored {
        // One that is missing was destroyed since, with its rows.
        if let Some(sealed) = store
            .data_keys()
            .read(&mut *store.connection().await?, id)
            .await?
        {
            keys.insert(id, key.open_submission_key(id, &sealed)?);
        }
    }
    Ok(keys)
}
