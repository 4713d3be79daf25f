//! A release that is locked until the end of a transaction, for changes of who gets it.

use pais_core::definition::DatasetId;
use sqlx::{FromRow, PgConnection};

use crate::ids::{OrganizationId, ReleaseId, TokenId};

use super::StoreError;

/// A release that is locked until the end of the transaction.
#[derive(FromRow)]
pub(super) struct LockedRelease {
    pub(super) dataset_id: DatasetId,
    pub(super) created_by: Option<TokenId>,
    pub(super) is_withdrawn: bool,
}

/// Locks a release of an organization, so that it gets no other grant, approval or withdrawal meanwhile;
/// `None` if there is none.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization: OrganizationId,
    id: ReleaseId,
) -> Result<Option<LockedRelease>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT dataset_id, created_by, withdrawn_at IS NOT NULL AS is_withdrawn FROM releases
         WHERE id = $1 AND organization_id = $2 FOR UPDATE",
    )
    .bind(id)
    .bind(organization)
    .fetch_optional(connection)
    .await?)
}
