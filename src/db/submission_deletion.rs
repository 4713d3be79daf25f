//! The deletion of submissions, by their holders and at the end of their retention.

use pais_core::definition::{DatasetId, SubmissionId};
use serde_json::json;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::ids::OrganizationId;
use crate::roles::Caller;

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::legal_holds::{self, Deletion, Expiry};
use super::{Store, StoreError};

/// Deletes a submission at the request of its holder, unless its dataset has a legal hold.
///
/// The rows are deleted with the commit, and then their key is destroyed, so that no file or backup
/// of the database opens them. Queued jobs that read the submission are cancelled, and running ones are
/// asked to stop (wake the workers afterwards). Releases stay.
///
/// # Errors
/// When the database or the key fails.
pub async fn delete(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
    id: SubmissionId,
) -> Result<Deletion, StoreError> {
    let deletion = SubmissionDeletion {
        organization: by.organization,
        by: by.into(),
        reason: "holder",
    };
    deletion.apply(store, dataset, id).await
}

/// Deletes the submissions whose retention has ended, unless their dataset has a legal hold.
///
/// # Errors
/// When the database fails before all of them are tried.
pub(super) async fn delete_expired(store: &Store, expiry: &mut Expiry) -> Result<(), StoreError> {
    let due: Vec<(SubmissionId, DatasetId, OrganizationId)> = sqlx::query_as(
        "SELECT s.id, d.id, d.organization_id
         FROM submissions s JOIN datasets d ON d.id = s.dataset_id
         WHERE d.deleted_at IS NULL AND d.legal_hold_since IS NULL
           AND s.created_at + d.submission_retention_days * interval '24 hours' <= $1
         ORDER BY s.id",
    )
    .bind(store.now())
    .fetch_all(&mut *store.connection().await?)
    .await?;
    for (id, dataset, organization) in due {
        let deletion = SubmissionDeletion {
            organization,
            by: Actor::SERVICE,
            reason: "retention",
        };
        expiry.count(id, deletion.apply(store, dataset, id).await);
    }
    Ok(())
}

struct SubmissionDeletion {
    organization: OrganizationId,
    by: Actor,
    reason: &'static str,
}

impl SubmissionDeletion {
    async fn apply(
        &self,
        store: &Store,
        dataset: DatasetId,
        id: SubmissionId,
    ) -> Result<Deletion, StoreError> {
        let mut transaction = store.begin().await?;
        let deletion = self.run(&mut transaction, store.now(), dataset, id).await?;
        transaction.commit().await?;
        if deletion == Deletion::Done {
            destroy_key(store, id).await?;
        }
        Ok(deletion)
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        now: OffsetDateTime,
        dataset: DatasetId,
        id: SubmissionId,
    ) -> Result<Deletion, StoreError> {
        let rows: Option<i64> = sqlx::query_scalar(
            "SELECT s.rows FROM submissions s JOIN datasets d ON d.id = s.dataset_id
             WHERE s.id = $1 AND d.id = $2 AND d.organization_id = $3 AND d.deleted_at IS NULL
             FOR UPDATE OF s",
        )
        .bind(id)
        .bind(dataset)
        .bind(self.organization)
        .fetch_optional(&mut *connection)
        .await?;
        let Some(rows) = rows else {
            return Ok(Deletion::NotFound);
        };
        if legal_holds::is_held(connection, dataset).await? {
            return Ok(Deletion::Held);
        }
        sqlx::query(
            "UPDATE jobs SET cancel_requested = true,
                 ended_at = CASE status WHEN 'queued' THEN $3 END,
                 status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
             WHERE dataset_id = $1 AND $2 = ANY (submissions) AND status IN ('queued', 'running')",
        )
        .bind(dataset)
        .bind(id)
        .bind(now)
        .execute(&mut *connection)
        .await?;
        // The chunks follow by reference.
        sqlx::query("DELETE FROM submissions WHERE id = $1")
            .bind(id)
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO keys_to_destroy (submission_id) VALUES ($1)")
            .bind(id)
            .execute(&mut *connection)
            .await?;
        let event = NewEvent {
            organization: self.organization,
            actor: self.by,
            action: Action::SubmissionDeleted,
            subject: id.0,
            detail: json!({ "dataset_id": dataset, "rows": rows, "reason": self.reason }),
            outcome: Outcome::Done,
        };
        audit::record(connection, now, event).await?;
        Ok(Deletion::Done)
    }
}

/// Destroys the keys of deleted submissions that could not be destroyed when they were deleted.
///
/// # Errors
/// When the database or a key file fails.
pub(super) async fn destroy_remaining_keys(store: &Store) -> Result<(), StoreError> {
    let remaining = sqlx::query_scalar("SELECT submission_id FROM keys_to_destroy");
    let remaining: Vec<SubmissionId> = remaining.fetch_all(&mut *store.connection().await?).await?;
    for id in remaining {
        destroy_key(store, id).await?;
    }
    Ok(())
}

/// Destroys the key of a submission whose deletion is committed.
async fn destroy_key(store: &Store, id: SubmissionId) -> Result<(), StoreError> {
    store.data_keys().destroy(store, id).await?;
    sqlx::query("DELETE FROM keys_to_destroy WHERE submission_id = $1")
        .bind(id)
        .execute(&mut *store.connection().await?)
        .await?;
    Ok(())
}
