//! Datasets: their schemas and their data keys.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::Caller;
use pais_core::definition::TaxonomyNode;
use pais_core::definition::{
    ColumnDefinition, DatasetDefinition, DatasetId, SubmissionId, TaxonomyId,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::{Tree, TreeLimits};
use pais_core::warning::Warning;

use super::audit::{self, Action, NewEvent};
use super::key_ring::KeyRing;
use super::seal::{DataKey, Place};
use super::submissions::ColumnWarning;
use super::{Store, StoreError, service_keys, violates};

pub use super::dataset_deletion::{delete, delete_expired, destroy_remaining_keys};

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
    /// Its wrapped data key, for [`super::key_ring::KeyRing::open`].
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
    /// What the holder should know about its columns and its rows.
    pub warnings: Vec<Warning>,
}

/// A dataset to be created.
#[derive(Clone, Debug)]
pub struct NewDataset {
    /// Its id.
    pub id: DatasetId,
    /// The definition as declared.
    pub definition: DatasetDefinition,
    /// The taxonomies that the definition refers to by id.
    pub trees: HashMap<TaxonomyId, TaxonomyNode>,
    /// Its wrapped data key.
    pub wrapped_key: Vec<u8>,
    /// What the holder should know about its columns.
    pub warnings: Vec<Warning>,
}

/// Creates a dataset; returns `None` if the name is taken.
///
/// # Errors
/// When the database fails.
pub async fn create(
    store: &Store,
    keys: &KeyRing,
    by: Caller,
    new: NewDataset,
) -> Result<Option<Dataset>, StoreError> {
    let NewDataset {
        id,
        definition,
        trees,
        wrapped_key,
        warnings,
    } = new;
    let now = store.now();
    let declared = StoredDefinition { definition, trees };
    let delete_after = declared
        .definition
        .retention_days
        .map(|days| now + Duration::days(days));
    let mut transaction = store.begin().await?;
    let wrapped_key =
        service_keys::current_wrapping(&mut transaction, keys, id, wrapped_key).await?;
    let inserted = sqlx::query(
        "INSERT INTO datasets
             (id, organization_id, name, definition, created_at, delete_after, warnings)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id.0)
    .bind(by.organization.0)
    .bind(&declared.definition.name)
    .bind(Json(&declared))
    .bind(now)
    .bind(delete_after)
    .bind(Json(&warnings))
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "datasets_name") => return Ok(None),
        inserted => inserted?,
    };
    // The key is there before the dataset is: a crash in between leaves a key without a dataset.
    let stored = store.data_keys();
    stored.write(&mut transaction, id, &wrapped_key).await?;
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
        warnings,
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
        "SELECT id, name, definition, created_at, delete_after FROM datasets
         WHERE organization_id = $1 AND id = $2",
    )
    .bind(organization.0)
    .bind(id.0)
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let declared: Option<Json<StoredDefinition>> = row.try_get("definition")?;
    let Some(Json(declared)) = declared else {
        return Ok(Some(DatasetState::Deleted));
    };
    let wrapped_key = store.data_keys().read(store.pool(), id).await?;
    // Deleted since the row was read.
    let Some(wrapped_key) = wrapped_key else {
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
pub(super) async fn newest_key(store: &Store) -> Result<Option<(DatasetId, Vec<u8>)>, StoreError> {
    let row = sqlx::query(
        "SELECT id, wrapped_key FROM datasets WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 1",
    )
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let id = DatasetId(row.try_get("id")?);
    let wrapped = match row.try_get("wrapped_key")? {
        Some(wrapped) => Some(wrapped),
        None => store.data_keys().read(store.pool(), id).await?,
    };
    Ok(wrapped.map(|wrapped| (id, wrapped)))
}

/// The datasets that are not deleted.
///
/// # Errors
/// When the database fails.
pub(super) async fn live_ids(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let ids = sqlx::query_scalar("SELECT id FROM datasets WHERE deleted_at IS NULL ORDER BY id");
    Ok(ids.fetch_all(store.pool()).await?)
}

/// Computes the warnings about the columns of datasets of an earlier version, which has none.
///
/// # Errors
/// When the database fails, or a stored definition is damaged.
pub(super) async fn add_missing_warnings(store: &Store) -> Result<(), StoreError> {
    let rows = sqlx::query(
        "SELECT id, definition FROM datasets WHERE warnings IS NULL AND deleted_at IS NULL",
    )
    .fetch_all(store.pool())
    .await?;
    for row in rows {
        let id: Uuid = row.try_get("id")?;
        let Json(declared) = row.try_get::<Json<StoredDefinition>, _>("definition")?;
        sqlx::query("UPDATE datasets SET warnings = $2 WHERE id = $1")
            .bind(id)
            .bind(Json(schema(&declared)?.warnings()))
            .execute(store.pool())
            .await?;
    }
    Ok(())
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

/// The columns of a dataset as [`described`] reads them.
macro_rules! columns {
    () => {
        "id, definition -> 'definition' AS definition, created_at, warnings"
    };
}

/// The organization's datasets after `after`, oldest first, at most `limit`.
///
/// # Errors
/// When the database fails, or a digest cannot be decrypted.
pub async fn list(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Dataset>, StoreError> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM datasets
         WHERE organization_id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id LIMIT $3",
    ))
    .bind(organization.0)
    .bind(after)
    .bind(limit)
    .fetch_all(store.pool())
    .await?;
    described(store, keys, &rows).await
}

