//! Which releases a recipient knows, or may come to know.

use pais_core::definition::DatasetId;
use sqlx::PgExecutor;
use time::OffsetDateTime;

use crate::ids::{OrganizationId, ReleaseId};

use super::{Store, StoreError};

/// Records that a recipient has fetched a part of a release.
///
/// # Errors
/// When the database fails.
pub(super) async fn add(
    store: &Store,
    release: ReleaseId,
    recipient: OrganizationId,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO release_readers (release_id, recipient_id, first_at) VALUES ($1, $2, $3)
         ON CONFLICT DO NOTHING",
    )
    .bind(release)
    .bind(recipient)
    .bind(store.now())
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(())
}

/// The releases of a dataset that a recipient has fetched, withdrawn ones too, or has a grant of,
/// but `release`; by id. `executor` is a connection or a transaction.
///
/// # Errors
/// When the database fails.
pub(crate) async fn known_releases(
    executor: impl PgExecutor<'_>,
    recipient: OrganizationId,
    dataset: DatasetId,
    release: ReleaseId,
    now: OffsetDateTime,
) -> Result<Vec<ReleaseId>, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT r.id FROM releases r
         WHERE r.dataset_id = $1 AND r.id <> $2 AND (
             EXISTS (SELECT 1 FROM release_readers k
                     WHERE k.release_id = r.id AND k.recipient_id = $3)
             OR r.withdrawn_at IS NULL AND EXISTS (
                     SELECT 1 FROM grants g WHERE g.release_id = r.id AND g.recipient_id = $3
                     AND (g.expires_at IS NULL OR g.expires_at > $4)))
         ORDER BY r.id",
    )
    .bind(dataset)
    .bind(release)
    .bind(recipient)
    .bind(now)
    .fetch_all(executor)
    .await?)
}
