//! Datasets: their schemas, their data keys, and their deletion.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{OrganizationId, TokenId};
use crate::roles::Caller;
use pais_core::definition::TaxonomyNode;
use pais_core::definition::{
    ColumnDefinition, DatasetDefinition, DatasetId, SubmissionId, TaxonomyId,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::{Tree, TreeLimits};

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError, violates};

/// The content of `datasets.definition`: the definition as declared, and the trees it refers to by
/// id, as they were then. So loading a dataset needs no other table.
#[derive(Serialize, Deserialize)]
struct StoredDefinition {
    definition: DatasetDefinition,
    trees: HashMap<TaxonomyId, TaxonomyNode>,
}

/// A dataset that is not deleted, with everything that submissions and jobs need.
#[derive(Clone, Debug)]
pub struct StoredDataset {
    /// Its id.
    pub id: DatasetId,
    /// Unique among its organization's datasets that are not deleted.
    pub name: String,
    /// The definition as declared.
    pub definition: DatasetDefinition,
    /// The resolved schema: the columns with their trees.
    pub schema: Arc<Schema>,
    /// Its wrapped data key, for [`super::seal::KeyRing::open`].
    pub wrapped_key: Vec<u8>,
    /// When it was declared.
    pub created_at: OffsetDateTime,
    /// When its rows are deleted automatically.
    pub delete_after: Option<OffsetDateTime>,
}

/// The state of a dataset that exists or existed.
#[derive(Clone, Debug)]
pub enum DatasetState {
    /// It exists.
    Live(Box<StoredDataset>),
    /// It was deleted.
    Deleted,
}

/// One batch of rows, as its dataset lists it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SubmissionSummary {
    /// Its id.
    pub id: SubmissionId,
    /// Number of records.
    pub rows: i64,
    /// Length of the decoded body.
    pub bytes: i64,
    /// Of the decoded body, hexadecimal.
    pub sha256: String,
    /// When it was complete.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// A dataset as its holder sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Dataset {
    /// Its id.
    pub id: DatasetId,
    /// Unique among the organization's datasets.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// As declared.
    pub columns: Vec<ColumnDefinition>,
    /// Days after which the rows are deleted by themselves.
    pub retention_days: Option<i64>,
    /// When it was declared.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Number of records in all submissions.
    pub rows: i64,
    /// The batches, oldest first.
    pub submissions: Vec<SubmissionSummary>,
}

/// Creates a dataset; returns `None` if the name is taken. `trees` contains the taxonomies that the
/// definition refers to by id.
///
/// # Errors
/// When the database fails.
pub async fn create(
    store: &Store,
    by: Caller,
    id: DatasetId,
    definition: DatasetDefinition,
    trees: HashMap<TaxonomyId, TaxonomyNode>,
    wrapped_key: Vec<u8>,
) -> Result<Option<Dataset>, StoreError> {
    let now = store.now();
    let declared = StoredDefinition { definition, trees };
    let delete_after = declared
        .definition
        .retention_days
        .map(|days| now + Duration::days(days));
    let mut transaction = store.begin().await?;
    let inserted = sqlx::query(
        "INSERT INTO datasets
             (id, organization_id, name, definition, wrapped_key, created_at, delete_after)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id.0)
    .bind(by.organization.0)
    .bind(&declared.definition.name)
    .bind(Json(&declared))
    .bind(wrapped_key)
    .bind(now)
    .bind(delete_after)
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "datasets_name") => return Ok(None),
        inserted => inserted?,
    };
    let definition = declared.definition;
    let detail =
        serde_json::json!({ "name": definition.name, "columns": definition.columns.len() });
    let event = NewEvent::by(by, Action::DatasetCreated, id.0, detail);
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(Some(Dataset {
        id,
        name: definition.name,
        description: definition.description,
        columns: definition.columns,
        retention_days: definition.retention_days,
        created_at: now,
        rows: 0,
        submissions: Vec::new(),
    }))
}

