//! Grants: one recipient organization's right to one release.

use serde_json::json;
use sqlx::Row;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::roles::Caller;
use crate::ids::{GrantId, OrganizationId, ReleaseId};

use super::audit::{self, Action, NewEvent};
use super::organizations;
use super::{Store, StoreError};

/// A grant as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Its id.
    pub id: GrantId,
    /// What may be fetched.
    pub release: ReleaseId,
    /// By whom.
    pub recipient: OrganizationId,
    /// The recipient's name.
    pub recipient_name: String,
    /// To what end.
    pub purpose: String,
    /// Until when.
    pub expires_at: Option<OffsetDateTime>,
    /// Since when.
    pub created_at: OffsetDateTime,
}

/// A grant to be made.
#[derive(Clone, Debug)]
pub struct NewGrant<'a> {
    /// What may be fetched.
    pub release: ReleaseId,
    /// By whom: the name or the id of an organization.
    pub recipient: &'a str,
    /// To what end.
    pub purpose: &'a str,
    /// Until when.
    pub expires_at: Option<OffsetDateTime>,
}

/// What became of a grant to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granting {
    /// It was made.
    Made(StoredGrant),
    /// The organization has no such release.
    NoRelease,
    /// There is no such recipient.
    NoRecipient,
    /// The recipient holds a grant that has not expired.
    Exists,
}

/// Makes a grant.
///
/// # Errors
/// When the database fails.
pub async fn create(
    store: &Store,
    by: Caller,
    grant: &NewGrant<'_>,
) -> Result<Granting, StoreError> {
    let mut transaction = store.begin().await?;
    // The lock makes two equal requests follow each other.
    let release =
        sqlx::query("SELECT 1 FROM releases WHERE id = $1 AND organization_id = $2 FOR UPDATE")
            .bind(grant.release.0)
            .bind(by.organization.0)
            .fetch_optional(&mut *transaction)
            .await?;
    if release.is_none() {
        return Ok(Granting::NoRelease);
    }
    let recipient = organizations::find(&mut *transaction, grant.recipient).await?;
    let Some(recipient) = recipient else {
        return Ok(Granting::NoRecipient);
    };
    let now = store.now();
    let made = StoredGrant {
        id: GrantId::new(),
        release: grant.release,
        recipient: recipient.id,
        recipient_name: recipient.name,
        purpose: grant.purpose.to_owned(),
        expires_at: grant.expires_at,
        created_at: now,
    };
    let done = sqlx::query(
        "INSERT INTO grants (id, release_id, recipient_id, purpose, expires_at, created_at,
                             created_by)
         SELECT $1, $2, $3, $4, $5, $6, $7
         WHERE NOT EXISTS (
             SELECT 1 FROM grants WHERE release_id = $2 AND recipient_id = $3
             AND (expires_at IS NULL OR expires_at > $6))",
    )
    .bind(made.id.0)
    .bind(made.release.0)
    .bind(made.recipient.0)
    .bind(&made.purpose)
    .bind(made.expires_at)
    .bind(made.created_at)
    .bind(by.token.0)
    .execute(&mut *transaction)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(Granting::Exists);
    }
    let detail = json!({
        "release_id": made.release,
        "recipient": made.recipient_name,
        "purpose": made.purpose,
    });
    let event = NewEvent::by(by, Action::GrantCreated, made.id.0, detail);
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(Granting::Made(made))
}

/// Grants of a release after `after`, oldest first, those expired included; `None` when the
/// organization has no such release.
///
/// # Errors
/// When the database fails.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    release: ReleaseId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Option<Vec<StoredGrant>>, StoreError> {
    let there = sqlx::query("SELECT 1 FROM releases WHERE id = $1 AND organization_id = $2")
        .bind(release.0)
        .bind(organization.0)
        .fetch_optional(store.pool())
        .await?;
    if there.is_none() {
        return Ok(None);
    }
    let rows = sqlx::query(
        "SELECT g.id, g.release_id, g.recipient_id, o.name, g.purpose, g.expires_at, g.created_at
         FROM grants g JOIN organizations o ON o.id = g.recipient_id
         WHERE g.release_id = $1 AND ($2::uuid IS NULL OR g.id > $2)
         ORDER BY g.id LIMIT $3",
    )
    .bind(release.0)
    .bind(after)
    .bind(limit)
    .fetch_all(store.pool())
    .await?;
    rows.iter().map(stored).collect::<Result<_, _>>().map(Some)
}

/// Takes a grant back; `false` when there is none such.
///
/// # Errors
/// When the database fails.
pub async fn delete(
    store: &Store,
    by: Caller,
    release: ReleaseId,
    id: GrantId,
) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let recipient: Option<Uuid> = sqlx::query_scalar(
        "DELETE FROM grants g USING releases r
         WHERE g.id = $1 AND g.release_id = $2 AND r.id = g.release_id AND r.organization_id = $3
         RETURNING g.recipient_id",
    )
    .bind(id.0)
    .bind(release.0)
    .bind(by.organization.0)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(recipient) = recipient else {
        return Ok(false);
    };
    let detail = json!({ "release_id": release, "recipient_id": recipient });
    let event = NewEvent::by(by, Action::GrantDeleted, id.0, detail);
    audit::record(&mut transaction, store.now(), event).await?;
    transaction.commit().await?;
    Ok(true)
}

fn stored(row: &PgRow) -> Result<StoredGrant, StoreError> {
    Ok(StoredGrant {
        id: GrantId(row.try_get("id")?),
        release: ReleaseId(row.try_get("release_id")?),
        recipient: OrganizationId(row.try_get("recipient_id")?),
        recipient_name: row.try_get("name")?,
        purpose: row.try_get("purpose")?,
        expires_at: row.try_get("expires_at")?,
        created_at: row.try_get("created_at")?,
    })
}
