//! Submissions: batches of rows, kept as sealed chunks, whole or not at all.

use futures_util::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, Row, Transaction};
use time::OffsetDateTime;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::domain::{DatasetId, SubmissionId};

use super::{Store, StoreError};

/// A submission as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its id.
    pub id: SubmissionId,
    /// The dataset it was sent to.
    pub dataset: DatasetId,
    /// Number of rows.
    pub rows: u64,
    /// Size of the decoded body.
    pub bytes: u64,
    /// SHA-256 of the decoded body.
    pub sha256: Vec<u8>,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
}

/// Some rows of a submission, sealed with the data key of their dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedChunk {
    /// Whose rows.
    pub submission: SubmissionId,
    /// Place in the submission, from 0.
    pub index: u32,
    /// Number of rows.
    pub rows: u32,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// What is known of a submission only at its end.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Number of rows.
    pub rows: u64,
    /// Size of the decoded body.
    pub bytes: u64,
    /// SHA-256 of the decoded body.
    pub sha256: [u8; 32],
}

/// A submission that is being written; dropped before [`Intake::commit`] it leaves nothing.
pub struct Intake {
    transaction: Transaction<'static, Postgres>,
    submission: Submission,
}

impl Intake {
    /// Begins a submission.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin(
        store: &Store,
        dataset: DatasetId,
        id: SubmissionId,
        media_type: &str,
    ) -> Result<Self, StoreError> {
        let submission = Submission {
            id,
            dataset,
            rows: 0,
            bytes: 0,
            sha256: Vec::new(),
            created_at: store.now(),
        };
        let mut transaction = store.begin().await?;
        sqlx::query(
            "INSERT INTO submissions (id, dataset_id, rows, bytes, sha256, media_type, created_at)
             VALUES ($1, $2, 0, 0, '', $3, $4)",
        )
        .bind(id.0)
        .bind(dataset.0)
        .bind(media_type)
        .bind(submission.created_at)
        .execute(&mut *transaction)
        .await?;
        Ok(Self {
            transaction,
            submission,
        })
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add(&mut self, chunk: &SealedChunk) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO submission_chunks (submission_id, index, rows, sealed)
             VALUES ($1, $2, $3, $4)",
        )
        .bind(chunk.submission.0)
        .bind(chunk.index.cast_signed())
        .bind(chunk.rows.cast_signed())
        .bind(&chunk.sealed)
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    /// Notes the totals, and that the dataset is still there; `None` when it was deleted
    /// meanwhile. From here to the commit the dataset cannot be deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn complete(&mut self, totals: &Totals) -> Result<Option<Submission>, StoreError> {
        if !lock_dataset(&mut self.transaction, self.submission.dataset).await? {
            return Ok(None);
        }
        sqlx::query("UPDATE submissions SET rows = $2, bytes = $3, sha256 = $4 WHERE id = $1")
            .bind(self.submission.id.0)
            .bind(totals.rows.cast_signed())
            .bind(totals.bytes.cast_signed())
            .bind(totals.sha256.as_slice())
            .execute(&mut *self.transaction)
            .await?;
        self.submission.rows = totals.rows;
        self.submission.bytes = totals.bytes;
        self.submission.sha256 = totals.sha256.to_vec();
        Ok(Some(self.submission.clone()))
    }

    /// The transaction, for what is to be written together with the submission.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Makes it all visible.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit().await?)
    }
}

/// Keeps a dataset from being deleted until the transaction ends; whether it is still there.
pub(super) async fn lock_dataset(
    connection: &mut PgConnection,
    dataset: DatasetId,
) -> Result<bool, StoreError> {
    let row = sqlx::query("SELECT 1 FROM datasets WHERE id = $1 AND deleted_at IS NULL FOR SHARE")
        .bind(dataset.0)
        .fetch_optional(connection)
        .await?;
    Ok(row.is_some())
}

/// The submissions of a dataset, oldest first.
///
/// # Errors
/// When the database fails.
pub async fn list(store: &Store, dataset: DatasetId) -> Result<Vec<Submission>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, dataset_id, rows, bytes, sha256, created_at FROM submissions
         WHERE dataset_id = $1 ORDER BY id",
    )
    .bind(dataset.0)
    .fetch_all(store.pool())
    .await?;
    rows.iter().map(submission).collect()
}

/// Sends the sealed chunks of a dataset's submissions (all when `None`) to `out`, in the order
/// of the submissions' ids and of the rows; no further ahead than `out` has room.
///
/// Stops early, without an error, when the receiver is gone.
///
/// # Errors
/// When the database fails.
pub async fn load_chunks(
    store: &Store,
    dataset: DatasetId,
    submissions: Option<&[SubmissionId]>,
    out: mpsc::Sender<SealedChunk>,
) -> Result<(), StoreError> {
    let ids: Option<Vec<Uuid>> = submissions.map(|ids| ids.iter().map(|id| id.0).collect());
    let mut rows = sqlx::query(
        "SELECT c.submission_id, c.index, c.rows, c.sealed
         FROM submission_chunks c JOIN submissions s ON s.id = c.submission_id
         WHERE s.dataset_id = $1 AND ($2::uuid[] IS NULL OR s.id = ANY($2))
         ORDER BY c.submission_id, c.index",
    )
    .bind(dataset.0)
    .bind(ids)
    .fetch(store.pool());
    while let Some(row) = rows.try_next().await? {
        let chunk = SealedChunk {
            submission: SubmissionId(row.try_get("submission_id")?),
            index: row.try_get::<i32, _>("index")?.cast_unsigned(),
            rows: row.try_get::<i32, _>("rows")?.cast_unsigned(),
            sealed: row.try_get("sealed")?,
        };
        if out.send(chunk).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn submission(row: &PgRow) -> Result<Submission, StoreError> {
    Ok(Submission {
        id: SubmissionId(row.try_get("id")?),
        dataset: DatasetId(row.try_get("dataset_id")?),
        rows: row.try_get::<i64, _>("rows")?.cast_unsigned(),
        bytes: row.try_get::<i64, _>("bytes")?.cast_unsigned(),
        sha256: row.try_get("sha256")?,
        created_at: row.try_get("created_at")?,
    })
}
