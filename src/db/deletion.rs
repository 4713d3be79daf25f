//! The deletion of datasets and submissions, by their holders and at the end of their retention. What is due
//! is recorded in the database, so that it survives restarts and failures.
//!
//! A key is destroyed after the commit, so that no file or backup of the database opens what it sealed.
//! `keys_to_destroy` has those whose destruction is still to be done.

use pais_core::definition::{DatasetId, SubmissionId};
use serde_json::{Value, json};
use sqlx::{PgConnection, Postgres, Transaction};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::Caller;

use super::audit::{self, Action, Actor, NewEvent};
use super::data_keys::KeyOwner;
use super::jobs::cancel_jobs;
use super::key_ring::KeyRing;
use super::{Store, StoreError, backup, data_keys, datasets, token_validity, trees};

/// The result of a deletion that a legal hold prevents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is deleted.
    Done,
    /// The organization has no such dataset or submission.
    NotFound,
    /// The dataset has a legal hold.
    Held,
}

/// Deletes a dataset at the request of its holder, unless it has a legal hold.
///
/// The schema, steps and listed values are deleted with the commit, and the answers that are stored for
/// retries of requests on the dataset; then the data key is destroyed. The rows, which nobody can read
/// from then on, are removed by `reclaim::remove_deleted`. Queued jobs are cancelled, and
/// running ones are asked to stop (wake the workers afterwards).
pub async fn delete_dataset(
    store: &Store,
    by: Caller,
    id: DatasetId,
) -> Result<Deletion, StoreError> {
    let deletion = Deleter::holder(by).delete_dataset(store, id).await?;
    if deletion == Deletion::Done {
        destroy_keys(store, &[id.into()]).await;
    }
    Ok(deletion)
}

/// Deletes a submission at the request of its holder, unless its dataset has a legal hold.
///
/// Its key is destroyed after the commit. The rows, which nobody can read from then on, are removed by
/// `reclaim::remove_deleted`. Queued jobs that read the submission are cancelled, and running ones are asked to
/// stop (wake the workers afterwards). Releases stay.
pub async fn delete_submission(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
    id: SubmissionId,
) -> Result<Deletion, StoreError> {
    let deleter = Deleter::holder(by);
    let deletion = deleter.delete_submission(store, dataset, id).await?;
    if deletion == Deletion::Done {
        destroy_keys(store, &[id.into()]).await;
    }
    Ok(deletion)
}

/// Deletes the datasets and then the submissions whose retention has ended, unless they have a legal hold, and
/// destroys their keys. Called periodically. Returns how many are deleted. One that cannot be deleted does not prevent
/// the others; it is tried again by the next call.
pub async fn delete_expired(store: &Store) -> Result<u64, StoreError> {
    let mut deleted = 0;
    let mut count = |id: Uuid, result: Result<Deletion, StoreError>| match result {
        Ok(Deletion::Done) => deleted += 1,
        // Somebody else deleted it, or it has had a hold since.
        Ok(Deletion::NotFound | Deletion::Held) => {}
        Err(error) => tracing::error!(
            %id,
            error = &error as &dyn std::error::Error,
            "it could not be deleted at the end of its retention; this is tried again"
        ),
    };
    let due: Vec<(DatasetId, OrganizationId)> = sqlx::query_as(
        "SELECT id, organization_id FROM datasets
         WHERE deleted_at IS NULL AND delete_after <= $1 AND legal_hold_since IS NULL",
    )
    .bind(store.now())
    .fetch_all(&mut *store.connection().await?)
    .await?;
    for (id, organization) in due {
        let deleter = Deleter::retention(organization);
        count(id.0, deleter.delete_dataset(store, id).await);
    }
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
        let deleter = Deleter::retention(organization);
        count(id.0, deleter.delete_submission(store, dataset, id).await);
    }
    destroy_remaining_keys(store).await?;
    Ok(deleted)
}

