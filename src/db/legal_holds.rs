//! Legal holds: while a dataset has one, neither the dataset nor its submissions are deleted.

use serde::Serialize;
use serde_json::json;
use sqlx::FromRow;
use time::OffsetDateTime;
use utoipa::ToSchema;

use pais_core::definition::DatasetId;

use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError, token_validity};

/// Why and since when nothing of a dataset is deleted.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
pub struct LegalHold {
    /// Why.
    pub reason: String,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
}

/// The columns of a dataset that have its legal hold.
#[derive(FromRow)]
pub(super) struct LegalHoldColumns {
    legal_hold_reason: Option<String>,
    legal_hold_since: Option<OffsetDateTime>,
}

impl From<LegalHoldColumns> for Option<LegalHold> {
    fn from(columns: LegalHoldColumns) -> Self {
        let (reason, since) = columns.legal_hold_reason.zip(columns.legal_hold_since)?;
        Some(LegalHold { reason, since })
    }
}

/// Places a legal hold on a dataset. If it already has one, the time is kept and the reason replaced. `None` if
/// the organization has no such dataset.
pub(crate) async fn place(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
    reason: &str,
) -> Result<Option<LegalHold>, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let now = store.now();
    let hold: Option<LegalHold> = sqlx::query_as(
        "UPDATE datasets
         SET legal_hold_reason = $3, legal_hold_since = coalesce(legal_hold_since, $4)
         WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL
         RETURNING legal_hold_reason AS reason, legal_hold_since AS since",
    )
    .bind(dataset)
    .bind(by.organization)
    .bind(reason)
    .bind(now)
    .fetch_optional(&mut *transaction)
    .await?;
    if hold.is_none() {
        return Ok(None);
    }
    let detail = json!({ "reason": reason });
    let event = NewEvent::by(by, Action::LegalHoldPlaced, dataset.0, detail);
    audit::commit(transaction, now, event).await?;
    Ok(hold)
}

/// Ends the legal hold of a dataset; returns `false` if the organization has no such dataset, or it has no
/// hold. Data that is due is deleted by the next cleanup.
pub(crate) async fn lift(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
) -> Result<bool, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let lifted = sqlx::query(
        "UPDATE datasets SET legal_hold_reason = NULL, legal_hold_since = NULL
         WHERE id = $1 AND organization_id = $2 AND legal_hold_since IS NOT NULL",
    )
    .bind(dataset)
    .bind(by.organization)
    .execute(&mut *transaction)
    .await?;
    if lifted.rows_affected() == 0 {
        return Ok(false);
    }
    let event = NewEvent::by(by, Action::LegalHoldLifted, dataset.0, json!({}));
    audit::commit(transaction, store.now(), event).await?;
    Ok(true)
}
