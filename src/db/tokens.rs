//! API tokens. A token is 256 random bits; only its SHA-256 is stored.
//!
//! With an enrolment code an organization activates a token itself, so that the administrator who issued it
//! never has its secret.

use std::net::IpAddr;

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{FromRow, PgExecutor};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{OrganizationId, TokenId};
use crate::roles::{Caller, Role};

use super::audit::{self, Action, Actor, NewEvent};
use super::{Store, StoreError, officers, organizations, token_validity};
use pais_seal::random;

/// The prefix of every token, by which secret scanners recognize it.
pub const PREFIX: &str = "pais_";

/// The prefix of every enrolment code, by which secret scanners recognize it.
pub const CODE_PREFIX: &str = "paisenrol_";

/// How long an enrolment code can be redeemed.
const CODE_LIFETIME: Duration = Duration::days(7);

const SECRET_BYTES: usize = 32;

/// Whether a text has the form of a secret: the prefix and 64 hexadecimal digits in lower case.
pub fn is_well_formed(secret: &str, prefix: &str) -> bool {
    let digits = secret.strip_prefix(prefix).unwrap_or_default();
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == 2 * SECRET_BYTES && digits.bytes().all(is_digit)
}

/// A token without its secret.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
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
    /// The person who acts through it by signing in with the issuer; null for an API token.
    pub oidc_subject: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// From when on it no longer works; null for never.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// When it was revoked.
    #[serde(with = "time::serde::rfc3339::option")]
    pub revoked_at: Option<OffsetDateTime>,
    /// Until when its enrolment code can be redeemed; null for a token whose secret was handed out.
    #[serde(with = "time::serde::rfc3339::option")]
    pub enrolment_expires_at: Option<OffsetDateTime>,
}

/// A new token and its secret, which is not stored anywhere.
pub struct IssuedToken {
    /// The token.
    pub token: Token,
    /// The secret that the bearer sends; for a token that is not yet enrolled, the enrolment code with
    /// which its organization gets the secret.
    pub secret: SecretString,
}

/// A token to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewToken<'a> {
    /// Its role.
    pub role: Role,
    /// What it is for.
    pub label: Option<&'a str>,
    /// When it expires; `None` for never.
    pub expires_at: Option<OffsetDateTime>,
    /// Whether its organization gets the secret by an enrolment code.
    pub is_enrolled: bool,
}

/// Creates a token for the organization with this name or id; returns `None` if there is no such
/// organization. `by` is `None` on the command line, which creates the organization first
/// ([`organizations::find_or_create`]).
///
/// # Errors
/// [`StoreError::TokenEnded`]; when the database fails, or the operating system returns no random bytes.
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
    if new.role == Role::Officer {
        officers::lock(&mut transaction, organization.id).await?;
    }
    if let Some(by) = by {
        token_validity::lock_valid(&mut transaction, by.token, store.now()).await?;
    }
    let secret = random_secret(PREFIX)?;
    let token = Token {
        id: TokenId::new(),
        organization_id: organization.id,
        organization: organization.name.clone(),
        role: new.role,
        label: new.label.map(str::to_owned),
        oidc_subject: None,
        created_at: store.now(),
        expires_at: new.expires_at,
        revoked_at: None,
        enrolment_expires_at: new.is_enrolled.then(|| store.now() + CODE_LIFETIME),
    };
    let code = new
        .is_enrolled
        .then(|| random_secret(CODE_PREFIX))
        .transpose()?;
    sqlx::query(
        "INSERT INTO tokens (id, organization_id, role, label, secret_sha256, created_at, expires_at,
                             enrolment_sha256, enrolment_expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(token.id)
    .bind(token.organization_id)
    .bind(token.role.as_str())
    .bind(&token.label)
    .bind(digest(&secret))
    .bind(token.created_at)
    .bind(token.expires_at)
    .bind(code.as_ref().map(digest))
    .bind(token.enrolment_expires_at)
    .execute(&mut *transaction)
    .await?;
    let detail = json!({ "organization": organization.name, "role": token.role });
    let actor = by.map_or(Actor::SERVICE, Actor::from);
    let event = NewEvent::of(
        organization.id,
        actor,
        Action::TokenCreated,
        token.id.0,
        detail,
    );
    let other = by.map_or(organization.id, |caller| caller.organization);
    audit::commit_in_both(transaction, token.created_at, event, other).await?;
    Ok(Some(IssuedToken {
        token,
        // Nobody gets the secret of a token that is to be enrolled: another one is drawn then.
        secret: code.unwrap_or(secret),
    }))
}

