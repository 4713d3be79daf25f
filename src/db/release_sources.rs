//! Which raw row each released row comes from: sealed with the key of the dataset, and deleted with
//! it. Only the decision what releases say together reads it.

use futures_util::TryStreamExt;
use sqlx::types::Json;

use crate::ids::ReleaseId;

use super::seal::{DataKey, SealError, SealedItem};
use super::submissions::SubmissionRows;
use super::{Store, StoreError};

/// Number of rows of a part.
const PART_ROWS: usize = 1 << 18;

/// Where the rows of a release come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceRows {
    /// The submissions of its job with their numbers of rows, in the order of the raw table.
    pub submissions: Vec<SubmissionRows>,
    /// The raw row of each row of its first table, numbered over these submissions.
    pub rows: Vec<u32>,
}

/// Seals the raw rows of a release's rows.
///
/// # Errors
/// When the operating system returns no random bytes.
pub(crate) fn seal(
    key: &DataKey,
    release: ReleaseId,
    rows: &[u32],
) -> Result<Vec<Vec<u8>>, SealError> {
    let parts = (0u32..).zip(rows.chunks(PART_ROWS));
    let sealed = parts.map(|(index, rows)| {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        key.seal(SealedItem::SourceRows { release, index }, &bytes)
    });
    sealed.collect()
}

/// Where the rows of a release come from; `None` for one of a deleted dataset.
///
/// # Errors
/// When the database fails, or what is stored is damaged.
pub(crate) async fn load(
    store: &Store,
    key: &DataKey,
    release: ReleaseId,
) -> Result<Option<SourceRows>, StoreError> {
    let (expected, submissions): (i64, Option<Json<Vec<SubmissionRows>>>) =
        sqlx::query_as("SELECT rows, source_submissions FROM releases WHERE id = $1")
            .bind(release)
            .fetch_one(&mut *store.connection().await?)
            .await?;
    let Some(Json(submissions)) = submissions else {
        return Ok(None);
    };
    let mut rows = Vec::with_capacity(expected.max(0) as usize);
    let mut connection = store.connection().await?;
    let mut parts = sqlx::query_as::<_, (i32, Vec<u8>)>(
        "SELECT index, sealed FROM release_sources WHERE release_id = $1 ORDER BY index",
    )
    .bind(release)
    .fetch(&mut *connection);
    while let Some((index, sealed)) = parts.try_next().await? {
        let index = index.cast_unsigned();
        let bytes = key.open(SealedItem::SourceRows { release, index }, &sealed)?;
        let numbers = bytes.as_chunks::<4>().0.iter();
        rows.extend(numbers.map(|bytes| u32::from_le_bytes(*bytes)));
    }
    if rows.len() as i64 == expected {
        Ok(Some(SourceRows { submissions, rows }))
    } else if rows.is_empty() {
        // Deleted with its dataset since the key was read.
        Ok(None)
    } else {
        Err(StoreError::Damaged("the raw rows of a release"))
    }
}