/// A dataset of the organization that is not deleted; `None` if there is none.
///
/// # Errors
/// When the database fails, or the stored definition is damaged.
pub async fn load(
    store: &Store,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<StoredDataset>, StoreError> {
    Ok(match find_any(store, organization, id).await? {
        Some(DatasetState::Live(dataset)) => Some(*dataset),
        Some(DatasetState::Deleted) | None => None,
    })
}

/// A dataset of the organization, deleted or not; `None` if the organization never had it.
///
/// # Errors
/// When the database fails, or the stored definition is damaged.
pub async fn find_any(
    store: &Store,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<DatasetState>, StoreError> {
    let row = sqlx::query(
        "SELECT id, name, definition, wrapped_key, created_at, delete_after FROM datasets
         WHERE organization_id = $1 AND id = $2",
    )
    .bind(organization.0)
    .bind(id.0)
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let declared: Option<Json<StoredDefinition>> = row.try_get("definition")?;
    let wrapped_key: Option<Vec<u8>> = row.try_get("wrapped_key")?;
    let (Some(Json(declared)), Some(wrapped_key)) = (declared, wrapped_key) else {
        return Ok(Some(DatasetState::Deleted));
    };
    Ok(Some(DatasetState::Live(Box::new(StoredDataset {
        id,
        name: row.try_get("name")?,
        schema: Arc::new(schema(&declared)?),
        definition: declared.definition,
        wrapped_key,
        created_at: row.try_get("created_at")?,
        delete_after: row.try_get("delete_after")?,
    }))))
}

/// The wrapped data key of the newest dataset that is not deleted, to check a key-encryption key;
/// `None` if there is no dataset.
///
/// # Errors
/// When the database fails.
pub async fn newest_key(store: &Store) -> Result<Option<(DatasetId, Vec<u8>)>, StoreError> {
    let row = sqlx::query(
        "SELECT id, wrapped_key FROM datasets WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 1",
    )
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let id = DatasetId(row.try_get("id")?);
    Ok(Some((id, row.try_get("wrapped_key")?)))
}

/// The schema of a stored definition. It is resolved without limits, because the limits may have
/// been lowered since the definition was accepted.
fn schema(declared: &StoredDefinition) -> Result<Schema, StoreError> {
    let damaged = StoreError::Damaged {
        what: "a dataset's schema",
    };
    let limits = TreeLimits {
        leaves: usize::MAX,
        depth: usize::MAX,
    };
    let mut trees = HashMap::with_capacity(declared.trees.len());
    for (&id, root) in &declared.trees {
        match Tree::new(root, limits) {
            Ok(tree) => trees.insert(id, Arc::new(tree)),
            Err(_) => return Err(damaged),
        };
    }
    Schema::resolve(&declared.definition, limits, |id| trees.get(&id).cloned()).map_err(|_| damaged)
}

/// The organization's datasets after `after`, oldest first, at most `limit`.
///
/// # Errors
/// When the database fails.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Dataset>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, definition -> 'definition' AS definition, created_at FROM datasets
         WHERE organization_id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id LIMIT $3",
    )
    .bind(organization.0)
    .bind(after)
    .bind(limit)
    .fetch_all(store.pool())
    .await?;
    with_submissions(store, &rows).await
}

/// A dataset of the organization that is not deleted; `None` if there is none.
///
/// # Errors
/// When the database fails.
pub async fn find(
    store: &Store,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<Dataset>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, definition -> 'definition' AS definition, created_at FROM datasets
         WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL",
    )
    .bind(organization.0)
    .bind(id.0)
    .fetch_all(store.pool())
    .await?;
    Ok(with_submissions(store, &rows).await?.pop())
}

async fn with_submissions(store: &Store, rows: &[PgRow]) -> Result<Vec<Dataset>, StoreError> {
    let ids: Vec<Uuid> = rows
        .iter()
        .map(|row| row.try_get("id"))
        .collect::<Result<_, _>>()?;
    let submissions = sqlx::query(
        "SELECT dataset_id, id, rows, bytes, encode(sha256, 'hex') AS sha256, created_at
         FROM submissions WHERE dataset_id = ANY($1) ORDER BY id",
    )
    .bind(&ids)
    .fetch_all(store.pool())
    .await?;
    let mut by_dataset: HashMap<Uuid, Vec<SubmissionSummary>> = HashMap::new();
    for row in submissions {
        let summary = SubmissionSummary {
            id: SubmissionId(row.try_get("id")?),
            rows: row.try_get("rows")?,
            bytes: row.try_get("bytes")?,
            sha256: row.try_get("sha256")?,
            created_at: row.try_get("created_at")?,
        };
        by_dataset
            .entry(row.try_get("dataset_id")?)
            .or_default()
            .push(summary);
    }
    let mut datasets = Vec::with_capacity(rows.len());
    for row in rows {
        let id: Uuid = row.try_get("id")?;
        let Json(definition) = row.try_get::<Json<DatasetDefinition>, _>("definition")?;
        let submissions = by_dataset.remove(&id).unwrap_or_default();
        datasets.push(Dataset {
            id: DatasetId(id),
            name: definition.name,
            description: definition.description,
            columns: definition.columns,
            retention_days: definition.retention_days,
            created_at: row.try_get("created_at")?,
            rows: submissions.iter().map(|submission| submission.rows).sum(),
            submissions,
        });
    }
    Ok(datasets)
}

