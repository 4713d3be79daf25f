//! What a report says about where a release comes from: who made it, and from what.

use serde_json::Value;
use sqlx::FromRow;

use crate::ids::ReleaseId;

use super::seal::{DataKey, SealedItem};
use super::{RowScope, Store, StoreError};

/// The names around a release.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(crate) struct ReportContext {
    /// The name of its dataset, which may be deleted.
    pub dataset: String,
    /// What the dataset is, in its holder's words; `None` for a deleted dataset.
    pub description: Option<String>,
    /// The name of its holder, for people where there is one.
    pub holder: String,
}

/// The names around a release.
///
/// # Errors
/// When the database fails, or there is no such release.
pub(crate) async fn load(store: &Store, release: ReleaseId) -> Result<ReportContext, StoreError> {
    Ok(sqlx::query_as(
        "SELECT d.name AS dataset, d.definition ->> 'description' AS description,
                coalesce(o.display_name, o.name) AS holder
         FROM releases r JOIN datasets d ON d.id = r.dataset_id
         JOIN organizations o ON o.id = r.organization_id
         WHERE r.id = $1",
    )
    .bind(release)
    // The names are for recipients, too; nothing else of a dataset is.
    .fetch_one(&mut *store.within(RowScope::Service).connection().await?)
    .await?)
}

/// The shares of raw values and labels in the columns of a release, as JSON; `None` where there are
/// none, as for a release of a deleted dataset.
///
/// # Errors
/// When the database fails, or what is stored is damaged.
pub(crate) async fn distributions(
    store: &Store,
    key: &DataKey,
    release: ReleaseId,
) -> Result<Option<Value>, StoreError> {
    let sealed: Option<Vec<u8>> =
        sqlx::query_scalar("SELECT sealed_distributions FROM releases WHERE id = $1")
            .bind(release)
            .fetch_one(&mut *store.connection().await?)
            .await?;
    let Some(sealed) = sealed else {
        return Ok(None);
    };
    let opened = key.open(SealedItem::Distributions(release), &sealed)?;
    let damaged = |_| StoreError::Damaged {
        what: "the distributions of a release",
    };
    serde_json::from_slice(&opened).map_err(damaged)
}
