//! Datasets as their holders see them: summaries in lists, and one with its columns and its latest
//! submissions.

use serde::Serialize;
use sqlx::FromRow;
use sqlx::types::Json;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::OrganizationId;
use pais_core::definition::{ColumnDefinition, DatasetDefinition, DatasetId, SubmissionId};
use pais_core::warning::Warning;

use super::key_ring::KeyRing;
use super::legal_holds::{LegalHold, LegalHoldColumns};
use super::seal::{DataKey, SealedItem};
use super::submissions::ColumnWarning;
use super::{Store, StoreError, trees};

/// Number of submissions that a dataset is shown with.
const LATEST_SUBMISSIONS: i64 = 100;

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

/// A dataset in a list, without its columns and its submissions.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
pub struct DatasetSummary {
    /// Its id.
    pub id: DatasetId,
    /// Unique among the organization's datasets.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// Number of columns.
    pub columns: i32,
    /// Days after which the rows are deleted by themselves.
    pub retention_days: Option<i64>,
    /// When it was declared.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Number of records in all submissions.
    pub rows: i64,
    /// Number of submissions.
    pub submissions: i64,
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
    /// As declared: a taxonomy that was given by id is its id.
    pub columns: Vec<ColumnDefinition>,
    /// Words that mean missing in every column that declares none itself.
    pub missing: Option<Vec<String>>,
    /// Days after which the rows are deleted by themselves.
    pub retention_days: Option<i64>,
    /// Days after its arrival after which a submission is deleted by itself.
    pub submission_retention_days: Option<i64>,
    /// Why nothing of it is deleted for now; null without a legal hold.
    pub legal_hold: Option<LegalHold>,
    /// When it was declared.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Number of records in all submissions.
    pub rows: i64,
    /// The latest 100 batches, newest first; `GET /v1/datasets/{id}/submissions` lists all.
    pub submissions: Vec<SubmissionSummary>,
    /// Number of all batches.
    pub submissions_total: i64,
    /// What the holder should know about its columns and its rows.
    pub warnings: Vec<Warning>,
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
) -> Result<Vec<DatasetSummary>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT d.id, d.name, d.description, d.columns, d.retention_days, d.created_at,
                s.submissions, s.rows
         FROM datasets d
         CROSS JOIN LATERAL (SELECT count(*) AS submissions,
                                    coalesce(sum(rows), 0)::bigint AS rows
                             FROM submissions WHERE dataset_id = d.id) s
         WHERE d.organization_id = $1 AND d.deleted_at IS NULL AND ($2::uuid IS NULL OR d.id > $2)
         ORDER BY d.id LIMIT $3",
    )
    .bind(organization)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// A row of `datasets` with what its submissions add up to.
