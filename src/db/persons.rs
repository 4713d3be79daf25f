//! People who sign in with an issuer. Each acts through a token of their own, whose secret nobody
//! knows.

use std::net::IpAddr;

use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{PgExecutor, Row};
use uuid::Uuid;

use crate::ids::{OrganizationId, TokenId};
use crate::roles::{Caller, Role};

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::seal::random;
use super::token_validity::{Authentication, RefusalReason};
use super::{Store, StoreError, organizations};

/// Looks up a person of the organization with this name or id. A person who comes for the first time
/// gets a token, which the audit log records; one whose token was revoked is refused.
///
/// # Errors
/// When the database fails, or the operating system returns no random bytes.
pub async fn authenticate(
    store: &Store,
    organization: &str,
    (role, subject): (Role, &str),
    address: Option<IpAddr>,
) -> Result<Authentication, StoreError> {
    let found = organizations::find(&mut *store.connection().await?, organization).await?;
    let Some(organization) = found else {
        return Ok(Authentication::Unknown);
    };
    if organization.disabled_at.is_some() {
        // A person who comes for the first time gets no token then.
        let known = find(
            &mut *store.connection().await?,
            (organization.id, role, subject),
        )
        .await?;
        return Ok(known.unwrap_or(Authentication::Unknown));
    }
    let person = (organization.id, role, subject);
    if let Some(known) = find(&mut *store.connection().await?, person).await? {
        return Ok(known);
    }
    let mut unknown = [0; 32];
    random(&mut unknown)?;
    let token = TokenId::new();
    let mut transaction = store.begin().await?;
    let made = sqlx::query(
        "INSERT INTO tokens (id, organization_id, role, secret_sha256, created_at, oidc_subject)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (organization_id, role, oidc_subject) WHERE oidc_subject IS NOT NULL
         DO NOTHING",
    )
    .bind(token.0)
    .bind(organization.id.0)
    .bind(role.as_str())
    .bind(Sha256::digest(unknown).as_slice())
    .bind(store.now())
    .bind(subject)
    .execute(&mut *transaction)
    .await?;
    if made.rows_affected() == 1 {
        let event = NewEvent {
            organization: organization.id,
            actor: Actor {
                token: Some(token),
                address,
            },
            action: Action::TokenCreated,
            subject: token.0,
            detail: json!({ "role": role.as_str(), "oidc_subject": subject }),
            outcome: Outcome::Done,
        };
        audit::record(&mut transaction, store.now(), event).await?;
    }
    transaction.commit().await?;
    // Of two first requests at the same time, one has made the token.
    let known = find(&mut *store.connection().await?, person).await?;
    known.ok_or(StoreError::Damaged { what: "a person" })
}

async fn find(
    executor: impl PgExecutor<'_>,
    (organization, role, subject): (OrganizationId, Role, &str),
) -> Result<Option<Authentication>, StoreError> {
    let row = sqlx::query(
        "SELECT t.id, t.revoked_at IS NOT NULL AS is_revoked,
                o.disabled_at IS NOT NULL AS is_disabled
         FROM tokens t JOIN organizations o ON o.id = t.organization_id
         WHERE t.organization_id = $1 AND t.role = $2 AND t.oidc_subject = $3",
    )
    .bind(organization.0)
    .bind(role.as_str())
    .bind(subject)
    .fetch_optional(executor)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let token = TokenId(row.try_get::<Uuid, _>("id")?);
    let reason = match (row.try_get("is_revoked")?, row.try_get("is_disabled")?) {
        (true, _) => RefusalReason::Revoked,
        (false, true) => RefusalReason::Disabled,
        (false, false) => {
            return Ok(Some(Authentication::Valid(Caller {
                organization,
                role,
                token,
                address: None,
            })));
        }
    };
    Ok(Some(Authentication::Refused {
        token,
        organization,
        reason,
    }))
}