/// Redeems an enrolment code: draws the secret of its token. If two requests use the same code, one gets it.
/// `None` for a code that is unknown, redeemed, expired, or of a revoked token or a disabled organization.
///
/// # Errors
/// When the database fails, or the operating system returns no random bytes.
pub async fn redeem(
    store: &Store,
    code: &str,
    address: Option<IpAddr>,
) -> Result<Option<IssuedToken>, StoreError> {
    let secret = random_secret(PREFIX)?;
    let now = store.now();
    let code = Sha256::digest(code.as_bytes());
    let mut transaction = store.begin().await?;
    let organization: Option<OrganizationId> =
        sqlx::query_scalar("SELECT organization_id FROM tokens WHERE enrolment_sha256 = $1")
            .bind(code.as_slice())
            .fetch_optional(&mut *transaction)
            .await?;
    let Some(organization) = organization else {
        return Ok(None);
    };
    // The token may be that of an officer, who decides from now on. As in `revoke`, the lock of decisions comes
    // before that of the token.
    officers::lock(&mut transaction, organization).await?;
    let redeemed: Option<TokenId> = sqlx::query_scalar(
        "UPDATE tokens t
         SET secret_sha256 = $1, enrolment_sha256 = NULL, enrolment_expires_at = NULL
         FROM organizations o
         WHERE t.enrolment_sha256 = $2 AND t.enrolment_expires_at > $3 AND t.revoked_at IS NULL
           AND o.id = t.organization_id AND o.disabled_at IS NULL
         RETURNING t.id",
    )
    .bind(digest(&secret))
    .bind(code.as_slice())
    .bind(now)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(token) = redeemed else {
        return Ok(None);
    };
    let actor = Actor::token(token, address);
    let event = NewEvent::of(
        organization,
        actor,
        Action::TokenRedeemed,
        token.0,
        json!({}),
    );
    audit::record(&mut transaction, now, event).await?;
    let token = find(&mut *transaction, token).await?;
    transaction.commit().await?;
    let token = token.ok_or(StoreError::Damaged("a token"))?;
    Ok(Some(IssuedToken { token, secret }))
}

fn digest(secret: &SecretString) -> [u8; 32] {
    Sha256::digest(secret.expose_secret()).into()
}

fn random_secret(prefix: &str) -> Result<SecretString, StoreError> {
    let mut bytes = [0u8; SECRET_BYTES];
    random(&mut bytes)?;
    Ok(format!("{prefix}{}", hex::encode(bytes)).into())
}

macro_rules! columns {
    () => {
        "SELECT tokens.id, organization_id, organizations.name AS organization, role, label,
                oidc_subject, tokens.created_at, expires_at, revoked_at, enrolment_expires_at
         FROM tokens JOIN organizations ON organizations.id = organization_id"
    };
}

/// A token; `None` if there is none.
pub(super) async fn find(
    executor: impl PgExecutor<'_>,
    id: TokenId,
) -> Result<Option<Token>, StoreError> {
    Ok(sqlx::query_as(concat!(columns!(), " WHERE tokens.id = $1"))
        .bind(id)
        .fetch_optional(executor)
        .await?)
}

/// The token of a caller.
///
/// # Errors
/// When the database fails.
pub async fn of_caller(store: &Store, caller: Caller) -> Result<Option<Token>, StoreError> {
    find(&mut *store.connection().await?, caller.token).await
}

/// The tokens of an organization, or of all, after `after`, oldest first, at most `limit`.
pub async fn list(
    store: &Store,
    of: Option<OrganizationId>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Token>, StoreError> {
    Ok(sqlx::query_as(concat!(
        columns!(),
        " WHERE ($1::uuid IS NULL OR tokens.id > $1)
            AND ($3::uuid IS NULL OR organization_id = $3)
          ORDER BY tokens.id LIMIT $2"
    ))
    .bind(after)
    .bind(limit)
    .bind(of)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// Revokes a token at once. Revoking it again has no effect. Returns `false` if there is no such
/// token.
///
/// # Errors
/// [`StoreError::TokenEnded`]; when the database fails.
pub async fn revoke(store: &Store, by: Option<Caller>, token: TokenId) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    let of = sqlx::query_scalar("SELECT organization_id FROM tokens WHERE id = $1")
        .bind(token)
        .fetch_optional(&mut *transaction)
        .await?;
    let Some(of) = of else {
        return Ok(false);
    };
    officers::lock(&mut transaction, of).await?;
    // Its own token it may revoke again. A lock of that would wait for another revocation of it, and that for this.
    if let Some(by) = by.filter(|by| by.token != token) {
        token_validity::lock_valid(&mut transaction, by.token, now).await?;
    }
    let role: Option<Role> = sqlx::query_scalar(
        "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING role",
    )
    .bind(token)
    .bind(now)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(role) = role else {
        return Ok(true);
    };
    let detail = json!({ "role": role });
    let actor = by.map_or(Actor::SERVICE, Actor::from);
    let event = NewEvent::of(of, actor, Action::TokenRevoked, token.0, detail);
    let other = by.map_or(of, |caller| caller.organization);
    audit::commit_in_both(transaction, now, event, other).await?;
    Ok(true)
}
