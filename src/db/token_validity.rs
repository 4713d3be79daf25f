//! Whether a token still works: when a request begins, when it commits, and while it streams.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use sqlx::{FromRow, PgConnection};
use time::{Duration, OffsetDateTime};

use crate::ids::{OrganizationId, TokenId};
use crate::roles::{Caller, Role};

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::{Store, StoreError};

/// Time between two audit events about refused uses of one token, so that a script which goes on
/// using it does not fill the log.
const RECORD_INTERVAL: Duration = Duration::minutes(1);

/// What the secret of a request belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Authentication {
    /// A token that works.
    Valid(Caller),
    /// A token that no longer works.
    Refused {
        /// The token.
        token: TokenId,
        /// Its organization.
        organization: OrganizationId,
        /// Why it does not work.
        reason: RefusalReason,
    },
    /// No token.
    Unknown,
}

/// Why a use of a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// Its `expires_at` has passed.
    Expired,
    /// It was revoked.
    Revoked,
    /// Its organization is disabled.
    Disabled,
    /// Its role may not do what was asked for.
    Role,
}

impl RefusalReason {
    /// The reason as a word in the audit log.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Disabled => "disabled",
            Self::Role => "role",
        }
    }
}

/// A stored token, to decide whether it works.
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
    /// Whether it works at `now`.
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
///
/// # Errors
/// When the database fails.
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
        actor: Actor {
            token: Some(token),
            address,
        },
        action: Action::TokenRefused,
        subject: token.0,
        detail: serde_json::json!({ "reason": reason.as_str() }),
        outcome: Outcome::Refused,
    };
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(())
}

/// Whether a token works. For work that lasts longer than its request.
///
/// # Errors
/// When the database fails.
pub(crate) async fn is_valid(store: &Store, token: TokenId) -> Result<bool, StoreError> {
    let valid = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM tokens t JOIN organizations o ON o.id = t.organization_id
                        WHERE t.id = $1 AND t.revoked_at IS NULL AND o.disabled_at IS NULL
                        AND (t.expires_at IS NULL OR t.expires_at > $2))",
    )
    .bind(token)
    .bind(store.now())
    .fetch_one(&mut *store.connection().await?)
    .await?;
    Ok(valid)
}

/// Whether a token works at `now`. If so, neither can it be revoked nor its organization be
/// disabled before the transaction ends: what the
/// transaction writes was permitted when it was committed.
///
/// # Errors
/// When the database fails.
pub(super) async fn lock_valid(
    connection: &mut PgConnection,
    token: TokenId,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    let locked = sqlx::query(
        "SELECT FROM tokens t JOIN organizations o ON o.id = t.organization_id
         WHERE t.id = $1 AND t.revoked_at IS NULL AND o.disabled_at IS NULL
             AND (t.expires_at IS NULL OR t.expires_at > $2)
         FOR SHARE OF t, o",
    )
    .bind(token)
    .bind(now)
    .fetch_optional(connection)
    .await?;
    Ok(locked.is_some())
}
