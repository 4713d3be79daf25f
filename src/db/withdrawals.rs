//! Withdrawals of releases.

use serde::Serialize;
use serde_json::json;
use sqlx::FromRow;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::ids::ReleaseId;
use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError, releases};

/// Why and since when a release is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = WithdrawalDocument)]
pub struct Withdrawal {
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The holder's reason, which recipients see.
    pub reason: String,
}

/// The columns of a release that have its withdrawal.
#[derive(FromRow)]
pub(super) struct WithdrawalColumns {
    withdrawn_at: Option<OffsetDateTime>,
    withdrawn_reason: Option<String>,
}

impl From<WithdrawalColumns> for Option<Withdrawal> {
    fn from(columns: WithdrawalColumns) -> Self {
        let (at, reason) = columns.withdrawn_at.zip(columns.withdrawn_reason)?;
        Some(Withdrawal { at, reason })
    }
}

/// The result of [`create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithdrawalCreation {
    /// The release is withdrawn.
    Made(Withdrawal),
    /// The organization has no such release.
    NoRelease,
    /// The release was withdrawn before.
    Exists,
}

/// Withdraws a release of the caller's organization.
pub async fn create(
    store: &Store,
    by: Caller,
    release: ReleaseId,
    reason: &str,
) -> Result<WithdrawalCreation, StoreError> {
    let mut transaction = store.begin().await?;
    let found = releases::lock(&mut transaction, by.organization, release).await?;
    let Some(found) = found else {
        return Ok(WithdrawalCreation::NoRelease);
    };
    if found.is_withdrawn {
        return Ok(WithdrawalCreation::Exists);
    }
    let withdrawal = Withdrawal {
        at: store.now(),
        reason: reason.to_owned(),
    };
    sqlx::query("UPDATE releases SET withdrawn_at = $2, withdrawn_reason = $3 WHERE id = $1")
        .bind(release)
        .bind(withdrawal.at)
        .bind(reason)
        .execute(&mut *transaction)
        .await?;
    let detail = json!({ "reason": reason });
    let event = NewEvent::by(by, Action::ReleaseWithdrawn, release.0, detail);
    audit::commit(transaction, withdrawal.at, event).await?;
    Ok(WithdrawalCreation::Made(withdrawal))
}
