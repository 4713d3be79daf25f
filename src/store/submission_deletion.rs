//! The deletion of a submission by its holder.

use pais_core::definition::{DatasetId, SubmissionId};
use serde_json::json;
use uuid::Uuid;

use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError};

/// Deletes a submission; returns `false` if there is no such submission of the dataset.
///
/// The rows are deleted with the commit, and then their key is destroyed, so that no file or backup
/// of the database opens them. Rows of an earlier version have no key of their own: what is left of
/// them in files of the database can be opened until the dataset is deleted. Queued jobs that read
/// the submission are cancelled, and running ones are asked to stop (wake the workers afterwards).
/// Releases stay.
///
/// # Errors
/// When the database or the key fails.
pub async fn delete(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
    id: SubmissionId,
) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    let rows: Option<i64> = sqlx::query_scalar(
        "SELECT s.rows FROM submissions s JOIN datasets d ON d.id = s.dataset_id
         WHERE s.id = $1 AND d.id = $2 AND d.organization_id = $3 AND d.deleted_at IS NULL
         FOR UPDATE OF s",
    )
    .bind(id.0)
    .bind(dataset.0)
    .bind(by.organization.0)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(rows) = rows else {
        return Ok(false);
    };
    sqlx::query(
        "UPDATE jobs SET cancel_requested = true,
             ended_at = CASE status WHEN 'queued' THEN $3 END,
             status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
         WHERE dataset_id = $1 AND $2 = ANY (submissions) AND status IN ('queued', 'running')",
    )
    .bind(dataset.0)
    .bind(id.0)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    // The chunks follow by reference.
    sqlx::query("DELETE FROM submissions WHERE id = $1")
        .bind(id.0)
        .execute(&mut *transaction)
        .await?;
    sqlx::query("INSERT INTO keys_to_destroy (submission_id) VALUES ($1)")
        .bind(id.0)
        .execute(&mut *transaction)
        .await?;
    let detail = json!({ "dataset_id": dataset, "rows": rows });
    let event = NewEvent::by(by, Action::SubmissionDeleted, id.0, detail);
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    destroy_key(store, id).await?;
    Ok(true)
}

/// Destroys the keys of deleted submissions that could not be destroyed when they were deleted.
///
/// # Errors
/// When the database or a key file fails.
pub(super) async fn destroy_remaining_keys(store: &Store) -> Result<(), StoreError> {
    let remaining = sqlx::query_scalar("SELECT submission_id FROM keys_to_destroy");
    let remaining: Vec<Uuid> = remaining.fetch_all(&mut *store.connection().await?).await?;
    for id in remaining {
        destroy_key(store, SubmissionId(id)).await?;
    }
    Ok(())
}

/// Destroys the key of a submission whose deletion is committed.
async fn destroy_key(store: &Store, id: SubmissionId) -> Result<(), StoreError> {
    store.data_keys().destroy(store, id).await?;
    sqlx::query("DELETE FROM keys_to_destroy WHERE submission_id = $1")
        .bind(id.0)
        .execute(&mut *store.connection().await?)
        .await?;
    Ok(())
}
