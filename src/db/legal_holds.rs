//! Legal holds: while a dataset has one, neither it nor a submission of it is deleted.

use serde::Serialize;
use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use time::OffsetDateTime;
use utoipa::ToSchema;

use pais_core::definition::DatasetId;

use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError};

/// Why and since when nothing of a dataset is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LegalHold {
    /// Why.
    pub reason: String,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
}

impl LegalHold {
    /// The hold in a row of `datasets` with `legal_hold_reason` and `legal_hold_since`.
    pub(super) fn from_row(row: &PgRow) -> Result<Option<Self>, sqlx::Error> {
        let reason: Option<String> = row.try_get("legal_hold_reason")?;
        let since: Option<OffsetDateTime> = row.try_get("legal_hold_since")?;
        Ok(reason
            .zip(since)
            .map(|(reason, since)| Self { reason, since }))
    }
}

/// The result of a deletion that a legal hold prevents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is deleted.
    Done,
    /// The organization has no such thing.
    NotFound,
    /// The dataset has a legal hold.
    Held,
}

/// Places a legal hold on a dataset. One that has a hold keeps the time, and gets the new reason. `None`
/// if the organization has no such dataset.
///
/// # Errors
/// When the database fails.
pub async fn place(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
    reason: &str,
) -> Result<Option<LegalHold>, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    let row = sqlx::query(
        "UPDATE datasets
         SET legal_hold_reason = $3, legal_hold_since = coalesce(legal_hold_since, $4)
         WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL
         RETURNING legal_hold_reason, legal_hold_since",
    )
    .bind(dataset.0)
    .bind(by.organization.0)
    .bind(reason)
    .bind(now)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let hold = LegalHold::from_row(&row)?;
    let detail = json!({ "reason": reason });
    let event = NewEvent::by(by, Action::LegalHoldPlaced, dataset.0, detail);
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(hold)
}

/// Ends the legal hold of a dataset; returns `false` if the organization has no such dataset, or it has no
/// hold. What is due is deleted by the next cleanup.
///
/// # Errors
/// When the database fails.
pub async fn lift(store: &Store, by: Caller, dataset: DatasetId) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let lifted = sqlx::query(
        "UPDATE datasets SET legal_hold_reason = NULL, legal_hold_since = NULL
         WHERE id = $1 AND organization_id = $2 AND legal_hold_since IS NOT NULL",
    )
    .bind(dataset.0)
    .bind(by.organization.0)
    .execute(&mut *transaction)
    .await?;
    if lifted.rows_affected() == 0 {
        return Ok(false);
    }
    let event = NewEvent::by(by, Action::LegalHoldLifted, dataset.0, json!({}));
    audit::record(&mut transaction, store.now(), event).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Whether a dataset has a legal hold. None is placed before the end of the transaction.
pub(super) async fn is_held(
    transaction: &mut PgConnection,
    dataset: DatasetId,
) -> Result<bool, StoreError> {
    let held: Option<bool> = sqlx::query_scalar(
        "SELECT legal_hold_since IS NOT NULL FROM datasets WHERE id = $1 FOR SHARE",
    )
    .bind(dataset.0)
    .fetch_optional(transaction)
    .await?;
    Ok(held == Some(true))
}
