//! Whether a token is still valid: when a request begins, when it commits, and while it streams.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{FromRow, PgConnection, Postgres, Transaction};
use time::{Duration, OffsetDateTime};

use crate::ids::{OrganizationId, TokenId};
use crate::roles::{Caller, Role};

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::{Store, StoreError};

/// Time between two audit events about refused uses of one token, so that a script that keeps using it does not
/// fill the log.
const RECORD_INTERVAL: Duration = Duration::minutes(1);

/// The token that the secret of a request belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Authentication {
    /// A valid token.
    Valid(Caller),
    /// A token that is no longer valid.
    Refused {
        /// The token.
        token: TokenId,
        /// Its organization.
        organization: OrganizationId,
        /// Why it is not valid.
        reason: RefusalReason,
    },
    /// No token.
    Unknown,
}

/// Why a use of a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalReason {
    /// Its `expires_at` has passed.
    Expired,
    /// It was revoked.
    Revoked,
    /// Its organization is disabled.
    Disabled,
    /// Its role does not permit the request.
    Role,
}

/// A stored token, to decide whether it is valid.
#[derive(FromRow)]
pub(super) struct StoredToken {
    id: TokenId,
    organization_id: OrganizationId,
    role: Role,
    expires_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
    is_disabled: bool,
}

/// The query of a [`StoredToken`] `t`, before its condition.
macro_rules! stored_token {
    ($condition:literal) => {
        concat!(
            "SELECT t.id, t.organization_id, t.role, t.expires_at, t.revoked_at,
                    o.disabled_at IS NOT NULL AS is_disabled
             FROM tokens t JOIN organizations o ON o.id = t.organization_id WHERE ",
            $condition
        )
    };
}
pub(super) use stored_token;

impl StoredToken {
    /// Whether it is valid at `now`.
    pub(super) fn authenticate(self, now: OffsetDateTime) -> Authentication {
        let reason = if self.revoked_at.is_some() {
            RefusalReason::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            RefusalReason::Expired
        } else if self.is_disabled {
            RefusalReason::Disabled
        } else {
            return Authentication::Valid(Caller {
                organization: self.organization_id,
                role: self.role,
                token: self.id,
                address: None,
            });
        };
        Authentication::Refused {
            token: self.id,
            organization: self.organization_id,
            reason,
        }
    }
}

/// Looks up the token with this secret.
pub(crate) async fn authenticate(
    store: &Store,
    secret: &str,
) -> Result<Authentication, StoreError> {
    let found: Option<StoredToken> = sqlx::query_as(stored_token!("t.secret_sha256 = $1"))
        .bind(Sha256::digest(secret.as_bytes()).as_slice())
        .fetch_optional(&mut *store.connection().await?)
        .await?;
    Ok(found.map_or(Authentication::Unknown, |token| {
        token.authenticate(store.now())
    }))
}

/// Records in the audit log of a token's organization that a use of the token was refused, at most
/// once a minute.
pub(crate) async fn record_refusal(
    store: &Store,
    token: TokenId,
    organization: OrganizationId,
    reason: RefusalReason,
    address: Option<IpAddr>,
) -> Result<(), StoreError> {
    let now = store.now();
    let mut transaction = store.begin().await?;
    let due = sqlx::query(
        "UPDATE tokens SET refusal_recorded_at = $2
         WHERE id = $1 AND (refusal_recorded_at IS NULL OR refusal_recorded_at <= $3)",
    )
    .bind(token)
    .bind(now)
    .bind(now - RECORD_INTERVAL)
    .execute(&mut *transaction)
    .await?;
    if due.rows_affected() == 0 {
        return Ok(());
    }
    let event = NewEvent {
        organization,
        actor: Actor::token(token, address),
        action: Action::TokenRefused,
        subject: token.0,
        detail: json!({ "reason": reason }),
        outcome: Outcome::Refused,
    };
    audit::commit(transaction, now, event).await?;
    Ok(())
}

fn works(token: Option<StoredToken>, now: OffsetDateTime) -> bool {
    token.is_some_and(|token| matches!(token.authenticate(now), Authentication::Valid(_)))
}

/// Whether a token is valid. For work that lasts longer than its request.
pub(crate) async fn is_valid(store: &Store, token: TokenId) -> Result<bool, StoreError> {
    let found: Option<StoredToken> = sqlx::query_as(stored_token!("t.id = $1"))
        .bind(token)
        .fetch_optional(&mut *store.connection().await?)
        .await?;
    Ok(works(found, store.now()))
}

/// Checks that a token is valid at `now`. Until the transaction ends, the token cannot be revoked and its
/// organization cannot be disabled, so everything that the transaction writes is still permitted at commit.
///
/// # Errors
/// [`StoreError::TokenEnded`].
pub(super) async fn lock_valid(
    connection: &mut PgConnection,
    token: TokenId,
    now: OffsetDateTime,
) -> Result<(), StoreError> {
    // Of the organization the weakest lock, which `set_access` waits for. A claim of a job writes that row after it has
    // locked the job, which a deletion waits for with locks that the transactions of callers take after this one.
    let found: Option<StoredToken> =
        sqlx::query_as(stored_token!("t.id = $1 FOR SHARE OF t FOR KEY SHARE OF o"))
            .bind(token)
            .fetch_optional(connection)
            .await?;
    works(found, now)
        .then_some(())
        .ok_or(StoreError::TokenEnded)
}

/// Begins a transaction of a caller and locks its token ([`lock_valid`]): reading the body or deciding the
/// request can take long. Without a caller the service itself acts.
///
/// # Errors
/// [`StoreError::TokenEnded`].
pub(super) async fn begin(
    store: &Store,
    by: impl Into<Option<Caller>>,
) -> Result<Transaction<'static, Postgres>, StoreError> {
    let mut transaction = store.begin().await?;
    if let Some(by) = by.into() {
        lock_valid(&mut transaction, by.token, store.now()).await?;
    }
    Ok(transaction)
}
