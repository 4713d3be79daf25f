//! Legal holds: while a dataset has one, neither it nor a submission of it is deleted.

use std::fmt::Display;

use serde::Serialize;
use serde_json::json;
use sqlx::{FromRow, PgConnection};
use time::OffsetDateTime;
use utoipa::ToSchema;

use pais_core::definition::DatasetId;

use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError};

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

/// What the end of retention did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// Number of datasets and submissions that were deleted.
    pub deleted: u64,
    /// Number of those that could not be deleted.
    pub failed: u64,
}

impl Expiry {
    /// Counts one that was due. A failure is in the log.
    pub(super) fn count(&mut self, id: impl Display, result: Result<Deletion, StoreError>) {
        match result {
            Ok(Deletion::Done) => self.deleted += 1,
            // By somebody else, or held since.
            Ok(Deletion::NotFound | Deletion::Held) => {}
            Err(error) => {
                self.failed += 1;
                tracing::error!(
                    %id,
                    error = &error as &dyn std::error::Error,
                    "it could not be deleted at the end of its retention; this is tried again"
                );
            }
        }
    }
}

/// Places a legal hold on a dataset. One that has a hold keeps the time, and gets the new reason. `None`
/// if the organization has no such dataset.
///
/// # Errors
/// When the database fails.
pub(crate) async fn place(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
    reason: &str,
) -> Result<Option<LegalHold>, StoreError> {
    let mut transaction = store.begin().await?;
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
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(hold)
}

/// Ends the legal hold of a dataset; returns `false` if the organization has no such dataset, or it has no
/// hold. What is due is deleted by the next cleanup.
///
/// # Errors
/// When the database fails.
pub(crate) async fn lift(
    store: &Store,
    by: Caller,
    dataset: DatasetId,
) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
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
    .bind(dataset)
    .fetch_optional(transaction)
    .await?;
    Ok(held == Some(true))
}