/// Destroys the keys that crashes and refused rows have left: key files without a dataset or submission, and
/// keys of deleted datasets and submissions. If the database never had a dataset, key files are not leftovers:
/// a dump is about to be restored into it.
///
/// # Errors
/// [`StoreError::KeysOfAnother`]; when the database or a key file fails.
pub async fn destroy_leftover_keys(store: &Store, keys: &KeyRing) -> Result<(), StoreError> {
    // Before the first key is written, so that no other database marks the directory.
    let are_own = store.data_keys().are_of(keys.database_mark()).await?;
    if !datasets::has_had_any(store).await? {
        return destroy_remaining_keys(store).await;
    }
    if !are_own {
        return Err(StoreError::KeysOfAnother);
    }
    let live = backup::key_owners(store).await?;
    let mut destroyed = 0;
    for owner in store.data_keys().of_no_owner(live).await? {
        destroyed += u64::from(destroy_unowned(store, owner).await?);
    }
    if destroyed > 0 {
        tracing::warn!(
            destroyed,
            "key files without a dataset or submission were destroyed"
        );
    }
    destroy_remaining_keys(store).await
}

/// Destroys a key whose owner does not exist, unless a transaction that makes the owner is in progress: rows in
/// transfer have a key before they are a submission, however long they take. Returns whether it was destroyed.
async fn destroy_unowned(store: &Store, owner: KeyOwner) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    if !data_keys::try_lock(&mut transaction, owner).await?
        || datasets::owns_key(&mut transaction, owner).await?
    {
        return Ok(false);
    }
    let destroyed = store.data_keys().destroy(store, &[owner]).await?;
    Ok(!destroyed.is_empty())
}

async fn destroy_remaining_keys(store: &Store) -> Result<(), StoreError> {
    let remaining = sqlx::query_scalar("SELECT owner_id FROM keys_to_destroy");
    let remaining: Vec<KeyOwner> = remaining.fetch_all(&mut *store.connection().await?).await?;
    if !remaining.is_empty() {
        destroy_keys(store, &remaining).await;
    }
    Ok(())
}

/// Destroys the keys of datasets and submissions whose deletion is committed. What fails is logged: the next cleanup
/// tries again.
async fn destroy_keys(store: &Store, owners: &[KeyOwner]) {
    let destroying = async {
        let destroyed = store.data_keys().destroy(store, owners).await?;
        sqlx::query("DELETE FROM keys_to_destroy WHERE owner_id = ANY($1)")
            .bind(destroyed)
            .execute(&mut *store.connection().await?)
            .await?;
        Ok::<_, StoreError>(())
    };
    if let Err(error) = destroying.await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "keys of deleted rows could not be destroyed; this is tried again"
        );
    }
}

/// The data of a deleted dataset that cannot be read without its key, that contains the digest of its rows, or that
/// contains the values that jobs list under another key (such as stored responses to requests that created a
/// submission or a job). In the lock order of [`super::publications::lock`] and the locks that follow it.
const SEALED_PARTS: [&str; 5] = [
    "UPDATE publications SET sealed_definition = NULL
     WHERE dataset_id = $1 AND sealed_definition IS NOT NULL",
    "DELETE FROM release_sources USING releases
     WHERE releases.id = release_sources.release_id AND releases.dataset_id = $1",
    "UPDATE releases SET sealed_distributions = NULL
     WHERE dataset_id = $1 AND sealed_distributions IS NOT NULL",
    "UPDATE jobs SET sealed_definition = NULL
     WHERE dataset_id = $1 AND sealed_definition IS NOT NULL",
    "DELETE FROM idempotent_answers
     WHERE organization_id = (SELECT organization_id FROM datasets WHERE id = $1)
       AND status IS NOT NULL
       AND (headers ->> 'location' = '/v1/datasets/' || $1::uuid::text
            OR headers ->> 'location' IN (SELECT '/v1/jobs/' || jobs.id::text FROM jobs
                                          WHERE jobs.dataset_id = $1))",
];

/// Who deletes data of an organization, and why.
struct Deleter {
    organization: OrganizationId,
    /// `None` for the cleanup.
    by: Option<Caller>,
    reason: &'static str,
}

impl Deleter {
    fn holder(by: Caller) -> Self {
        Self {
            organization: by.organization,
            by: Some(by),
            reason: "holder",
        }
    }

    fn retention(organization: OrganizationId) -> Self {
        Self {
            organization,
            by: None,
            reason: "retention",
        }
    }

