//! Enrolment: an organization makes a token usable itself, so that the administrator who issued it
//! never has its secret.

use std::net::IpAddr;

use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

use crate::ids::{OrganizationId, TokenId};

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::tokens::{self, IssuedToken};
use super::{Store, StoreError};

/// How long a code can be redeemed.
pub(crate) const LIFETIME: Duration = Duration::days(7);

/// The prefix of every code, by which secret scanners recognize it.
pub(crate) const PREFIX: &str = "paisenrol_";

/// Number of hexadecimal digits after the prefix.
const DIGITS: usize = 64;

/// Whether a text has the form of a code.
pub(crate) fn is_well_formed(code: &str) -> bool {
    let digits = code.strip_prefix(PREFIX).unwrap_or_default();
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == DIGITS && digits.bytes().all(is_digit)
}

/// What is stored of a code.
pub(super) fn digest(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}

/// Redeems a code: draws the secret of its token. Of two requests with one code, one gets it. `None`
/// for a code that is unknown, redeemed, expired, or of a revoked token or a disabled organization.
///
/// # Errors
/// When the database fails, or the operating system returns no random bytes.
pub(crate) async fn redeem(
    store: &Store,
    code: &str,
    address: Option<IpAddr>,
) -> Result<Option<IssuedToken>, StoreError> {
    let secret = tokens::random_secret()?;
    let now: OffsetDateTime = store.now();
    let mut transaction = store.begin().await?;
    let redeemed: Option<(TokenId, OrganizationId)> = sqlx::query_as(
        "UPDATE tokens t
         SET secret_sha256 = $1, enrolment_sha256 = NULL, enrolment_expires_at = NULL
         FROM organizations o
         WHERE t.enrolment_sha256 = $2 AND t.enrolment_expires_at > $3 AND t.revoked_at IS NULL
           AND o.id = t.organization_id AND o.disabled_at IS NULL
         RETURNING t.id, t.organization_id",
    )
    .bind(Sha256::digest(secret.as_bytes()).as_slice())
    .bind(digest(code).as_slice())
    .bind(now)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some((token, organization)) = redeemed else {
        return Ok(None);
    };
    let event = NewEvent {
        organization,
        actor: Actor {
            token: Some(token),
            address,
        },
        action: Action::TokenRedeemed,
        subject: token.0,
        detail: json!({}),
        outcome: Outcome::Done,
    };
    audit::record(&mut transaction, now, event).await?;
    let token = tokens::find(&mut *transaction, token).await?;
    transaction.commit().await?;
    let token = token.ok_or(StoreError::Damaged { what: "a token" })?;
    Ok(Some(IssuedToken {
        token,
        secret: secret.into(),
    }))
}

/// A code that was drawn for a token.
pub(super) fn new_code() -> Result<SecretString, StoreError> {
    let secret = tokens::random_secret()?;
    let digits = secret.strip_prefix(tokens::PREFIX).unwrap_or(&secret);
    Ok(format!("{PREFIX}{digits}").into())
}
