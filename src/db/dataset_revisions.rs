//! Revisions of a dataset: rows read, checked or queued under one definition are not stored under another one.

use sqlx::PgConnection;

use pais_core::definition::DatasetId;

use super::StoreError;

/// How often a dataset, or its columns, have been changed; 0 for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
pub struct DatasetRevision(i32);

/// Locks a dataset against changes and deletion until the transaction ends. Returns the revision of its columns;
/// `None` if it was deleted.
pub(super) async fn lock_dataset(
    connection: &mut PgConnection,
    dataset: DatasetId,
) -> Result<Option<DatasetRevision>, StoreError> {
    let revision = sqlx::query_scalar(
        "SELECT columns_revision FROM datasets WHERE id = $1 AND deleted_at IS NULL FOR SHARE",
    );
    Ok(revision.bind(dataset).fetch_optional(connection).await?)
}