#[derive(FromRow)]
struct ViewedDataset {
    #[sqlx(json)]
    definition: DatasetDefinition,
    created_at: OffsetDateTime,
    #[sqlx(json)]
    warnings: Vec<Warning>,
    #[sqlx(flatten, try_from = "LegalHoldColumns")]
    legal_hold: Option<LegalHold>,
    submissions: i64,
    rows: i64,
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
    // The trees first: a dataset that is deleted meanwhile is not found below.
    let trees = trees::of_dataset(store, id).await?;
    let row: Option<ViewedDataset> = sqlx::query_as(
        "SELECT d.definition, d.created_at, d.warnings, d.legal_hold_reason, d.legal_hold_since,
                s.submissions, s.rows
         FROM datasets d
         CROSS JOIN LATERAL (SELECT count(*) AS submissions,
                                    coalesce(sum(rows), 0)::bigint AS rows
                             FROM submissions WHERE dataset_id = d.id) s
         WHERE d.organization_id = $1 AND d.id = $2 AND d.deleted_at IS NULL",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(&mut *store.connection().await?)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let definition = trees::declared(row.definition, &trees);
    // Deleted since the row was read.
    let Some(key) = open_key(store, keys, id).await? else {
        return Ok(None);
    };
    let latest: Vec<SubmissionRow> = sqlx::query_as(
        "SELECT id, rows, bytes, sealed_sha256, created_at FROM submissions
         WHERE dataset_id = $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(id)
    .bind(LATEST_SUBMISSIONS)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let latest = latest.into_iter().map(|row| row.open(&key));
    let mut warnings = row.warnings;
    warnings.extend(row_warnings(store, id).await?);
    Ok(Some(Dataset {
        id,
        name: definition.name,
        description: definition.description,
        columns: definition.columns,
        missing: definition.missing,
        retention_days: definition.retention_days,
        submission_retention_days: definition.submission_retention_days,
        legal_hold: row.legal_hold,
        created_at: row.created_at,
        rows: row.rows,
        submissions: latest.collect::<Result<_, StoreError>>()?,
        submissions_total: row.submissions,
        warnings,
    }))
}

/// The submissions of a dataset after `after`, oldest first, at most `limit`; `None` if the
/// organization has no such dataset.
///
/// # Errors
/// When the database fails, or a digest cannot be decrypted.
pub async fn list_submissions(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    dataset: DatasetId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Option<Vec<SubmissionSummary>>, StoreError> {
    let exists: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM datasets
                        WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL)",
    )
    .bind(organization)
    .bind(dataset)
    .fetch_one(&mut *store.connection().await?)
    .await?;
    if !exists {
        return Ok(None);
    }
    let Some(key) = open_key(store, keys, dataset).await? else {
        return Ok(None);
    };
    let rows: Vec<SubmissionRow> = sqlx::query_as(
        "SELECT id, rows, bytes, sealed_sha256, created_at FROM submissions
         WHERE dataset_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3",
    )
    .bind(dataset)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let items = rows.into_iter().map(|row| row.open(&key));
    items.collect::<Result<_, _>>().map(Some)
}

/// The data key of a dataset; `None` if it was deleted.
async fn open_key(
    store: &Store,
    keys: &KeyRing,
    dataset: DatasetId,
) -> Result<Option<DataKey>, StoreError> {
    let mut connection = store.connection().await?;
    let wrapped = store.data_keys().read(&mut *connection, dataset).await?;
    let opened = wrapped.map(|wrapped| keys.open(dataset, &wrapped));
    Ok(opened.transpose()?)
}

#[derive(FromRow)]
struct SubmissionRow {
    id: SubmissionId,
    rows: i64,
    bytes: i64,
    sealed_sha256: Vec<u8>,
    created_at: OffsetDateTime,
}

impl SubmissionRow {
    fn open(self, key: &DataKey) -> Result<SubmissionSummary, StoreError> {
        let sha256 = key.open(SealedItem::BodySha256(self.id), &self.sealed_sha256)?;
        Ok(SubmissionSummary {
            id: self.id,
            rows: self.rows,
            bytes: self.bytes,
            sha256: hex::encode(sha256),
            created_at: self.created_at,
        })
    }
}

/// The warnings about the rows of a dataset. Of several with one code about one column only that of
/// the newest submission is returned.
///
/// # Errors
/// When the database fails.
pub async fn row_warnings(store: &Store, dataset: DatasetId) -> Result<Vec<Warning>, StoreError> {
    let rows: Vec<Json<ColumnWarning>> = sqlx::query_scalar(
        "SELECT warning FROM (
             SELECT DISTINCT ON (w.warning -> 'column', w.warning -> 'warning' -> 'code')
                    w.warning, s.id, w.position
             FROM submissions s,
                  jsonb_array_elements(s.warnings) WITH ORDINALITY AS w (warning, position)
             WHERE s.dataset_id = $1
             ORDER BY w.warning -> 'column', w.warning -> 'warning' -> 'code', s.id DESC) newest
         ORDER BY id, position",
    )
    .bind(dataset)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    Ok(rows.into_iter().map(|Json(about)| about.warning).collect())
}