    async fn delete_dataset(&self, store: &Store, id: DatasetId) -> Result<Deletion, StoreError> {
        let mut transaction = token_validity::begin(store, self.by).await?;
        trees::lock(&mut transaction, self.organization).await?;
        if let Some(prevented) = self.prevented(&mut transaction, id).await? {
            return Ok(prevented);
        }
        let now = store.now();
        sqlx::query("UPDATE datasets SET deleted_at = $2, definition = NULL WHERE id = $1")
            .bind(id)
            .bind(now)
            .execute(&mut *transaction)
            .await?;
        let submissions: i64 =
            sqlx::query_scalar("SELECT count(*) FROM submissions WHERE dataset_id = $1")
                .bind(id)
                .fetch_one(&mut *transaction)
                .await?;
        trees::unlink(&mut transaction, self.organization, id).await?;
        for statement in SEALED_PARTS {
            let query = sqlx::query(statement).bind(id);
            query.execute(&mut *transaction).await?;
        }
        cancel_jobs(&mut transaction, id, None, now).await?;
        // This waits for workers that are ending one of the jobs, and deletes what they have stored.
        sqlx::query(
            "DELETE FROM job_steps USING jobs WHERE jobs.id = job_steps.job_id AND jobs.dataset_id = $1",
        )
        .bind(id)
        .execute(&mut *transaction)
        .await?;
        let detail = json!({ "reason": self.reason, "submissions": submissions });
        let event = self.event(Action::DatasetDeleted, id.0, detail);
        commit(store, transaction, id.into(), event).await
    }

    async fn delete_submission(
        &self,
        store: &Store,
        dataset: DatasetId,
        id: SubmissionId,
    ) -> Result<Deletion, StoreError> {
        let mut transaction = token_validity::begin(store, self.by).await?;
        if let Some(prevented) = self.prevented(&mut transaction, dataset).await? {
            return Ok(prevented);
        }
        // `super::reclaim` removes the chunks.
        let rows: Option<i64> = sqlx::query_scalar(
            "DELETE FROM submissions WHERE id = $1 AND dataset_id = $2 RETURNING rows",
        )
        .bind(id)
        .bind(dataset)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(rows) = rows else {
            return Ok(Deletion::NotFound);
        };
        cancel_jobs(&mut transaction, dataset, Some(id), store.now()).await?;
        let detail = json!({ "dataset_id": dataset, "rows": rows, "reason": self.reason });
        let event = self.event(Action::SubmissionDeleted, id.0, detail);
        commit(store, transaction, id.into(), event).await
    }

    /// Why nothing of a dataset can be deleted; `None` if deletion is possible until the end of the
    /// transaction.
    async fn prevented(
        &self,
        connection: &mut PgConnection,
        dataset: DatasetId,
    ) -> Result<Option<Deletion>, StoreError> {
        let is_held: Option<bool> = sqlx::query_scalar(
            "SELECT legal_hold_since IS NOT NULL FROM datasets
             WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE",
        )
        .bind(dataset)
        .bind(self.organization)
        .fetch_optional(connection)
        .await?;
        Ok(match is_held {
            None => Some(Deletion::NotFound),
            Some(true) => Some(Deletion::Held),
            Some(false) => None,
        })
    }

    fn event(&self, action: Action, subject: Uuid, detail: Value) -> NewEvent {
        let by = self.by.map_or(Actor::SERVICE, Actor::from);
        NewEvent::of(self.organization, by, action, subject, detail)
    }
}

/// Cancels the jobs of a dataset, or those that read one of its submissions.
async fn cancel_jobs(
    connection: &mut PgConnection,
    dataset: DatasetId,
    submission: Option<SubmissionId>,
    now: OffsetDateTime,
) -> Result<(), StoreError> {
    sqlx::query(concat!(
        cancel_jobs!(),
        "dataset_id = $2 AND ($3::uuid IS NULL OR $3 = ANY (submissions))"
    ))
    .bind(now)
    .bind(dataset)
    .bind(submission)
    .execute(connection)
    .await?;
    Ok(())
}

/// Commits a deletion, after which the key is to be destroyed.
async fn commit(
    store: &Store,
    mut transaction: Transaction<'static, Postgres>,
    owner: KeyOwner,
    event: NewEvent,
) -> Result<Deletion, StoreError> {
    sqlx::query("INSERT INTO keys_to_destroy (owner_id) VALUES ($1)")
        .bind(owner)
        .execute(&mut *transaction)
        .await?;
    audit::commit(transaction, store.now(), event).await?;
    Ok(Deletion::Done)
}
