//! API tokens. A token is 256 random bits; only its SHA-256 is stored.

use rand::TryRng;
use secrecy::SecretString;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{OrganizationId, TokenId};
use crate::roles::{Caller, Role};

use super::audit::{self, Action, NewEvent};
use super::organizations;
use super::seal::SealError;
use super::{Store, StoreError};

/// The prefix of every token, by which secret scanners recognize it.
pub const PREFIX: &str = "pais_";

const SECRET_BYTES: usize = 32;

/// A token without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// On whose behalf it acts.
    pub organization_id: OrganizationId,
    /// That organization's name.
    pub organization: String,
    /// With which rights.
    pub role: Role,
    /// What it is for.
    pub label: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// From when on it no longer works; null for never.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// When it was revoked.
    #[serde(with = "time::serde::rfc3339::option")]
    pub revoked_at: Option<OffsetDateTime>,
}

impl Token {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: TokenId(row.try_get("id")?),
            organization_id: OrganizationId(row.try_get("organization_id")?),
            organization: row.try_get("organization")?,
            role: role(row)?,
            label: row.try_get("label")?,
            created_at: row.try_get("created_at")?,
            expires_at: row.try_get("expires_at")?,
            revoked_at: row.try_get("revoked_at")?,
        })
    }
}

fn role(row: &PgRow) -> Result<Role, StoreError> {
    Role::from_name(row.try_get("role")?).ok_or(StoreError::Damaged { what: "a token" })
}

/// A new token and its secret, which is not stored anywhere.
pub struct IssuedToken {
    /// The token.
    pub token: Token,
    /// The secret that the bearer sends.
    pub secret: SecretString,
}

/// A token to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewToken<'a> {
    /// Its role.
    pub role: Role,
    /// What it is for.
    pub label: Option<&'a str>,
    /// When it expires; `None` for never. [`crate::service::TokenLifetime`] limits it.
    pub expires_at: Option<OffsetDateTime>,
}

/// What a secret is.
#[derive(Clone, Copy, Debug)]
pub enum Authentication {
    /// The secret of a token that works.
    Valid(Caller),
    /// The secret of a token that has expired.
    Expired(Caller),
    /// The secret of a token that was revoked.
    Revoked(Caller),
    /// No token's secret.
    Unknown,
}

/// Finds the token with this secret.
///
/// # Errors
/// When the database fails.
pub async fn authenticate(store: &Store, secret: &str) -> Result<Authentication, StoreError> {
    let row = sqlx::query(
        "SELECT id, organization_id, role, revoked_at IS NOT NULL AS revoked,
                coalesce(expires_at <= $2, false) AS expired
         FROM tokens WHERE secret_sha256 = $1",
    )
    .bind(Sha256::digest(secret.as_bytes()).as_slice())
    .bind(store.now())
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else {
        return Ok(Authentication::Unknown);
    };
    let caller = Caller {
        organization: OrganizationId(row.try_get("organization_id")?),
        role: role(&row)?,
        token: TokenId(row.try_get("id")?),
    };
    Ok(if row.try_get("revoked")? {
        Authentication::Revoked(caller)
    } else if row.try_get("expired")? {
        Authentication::Expired(caller)
    } else {
        Authentication::Valid(caller)
    })
}

/// Time between two events about the refusal of one token, so that a client that repeats its requests
/// does not fill the audit log.
const REFUSAL_INTERVAL: Duration = Duration::minutes(1);

/// Records in the audit log of the token's organization that the token was refused, at most once a
/// minute. `reason` is `expired` or `revoked`.
///
/// # Errors
/// When the database fails.
pub async fn record_refusal(
    store: &Store,
    token: Caller,
    reason: &'static str,
) -> Result<(), StoreError> {
    let now = store.now();
    let mut transaction = store.begin().await?;
    let due = sqlx::query(
        "UPDATE tokens SET refused_at = $2
         WHERE id = $1 AND (refused_at IS NULL OR refused_at <= $3)",
    )
    .bind(token.token.0)
    .bind(now)
    .bind(now - REFUSAL_INTERVAL)
    .execute(&mut *transaction)
    .await?;
    if due.rows_affected() == 1 {
        let detail = serde_json::json!({ "reason": reason });
        let event = NewEvent::by(token, Action::TokenRefused, token.token.0, detail);
        audit::record(&mut transaction, now, event).await?;
    }
    Ok(transaction.commit().await?)
}

/// Locks a token against revocation until the transaction ends. Returns whether it is neither expired
/// nor revoked. For work that was begun with it and is committed now.
///
/// # Errors
/// When the database fails.
pub(super) async fn lock_valid(
    connection: &mut PgConnection,
    token: TokenId,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT FROM tokens WHERE id = $1 AND revoked_at IS NULL
           AND (expires_at IS NULL OR expires_at > $2) FOR SHARE",
    )
    .bind(token.0)
    .bind(now)
    .fetch_optional(connection)
    .await?;
    Ok(row.is_some())
}

