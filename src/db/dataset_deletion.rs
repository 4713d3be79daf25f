//! The deletion of datasets, by their holders and at the end of their retention.

use pais_core::definition::DatasetId;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::ids::OrganizationId;
use crate::roles::Caller;

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::legal_holds::{Deletion, Expiry};
use super::{Store, StoreError, submission_deletion, trees};

/// Deletes a dataset at the request of its holder, unless it has a legal hold.
///
/// The schema, steps and listed values are deleted with the commit, and the answers that are stored for
/// retries of requests on the dataset; then the data key is destroyed. The rows, which nobody can read
/// from then on, are removed by [`super::reclaim::remove_deleted`]. Queued jobs are cancelled, and
/// running ones are asked to stop (wake the workers afterwards).
///
/// # Errors
/// When the database fails.
pub async fn delete(store: &Store, by: Caller, id: DatasetId) -> Result<Deletion, StoreError> {
    let deletion = DatasetDeletion {
        organization: by.organization,
        by: by.into(),
        at: store.now(),
        reason: "holder",
    };
    deletion.apply(store, id).await
}

/// Deletes the datasets whose retention has ended, unless they have a legal hold.
///
/// # Errors
/// When the database fails before all of them are tried.
pub(super) async fn delete_expired(store: &Store, expiry: &mut Expiry) -> Result<(), StoreError> {
    let now = store.now();
    let due: Vec<(DatasetId, OrganizationId)> = sqlx::query_as(
        "SELECT id, organization_id FROM datasets
         WHERE deleted_at IS NULL AND delete_after <= $1 AND legal_hold_since IS NULL",
    )
    .bind(now)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    for (id, organization) in due {
        let deletion = DatasetDeletion {
            organization,
            by: Actor::SERVICE,
            at: now,
            reason: "retention",
        };
        expiry.count(id, deletion.apply(store, id).await);
    }
    Ok(())
}

/// Destroys the keys of deleted datasets and submissions that could not be destroyed when they were deleted.
///
/// # Errors
/// When the database or a key file fails.
pub(super) async fn destroy_remaining_keys(store: &Store) -> Result<(), StoreError> {
    let remaining = sqlx::query_scalar(
        "SELECT id FROM datasets WHERE deleted_at IS NOT NULL AND key_destroyed_at IS NULL",
    );
    let remaining: Vec<DatasetId> = remaining.fetch_all(&mut *store.connection().await?).await?;
    for id in remaining {
        destroy_key(store, id).await?;
    }
    submission_deletion::destroy_remaining_keys(store).await
}

/// Destroys the key of a dataset whose deletion is committed.
async fn destroy_key(store: &Store, id: DatasetId) -> Result<(), StoreError> {
    store.data_keys().destroy(store, id).await?;
    sqlx::query("UPDATE datasets SET key_destroyed_at = $2 WHERE id = $1")
        .bind(id)
        .bind(store.now())
        .execute(&mut *store.connection().await?)
        .await?;
    Ok(())
}

struct DatasetDeletion {
    organization: OrganizationId,
    by: Actor,
    at: OffsetDateTime,
    reason: &'static str,
}

impl DatasetDeletion {
    async fn apply(&self, store: &Store, id: DatasetId) -> Result<Deletion, StoreError> {
        let mut transaction = store.begin().await?;
        let deletion = self.run(&mut transaction, id).await?;
        transaction.commit().await?;
        if deletion == Deletion::Done {
            destroy_key(store, id).await?;
        }
        Ok(deletion)
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        id: DatasetId,
    ) -> Result<Deletion, StoreError> {
        trees::lock(connection, self.organization).await?;
        let ended = sqlx::query(
            "UPDATE datasets SET deleted_at = $3, definition = NULL
             WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
                   AND legal_hold_since IS NULL",
        )
        .bind(self.organization)
        .bind(id)
        .bind(self.at)
        .execute(&mut *connection)
        .await?;
        if ended.rows_affected() == 0 {
            let is_held: Option<bool> = sqlx::query_scalar(
                "SELECT legal_hold_since IS NOT NULL FROM datasets
                 WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL",
            )
            .bind(self.organization)
            .bind(id)
            .fetch_optional(connection)
            .await?;
            return Ok(match is_held {
                Some(true) => Deletion::Held,
                _ => Deletion::NotFound,
            });
        }
        // `super::reclaim` removes them.
        let submissions: i64 =
            sqlx::query_scalar("SELECT count(*) FROM submissions WHERE dataset_id = $1")
                .bind(id)
                .fetch_one(&mut *connection)
                .await?;
        trees::unlink(connection, self.organization, id).await?;
        // Neither steps nor listed values nor the raw rows of releases can be read without the key.
        sqlx::query(
            "DELETE FROM release_sources USING releases
             WHERE releases.id = release_sources.release_id AND releases.dataset_id = $1",
        )
        .bind(id)
        .execute(&mut *connection)
        .await?;
        sqlx::query(
            "DELETE FROM job_steps USING jobs
             WHERE jobs.id = job_steps.job_id AND jobs.dataset_id = $1",
        )
        .bind(id)
        .execute(&mut *connection)
        .await?;
        sqlx::query(
            "UPDATE releases SET sealed_distributions = NULL
             WHERE dataset_id = $1 AND sealed_distributions IS NOT NULL",
        )
        .bind(id)
        .execute(&mut *connection)
        .await?;
        sqlx::query(
            "UPDATE jobs SET sealed_definition = NULL
             WHERE dataset_id = $1 AND sealed_definition IS NOT NULL",
        )
        .bind(id)
        .execute(&mut *connection)
        .await?;
        self.delete_answers(connection, id).await?;
        sqlx::query(
            "UPDATE jobs SET cancel_requested = true,
                 ended_at = CASE status WHEN 'queued' THEN $2 END,
                 status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
             WHERE dataset_id = $1 AND status IN ('queued', 'running')",
        )
        .bind(id)
        .bind(self.at)
        .execute(&mut *connection)
        .await?;
        let event = NewEvent {
            organization: self.organization,
            actor: self.by,
            action: Action::DatasetDeleted,
            subject: id.0,
            detail: serde_json::json!({
                "reason": self.reason,
                "submissions": submissions,
            }),
            outcome: Outcome::Done,
        };
        audit::record(connection, self.at, event).await?;
        Ok(Deletion::Done)
    }

    /// Deletes the answers to requests that created a submission or a job of the dataset: they have
    /// the digest of its rows and the values that the jobs list, under another key.
    async fn delete_answers(
        &self,
        connection: &mut PgConnection,
        id: DatasetId,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM idempotent_answers
             WHERE organization_id = $1 AND status IS NOT NULL
               AND (headers ->> 'location' = '/v1/datasets/' || $2::uuid::text
                    OR headers ->> 'location' IN (SELECT '/v1/jobs/' || jobs.id::text FROM jobs
                                                  WHERE jobs.dataset_id = $2))",
        )
        .bind(self.organization)
        .bind(id)
        .execute(connection)
        .await?;
        Ok(())
    }
}