/// A dataset of the organization that is not deleted; `None` if there is none.
///
/// # Errors
/// When the database fails, or a digest cannot be decrypted.
pub async fn find(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<Dataset>, StoreError> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM datasets WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL",
    ))
    .bind(organization.0)
    .bind(id.0)
    .fetch_all(store.pool())
    .await?;
    Ok(described(store, keys, &rows).await?.pop())
}

/// Datasets with their submissions.
async fn described(
    store: &Store,
    keys: &KeyRing,
    rows: &[PgRow],
) -> Result<Vec<Dataset>, StoreError> {
    let ids: Vec<Uuid> = rows
        .iter()
        .map(|row| row.try_get("id"))
        .collect::<Result<_, _>>()?;
    let submissions = sqlx::query(
        "SELECT dataset_id, id, rows, bytes, sealed_sha256, created_at, warnings
         FROM submissions WHERE dataset_id = ANY($1) ORDER BY id",
    )
    .bind(&ids)
    .fetch_all(store.pool())
    .await?;
    let mut by_dataset: HashMap<Uuid, Vec<PgRow>> = HashMap::new();
    for row in submissions {
        let rows = by_dataset.entry(row.try_get("dataset_id")?).or_default();
        rows.push(row);
    }
    let mut datasets = Vec::with_capacity(rows.len());
    for row in rows {
        let id: Uuid = row.try_get("id")?;
        let Json(definition) = row.try_get::<Json<DatasetDefinition>, _>("definition")?;
        let wrapped = store.data_keys().read(store.pool(), DatasetId(id)).await?;
        // Deleted since the row was read.
        let Some(wrapped) = wrapped else { continue };
        let key = keys.open(DatasetId(id), &wrapped)?;
        let sent = by_dataset.remove(&id).unwrap_or_default();
        let submissions = sent.iter().map(|row| summary(&key, row));
        let submissions = submissions.collect::<Result<Vec<_>, StoreError>>()?;
        let declared: Option<Json<Vec<Warning>>> = row.try_get("warnings")?;
        let mut warnings = declared.map(|Json(warnings)| warnings).unwrap_or_default();
        warnings.extend(row_warnings(&sent)?);
        datasets.push(Dataset {
            id: DatasetId(id),
            name: definition.name,
            description: definition.description,
            columns: definition.columns,
            retention_days: definition.retention_days,
            created_at: row.try_get("created_at")?,
            rows: submissions.iter().map(|submission| submission.rows).sum(),
            submissions,
            warnings,
        });
    }
    Ok(datasets)
}

fn summary(key: &DataKey, row: &PgRow) -> Result<SubmissionSummary, StoreError> {
    let id = SubmissionId(row.try_get("id")?);
    let sha256 = key.open(Place::BodySha256(id), row.try_get("sealed_sha256")?)?;
    Ok(SubmissionSummary {
        id,
        rows: row.try_get("rows")?,
        bytes: row.try_get("bytes")?,
        sha256: hex::encode(sha256),
        created_at: row.try_get("created_at")?,
    })
}

/// The warnings of submissions, given oldest first. Of several with one code about one column only
/// that of the newest submission is kept.
fn row_warnings(submissions: &[PgRow]) -> Result<Vec<Warning>, StoreError> {
    let mut warnings: Vec<ColumnWarning> = Vec::new();
    for row in submissions {
        let Json(newer) = row.try_get::<Json<Vec<ColumnWarning>>, _>("warnings")?;
        for new in newer {
            let is_same = |old: &&mut ColumnWarning| {
                (&old.column, old.warning.code) == (&new.column, new.warning.code)
            };
            match warnings.iter_mut().find(is_same) {
                Some(old) => *old = new,
                None => warnings.push(new),
            }
        }
    }
    let warnings = warnings.into_iter();
    Ok(warnings.map(|about| about.warning).collect())
}