/// Deletes a dataset at the request of its holder; returns `false` if there is no such dataset.
///
/// The schema, the data key and the sealed rows are deleted with the commit. Queued jobs are
/// cancelled, and running ones are asked to stop (wake the workers afterwards).
///
/// # Errors
/// When the database fails.
pub async fn delete(store: &Store, by: Caller, id: DatasetId) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let deletion = DatasetDeletion {
        organization: by.organization,
        by: Some(by.token),
        at: store.now(),
        reason: "holder",
    };
    let deleted = deletion.run(&mut transaction, id).await?;
    transaction.commit().await?;
    Ok(deleted)
}

/// Deletes the datasets whose retention has ended; returns their number. Called periodically.
///
/// # Errors
/// When the database fails. Datasets already deleted by this call stay deleted.
pub async fn delete_expired(store: &Store) -> Result<u64, StoreError> {
    let now = store.now();
    let due = sqlx::query(
        "SELECT id, organization_id FROM datasets WHERE deleted_at IS NULL AND delete_after <= $1",
    )
    .bind(now)
    .fetch_all(store.pool())
    .await?;
    let mut deleted = 0;
    for row in due {
        let deletion = DatasetDeletion {
            organization: OrganizationId(row.try_get("organization_id")?),
            by: None,
            at: now,
            reason: "retention",
        };
        let mut transaction = store.begin().await?;
        let id = DatasetId(row.try_get("id")?);
        deleted += u64::from(deletion.run(&mut transaction, id).await?);
        transaction.commit().await?;
    }
    Ok(deleted)
}

struct DatasetDeletion {
    organization: OrganizationId,
    by: Option<TokenId>,
    at: OffsetDateTime,
    reason: &'static str,
}

impl DatasetDeletion {
    async fn run(&self, connection: &mut PgConnection, id: DatasetId) -> Result<bool, StoreError> {
        let ended = sqlx::query(
            "UPDATE datasets SET deleted_at = $3, definition = NULL, wrapped_key = NULL
             WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL",
        )
        .bind(self.organization.0)
        .bind(id.0)
        .bind(self.at)
        .execute(&mut *connection)
        .await?;
        if ended.rows_affected() == 0 {
            return Ok(false);
        }
        let submissions = sqlx::query("DELETE FROM submissions WHERE dataset_id = $1")
            .bind(id.0)
            .execute(&mut *connection)
            .await?;
        // The labels of steps can be raw values of columns without a taxonomy.
        sqlx::query(
            "DELETE FROM job_steps USING jobs
             WHERE jobs.id = job_steps.job_id AND jobs.dataset_id = $1",
        )
        .bind(id.0)
        .execute(&mut *connection)
        .await?;
        sqlx::query(
            "UPDATE jobs SET cancel_requested = true,
                 ended_at = CASE status WHEN 'queued' THEN $2 END,
                 status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
             WHERE dataset_id = $1 AND status IN ('queued', 'running')",
        )
        .bind(id.0)
        .bind(self.at)
        .execute(&mut *connection)
        .await?;
        let event = NewEvent {
            organization: self.organization,
            token: self.by,
            action: Action::DatasetDeleted,
            subject: id.0,
            detail: serde_json::json!({
                "reason": self.reason,
                "submissions": submissions.rows_affected(),
            }),
        };
        audit::record(connection, self.at, event).await?;
        Ok(true)
    }
}
