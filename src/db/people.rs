//! People who sign in with an issuer. Each acts through a token of their own, whose secret nobody knows.

use std::net::IpAddr;

use pais_seal::random;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use crate::ids::{OrganizationId, TokenId};
use crate::roles::Role;

use super::audit::{self, Action, Actor, NewEvent};
use super::token_validity::{Authentication, StoredToken, stored_token};
use super::{Store, StoreError, officers, organizations};

/// A person as identified by the issuer.
#[derive(Clone, Copy, Debug)]
pub struct Person<'a> {
    /// The role in which the person acts.
    pub role: Role,
    /// The issuer's subject.
    pub subject: &'a str,
}

/// Looks up a person of the organization with this name or id. A person who comes for the first time
/// gets a token, which the audit log records; one whose token was revoked is refused.
///
/// # Errors
/// When the operating system returns no random bytes.
pub(crate) async fn authenticate(
    store: &Store,
    organization: &str,
    person: Person<'_>,
    address: Option<IpAddr>,
) -> Result<Authentication, StoreError> {
    let mut connection = store.connection().await?;
    let found = organizations::find(&mut *connection, organization).await?;
    let Some(organization) = found else {
        return Ok(Authentication::Unknown);
    };
    let known = find(&mut connection, organization.id, person).await?;
    drop(connection);
    if let Some(known) = known {
        return Ok(known.authenticate(store.now()));
    }
    // A person who comes for the first time gets no token then.
    if organization.disabled_at.is_some() {
        return Ok(Authentication::Unknown);
    }
    let mut unknown = [0; 32];
    random(&mut unknown)?;
    let token = TokenId::new();
    let mut transaction = store.begin().await?;
    if person.role == Role::Officer {
        officers::lock(&mut transaction, organization.id).await?;
    }
    let made = sqlx::query(
        "INSERT INTO tokens (id, organization_id, role, secret_sha256, created_at, oidc_subject)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (organization_id, role, oidc_subject) WHERE oidc_subject IS NOT NULL
         DO NOTHING",
    )
    .bind(token)
    .bind(organization.id)
    .bind(person.role.as_str())
    .bind(Sha256::digest(unknown).as_slice())
    .bind(store.now())
    .bind(person.subject)
    .execute(&mut *transaction)
    .await?;
    if made.rows_affected() == 1 {
        let detail = json!({ "role": person.role, "oidc_subject": person.subject });
        let actor = Actor::token(token, address);
        let event = NewEvent::of(
            organization.id,
            actor,
            Action::TokenCreated,
            token.0,
            detail,
        );
        audit::record(&mut transaction, store.now(), event).await?;
    }
    transaction.commit().await?;
    // Two first requests may come at the same time: the other one has made the token.
    let known = find(&mut *store.connection().await?, organization.id, person).await?;
    let known = known.ok_or(StoreError::Damaged("a person"))?;
    Ok(known.authenticate(store.now()))
}

async fn find(
    connection: &mut PgConnection,
    organization: OrganizationId,
    person: Person<'_>,
) -> Result<Option<StoredToken>, StoreError> {
    Ok(sqlx::query_as(stored_token!(
        "t.organization_id = $1 AND t.role = $2 AND t.oidc_subject = $3"
    ))
    .bind(organization)
    .bind(person.role.as_str())
    .bind(person.subject)
    .fetch_optional(connection)
    .await?)
}
