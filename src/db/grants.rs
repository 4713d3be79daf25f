//! Grants: one recipient organization's right to one release.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{FromRow, PgConnection};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::clock;
use crate::ids::{GrantId, OrganizationId, ReleaseId, TokenId};
use crate::roles::Caller;

use super::approvals::{self, Decision};
use super::audit::{self, Action, Actor, NewEvent};
use super::releases::{known_releases, lock_recipient};
use super::{Store, StoreError};
use super::{locked_release, organizations, policies, token_validity};

/// A grant in its current state.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
#[schema(as = GrantDocument)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// What may be fetched.
    pub release_id: ReleaseId,
    /// By whom.
    #[sqlx(flatten)]
    pub recipient: GrantRecipient,
    /// The purpose.
    pub purpose: String,
    /// Until when; null for without end.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The organization that may fetch a release.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
#[schema(as = RecipientDocument)]
pub struct GrantRecipient {
    /// Its id.
    #[sqlx(rename = "recipient_id")]
    pub id: OrganizationId,
    /// Its name.
    #[sqlx(rename = "recipient_name")]
    pub name: String,
}

/// A requested grant.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GrantDefinition)]
pub struct NewGrant {
    /// Name or id of the organization that may fetch the release.
    #[schema(min_length = 1)]
    pub recipient: String,
    /// The purpose for which it needs the data.
    #[schema(min_length = 1, max_length = 2000)]
    pub purpose: String,
    /// Until when; without an end when omitted.
    #[serde(default, deserialize_with = "clock::optional_time")]
    pub expires_at: Option<OffsetDateTime>,
    /// Why the grant is made although the releases that the recipient then knows may break a privacy
    /// model together. It is kept in the audit log.
    #[schema(min_length = 1, max_length = 2000)]
    pub acknowledge_composition_risk: Option<String>,
}

/// The result of [`create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantCreation {
    /// The grant was created.
    Made(Grant),
    /// The recipient knows these releases of the dataset, and the grant was decided with others.
    Undecided(Vec<ReleaseId>),
    /// The grant was not created.
    Refused(GrantRefusal),
}

/// Why a grant is not created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantRefusal {
    /// The organization has no such release.
    NoRelease,
    /// There is no organization with the name or id of the recipient.
    NoRecipient,
    /// The release was withdrawn.
    Withdrawn,
    /// The holder's policy requires that the release is approved first.
    NotApproved,
    /// The release was rejected.
    Rejected,
    /// The holder's policy does not allow the recipient.
    NotInPolicy,
    /// The recipient already has a grant of this release that has not expired.
    Exists,
}

/// Creates a grant of a release that was decided together with the releases `composed`, by id: those of its
/// dataset that the recipient knows.
///
/// # Errors
/// [`StoreError::BelowPolicy`].
pub async fn create(
    store: &Store,
    by: Caller,
    release: ReleaseId,
    grant: &NewGrant,
    composed: &[ReleaseId],
) -> Result<GrantCreation, StoreError> {
    let refused = |refusal| Ok(GrantCreation::Refused(refusal));
    let mut transaction = token_validity::begin(store, by).await?;
    // The lock serializes two equal requests.
    let found = locked_release::lock(&mut transaction, by.organization, release).await?;
    let Some(found) = found else {
        return refused(GrantRefusal::NoRelease);
    };
    if found.is_withdrawn {
        return refused(GrantRefusal::Withdrawn);
    }
    let dataset = found.dataset_id;
    let recipient = organizations::find(&mut *transaction, &grant.recipient).await?;
    let Some(recipient) = recipient else {
        return refused(GrantRefusal::NoRecipient);
    };
    let policy = policies::check_release(&mut transaction, by.organization, release, "").await?;
    // Checked first, because an approval would not help.
    if !policy.allows_recipient(&recipient.name, recipient.id) {
        return refused(GrantRefusal::NotInPolicy);
    }
    match approvals::decision(&mut transaction, release).await? {
        Some(Decision::Approved) => {}
        Some(Decision::Rejected) => return refused(GrantRefusal::Rejected),
        None if policy.requires_approval() => return refused(GrantRefusal::NotApproved),
        None => {}
    }
    let now = store.now();
    if has_grant(&mut transaction, release, recipient.id, now).await? {
        return refused(GrantRefusal::Exists);
    }
    lock_recipient(&mut transaction, dataset, recipient.id).await?;
    let known =
        known_releases(&mut *transaction, recipient.id, dataset, Some(release), now).await?;
    if known != composed {
        return Ok(GrantCreation::Undecided(known));
    }
    let made = Grant {
        id: GrantId::new(),
        release_id: release,
        recipient: GrantRecipient {
            id: recipient.id,
            name: recipient.name,
        },
        purpose: grant.purpose.clone(),
        expires_at: grant.expires_at,
        created_at: now,
    };
    insert(&mut transaction, &made, by.organization, Some(by.token)).await?;
    let mut detail = json!({
        "release_id": release,
        "recipient": made.recipient.name,
        "purpose": made.purpose,
    });
    if let Some(reason) = &grant.acknowledge_composition_risk {
        detail["acknowledged_composition_risk"] = json!(reason);
        detail["composed_with"] = json!(composed);
    }
    let event = NewEvent::by(by, Action::GrantCreated, made.id.0, detail);
    audit::commit(transaction, now, event).await?;
    Ok(GrantCreation::Made(made))
}

