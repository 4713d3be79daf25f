//! API tokens: 256 random bits, stored as their SHA-256.

use sha2::{Digest, Sha256};
use sqlx::Row;

use crate::domain::{Caller, OrganizationId, Role, TokenId};

use super::{Store, StoreError};

/// Who holds the token with this secret, if it is neither expired nor revoked.
///
/// # Errors
/// When the database fails.
pub async fn authenticate(store: &Store, secret: &str) -> Result<Option<Caller>, StoreError> {
    let digest = Sha256::digest(secret.as_bytes());
    let row = sqlx::query(
        "SELECT id, organization_id, role FROM tokens
         WHERE secret_sha256 = $1 AND revoked_at IS NULL
           AND (expires_at IS NULL OR expires_at > $2)",
    )
    .bind(digest.as_slice())
    .bind(store.now())
    .fetch_optional(store.pool())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let role = Role::from_word(row.try_get("role")?);
    Ok(Some(Caller {
        organization: OrganizationId(row.try_get("organization_id")?),
        role: role.ok_or(StoreError::Damaged { what: "a token" })?,
        token: TokenId(row.try_get("id")?),
    }))
}
