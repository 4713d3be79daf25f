//! The objects outside the database that datasets were read from.

use pais_core::definition::{DatasetId, SubmissionId};
use sqlx::PgConnection;

use crate::storage::object_stores::LocatedObject;

use super::{Store, StoreError};

/// Writes the objects that a submission was read from.
pub(super) async fn insert(
    connection: &mut PgConnection,
    submission: SubmissionId,
    objects: &[LocatedObject],
) -> Result<(), StoreError> {
    for (index, object) in (0i32..).zip(objects) {
        sqlx::query(
            "INSERT INTO located_objects (submission_id, index, path, etag, bytes)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(submission)
        .bind(index)
        .bind(&object.path)
        .bind(&object.etag)
        .bind(object.bytes.cast_signed())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// The objects that a dataset was read from, in the order of their paths; none if its rows are deleted.
pub(crate) async fn of_dataset(
    store: &Store,
    dataset: DatasetId,
) -> Result<Vec<LocatedObject>, StoreError> {
    let rows: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT o.path, o.etag, o.bytes
         FROM located_objects o JOIN submissions s ON s.id = o.submission_id
         WHERE s.dataset_id = $1 ORDER BY o.submission_id, o.index",
    )
    .bind(dataset)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let objects = rows.into_iter().map(|(path, etag, bytes)| LocatedObject {
        path,
        etag,
        bytes: bytes.cast_unsigned(),
    });
    Ok(objects.collect())
}
