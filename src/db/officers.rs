//! Who decides for an organization: its privacy officers, if it has any, and its holders otherwise.
//!
//! A decision takes a shared lock of its organization; adding or removing an officer takes the exclusive
//! lock. So a decision is made before the change or after it, never during it.

use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::ids::OrganizationId;
use crate::roles::{Caller, Role};

use super::{StoreError, token_validity};

/// Waits for the decisions of an organization that are in progress, and lets later ones wait until the end of
/// the transaction. Used when an officer is added or removed.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 15))")
        .bind(organization)
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether the caller may set the policy and approve at `now`: not a holder of an organization that has an
/// officer. That holds until the end of the transaction.
///
/// # Errors
/// [`StoreError::TokenEnded`].
pub(super) async fn may_decide(
    connection: &mut PgConnection,
    by: Caller,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock_shared(hashtextextended($1::text, 15))")
        .bind(by.organization)
        .execute(&mut *connection)
        .await?;
    token_validity::lock_valid(&mut *connection, by.token, now).await?;
    Ok(by.role == Role::Officer || !has_officer(connection, by.organization, now).await?)
}

/// Whether an organization has a valid token of an officer: one that is redeemed, and neither expired nor
/// revoked. A person who has signed in with the issuer as an officer counts until that person's token is
/// revoked.
async fn has_officer(
    connection: &mut PgConnection,
    organization: OrganizationId,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM tokens
                        WHERE organization_id = $1 AND role = 'officer' AND revoked_at IS NULL
                          AND (expires_at IS NULL OR expires_at > $2)
                          AND enrolment_sha256 IS NULL)",
    )
    .bind(organization)
    .bind(now)
    .fetch_one(connection)
    .await?)
}
