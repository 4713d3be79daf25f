//! Organizations: hospitals and recipients.

use serde::Serialize;
use serde_json::json;
use sqlx::{FromRow, PgExecutor};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::Caller;
use pais_core::codebook::CodebookOrganization;

use super::audit::{self, Action, Actor, NewEvent};
use super::{Store, StoreError, token_validity, violates};

/// A hospital, or a recipient such as the BTS.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its slug, unique in the service.
    pub name: String,
    /// Its name for people.
    pub display_name: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Since when its tokens, and those of its people, are refused; null while they work.
    #[serde(with = "time::serde::rfc3339::option")]
    pub disabled_at: Option<OffsetDateTime>,
}

/// Creates an organization; returns `None` if the name is taken. `by` is `None` on the command
/// line.
pub async fn create(
    store: &Store,
    by: Option<Caller>,
    name: &str,
    display_name: Option<&str>,
) -> Result<Option<Organization>, StoreError> {
    let made = Organization {
        id: OrganizationId::new(),
        name: name.to_owned(),
        display_name: display_name.map(str::to_owned),
        created_at: store.now(),
        disabled_at: None,
    };
    let mut transaction = token_validity::begin(store, by).await?;
    let inserted = sqlx::query(
        "INSERT INTO organizations (id, name, display_name, created_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(made.id)
    .bind(&made.name)
    .bind(&made.display_name)
    .bind(made.created_at)
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "organizations_name_key") => return Ok(None),
        inserted => inserted?,
    };
    let log = by.map_or(made.id, |caller| caller.organization);
    let actor = by.map_or(Actor::SERVICE, Actor::from);
    let detail = json!({ "name": made.name });
    let event = NewEvent::of(log, actor, Action::OrganizationCreated, made.id.0, detail);
    audit::commit(transaction, made.created_at, event).await?;
    Ok(Some(made))
}

/// The organizations after `after`, oldest first, at most `limit`.
pub async fn list(
    store: &Store,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Organization>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT id, name, display_name, created_at, disabled_at FROM organizations
         WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// The organization with this name or id; `None` if there is none. `executor` is a connection
/// or a transaction.
pub async fn find(
    executor: impl PgExecutor<'_>,
    name_or_id: &str,
) -> Result<Option<Organization>, StoreError> {
    // PostgreSQL rejects NUL in text, and no name contains it.
    if name_or_id.contains('\0') {
        return Ok(None);
    }
    Ok(sqlx::query_as(
        "SELECT id, name, display_name, created_at, disabled_at FROM organizations WHERE name = $1 OR id = $2",
    )
    .bind(name_or_id)
    .bind(name_or_id.parse::<Uuid>().ok())
    .fetch_optional(executor)
    .await?)
}

/// Whether an organization may use the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may.
    Enabled,
    /// Its tokens, and those of its people, are refused.
    Disabled,
}

/// Disables or enables an organization; has no effect if it already is in that state. Returns `false`
/// if there is no such organization.
pub(crate) async fn set_access(
    store: &Store,
    by: Caller,
    id: OrganizationId,
    access: Access,
) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    // The lock waits for transactions of its tokens (`token_validity::lock_valid`). It comes before that of the
    // caller's token: two administrators who disable their own organization do not wait for each other.
    let exists = sqlx::query("SELECT FROM organizations WHERE id = $1 FOR UPDATE")
        .bind(id)
        .fetch_optional(&mut *transaction)
        .await?
        .is_some();
    token_validity::lock_valid(&mut transaction, by.token, now).await?;
    let changed = sqlx::query(
        "UPDATE organizations SET disabled_at = CASE WHEN $2 THEN $3 END
         WHERE id = $1 AND (disabled_at IS NOT NULL) <> $2",
    )
    .bind(id)
    .bind(access == Access::Disabled)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    if changed.rows_affected() == 0 {
        return Ok(exists);
    }
    let action = match access {
        Access::Enabled => Action::OrganizationEnabled,
        Access::Disabled => Action::OrganizationDisabled,
    };
    let event = NewEvent::by(by, action, id.0, json!({}));
    audit::commit_in_both(transaction, now, event, id).await?;
    Ok(true)
}

/// The names of the organization that holds a release.
///
/// # Errors
/// When the database fails.
pub(crate) async fn holder(
    store: &Store,
    id: OrganizationId,
) -> Result<CodebookOrganization, StoreError> {
    let holder = find(&mut *store.connection().await?, &id.to_string()).await?;
    let holder = holder.ok_or(StoreError::Damaged("an organization"))?;
    Ok(CodebookOrganization {
        name: holder.name,
        display_name: holder.display_name,
    })
}

/// The organization with this name, which is created if it does not exist. For the command line.
pub async fn find_or_create(store: &Store, name: &str) -> Result<Organization, StoreError> {
    loop {
        if let Some(found) = find(&mut *store.connection().await?, name).await? {
            return Ok(found);
        }
        if let Some(made) = create(store, None, name, None).await? {
            return Ok(made);
        }
    }
}