async fn insert(
    connection: &mut PgConnection,
    grant: &Grant,
    organization: OrganizationId,
    by: Option<TokenId>,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO grants (id, release_id, recipient_id, purpose, expires_at, created_at,
                             created_by, organization_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(grant.id)
    .bind(grant.release_id)
    .bind(grant.recipient.id)
    .bind(&grant.purpose)
    .bind(grant.expires_at)
    .bind(grant.created_at)
    .bind(by)
    .bind(organization)
    .execute(connection)
    .await?;
    Ok(())
}

/// A grant that is made with the publication of an edition.
#[derive(Clone, Copy)]
pub(super) struct EditionGrant<'a> {
    pub(super) organization: OrganizationId,
    pub(super) release: ReleaseId,
    pub(super) recipient: &'a GrantRecipient,
    pub(super) purpose: &'a str,
    pub(super) expires_at: Option<OffsetDateTime>,
}

/// Makes the grant of an edition, with its event, unless the recipient has one. What the release discloses
/// together with what the recipient knows must have been decided, under [`lock_recipient`].
pub(super) async fn of_edition(
    connection: &mut PgConnection,
    now: OffsetDateTime,
    new: &EditionGrant<'_>,
) -> Result<(), StoreError> {
    if has_grant(connection, new.release, new.recipient.id, now).await? {
        return Ok(());
    }
    let made = Grant {
        id: GrantId::new(),
        release_id: new.release,
        recipient: new.recipient.clone(),
        purpose: new.purpose.to_owned(),
        expires_at: new.expires_at,
        created_at: now,
    };
    insert(connection, &made, new.organization, None).await?;
    let detail = json!({
        "release_id": new.release,
        "recipient": made.recipient.name,
        "purpose": made.purpose,
    });
    let (action, by) = (Action::GrantCreated, Actor::SERVICE);
    let event = NewEvent::of(new.organization, by, action, made.id.0, detail);
    audit::record(connection, now, event).await
}

/// Whether a recipient has a grant of a release that has not expired.
async fn has_grant(
    connection: &mut PgConnection,
    release: ReleaseId,
    recipient: OrganizationId,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM grants WHERE release_id = $1 AND recipient_id = $2
                        AND (expires_at IS NULL OR expires_at > $3))",
    )
    .bind(release)
    .bind(recipient)
    .bind(now)
    .fetch_one(connection)
    .await?)
}

/// The grants of a release after `after`, expired ones included, oldest first, at most `limit`;
/// `None` if the organization has no such release.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    release: ReleaseId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Option<Vec<Grant>>, StoreError> {
    let exists = sqlx::query("SELECT 1 FROM releases WHERE id = $1 AND organization_id = $2")
        .bind(release)
        .bind(organization)
        .fetch_optional(&mut *store.connection().await?)
        .await?;
    if exists.is_none() {
        return Ok(None);
    }
    let grants = sqlx::query_as(
        "SELECT g.id, g.release_id, g.recipient_id, o.name AS recipient_name, g.purpose, g.expires_at, g.created_at
         FROM grants g JOIN organizations o ON o.id = g.recipient_id
         WHERE g.release_id = $1 AND ($2::uuid IS NULL OR g.id > $2)
         ORDER BY g.id LIMIT $3",
    )
    .bind(release)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    Ok(Some(grants))
}

/// Deletes a grant; returns `false` if there is no such grant.
pub async fn delete(
    store: &Store,
    by: Caller,
    release: ReleaseId,
    id: GrantId,
) -> Result<bool, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let recipient: Option<OrganizationId> = sqlx::query_scalar(
        "DELETE FROM grants g USING releases r
         WHERE g.id = $1 AND g.release_id = $2 AND r.id = g.release_id AND r.organization_id = $3
         RETURNING g.recipient_id",
    )
    .bind(id)
    .bind(release)
    .bind(by.organization)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(recipient) = recipient else {
        return Ok(false);
    };
    let detail = json!({ "release_id": release, "recipient_id": recipient });
    let event = NewEvent::by(by, Action::GrantDeleted, id.0, detail);
    audit::commit(transaction, store.now(), event).await?;
    Ok(true)
}