/// Whether a token is neither expired nor revoked. For work that lasts longer than its request.
///
/// # Errors
/// When the database fails.
pub async fn is_valid(store: &Store, token: TokenId) -> Result<bool, StoreError> {
    let valid = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM tokens WHERE id = $1 AND revoked_at IS NULL
                        AND (expires_at IS NULL OR expires_at > $2))",
    )
    .bind(token.0)
    .bind(store.now())
    .fetch_one(store.pool())
    .await?;
    Ok(valid)
}

/// Creates a token for the organization with this name or id; returns `None` if there is no such
/// organization. `by` is `None` on the command line, which creates the organization first
/// ([`organizations::find_or_create`]).
///
/// # Errors
/// When the database fails, or the operating system returns no random bytes.
pub async fn create_token(
    store: &Store,
    by: Option<Caller>,
    organization: &str,
    new: NewToken<'_>,
) -> Result<Option<IssuedToken>, StoreError> {
    let mut transaction = store.begin().await?;
    let Some(organization) = organizations::find(&mut *transaction, organization).await? else {
        return Ok(None);
    };
    let secret = random_secret()?;
    let token = Token {
        id: TokenId::new(),
        organization_id: organization.id,
        organization: organization.name.clone(),
        role: new.role,
        label: new.label.map(str::to_owned),
        created_at: store.now(),
        expires_at: new.expires_at,
        revoked_at: None,
    };
    sqlx::query(
        "INSERT INTO tokens (id, organization_id, role, label, secret_sha256, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(token.id.0)
    .bind(token.organization_id.0)
    .bind(token.role.as_str())
    .bind(&token.label)
    .bind(Sha256::digest(secret.as_bytes()).as_slice())
    .bind(token.created_at)
    .bind(token.expires_at)
    .execute(&mut *transaction)
    .await?;
    let events = token_events(by, organization.id, Action::TokenCreated, token.id.0, &{
        serde_json::json!({ "organization": organization.name, "role": token.role })
    });
    for event in events {
        audit::record(&mut transaction, token.created_at, event).await?;
    }
    transaction.commit().await?;
    Ok(Some(IssuedToken {
        token,
        secret: secret.into(),
    }))
}

/// The audit events of an action on a token: one in the log of its organization, and one in the log
/// of the organization that did it, if that is a different one.
fn token_events(
    by: Option<Caller>,
    of: OrganizationId,
    action: Action,
    subject: Uuid,
    detail: &serde_json::Value,
) -> Vec<NewEvent> {
    let mut logs = vec![of];
    logs.extend(
        by.map(|caller| caller.organization)
            .filter(|&own| own != of),
    );
    logs.into_iter()
        .map(|organization| NewEvent {
            organization,
            token: by.map(|caller| caller.token),
            action,
            subject,
            detail: detail.clone(),
        })
        .collect()
}

fn random_secret() -> Result<String, StoreError> {
    let mut bytes = [0u8; SECRET_BYTES];
    rand::rngs::SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(|_| SealError::NoRandomness)?;
    Ok(format!("{PREFIX}{}", hex::encode(bytes)))
}

/// All tokens after `after`, oldest first, at most `limit`.
///
/// # Errors
/// When the database fails.
pub async fn list(
    store: &Store,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Token>, StoreError> {
    let rows = sqlx::query(
        "SELECT tokens.id, organization_id, organizations.name AS organization, role, label,
                tokens.created_at, expires_at, revoked_at
         FROM tokens JOIN organizations ON organizations.id = organization_id
         WHERE $1::uuid IS NULL OR tokens.id > $1 ORDER BY tokens.id LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(store.pool())
    .await?;
    rows.iter().map(Token::from_row).collect()
}

/// Revokes a token at once. Revoking it again has no effect. Returns `false` if there is no such
/// token.
///
/// # Errors
/// When the database fails.
pub async fn revoke(store: &Store, by: Caller, token: TokenId) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    let row = sqlx::query(
        "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL
         RETURNING organization_id, role",
    )
    .bind(token.0)
    .bind(now)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else {
        let exists = sqlx::query_scalar("SELECT EXISTS (SELECT FROM tokens WHERE id = $1)")
            .bind(token.0)
            .fetch_one(&mut *transaction)
            .await?;
        return Ok(exists);
    };
    let of = OrganizationId(row.try_get("organization_id")?);
    let detail = serde_json::json!({ "role": role(&row)? });
    for event in token_events(Some(by), of, Action::TokenRevoked, token.0, &detail) {
        audit::record(&mut transaction, now, event).await?;
    }
    transaction.commit().await?;
    Ok(true)
}
