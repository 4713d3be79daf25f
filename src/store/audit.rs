//! The audit log: who did what to which resource, and when. It never contains values of rows.

use serde::Serialize;
use serde_json::Value;
use sqlx::{PgConnection, Row};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{EventId, OrganizationId, TokenId};
use crate::roles::Caller;

use super::{Store, StoreError};

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)+) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action {$($(#[$doc])* $name,)+}

        impl Action {
            /// The name of the action in the log.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }
        }
    };
}

actions! {
    /// An organization was created.
    OrganizationCreated = "organization.created";
    /// A token was issued.
    TokenCreated = "token.created";
    /// A use of an expired or revoked token was refused; at most one event a minute for a token.
    TokenRefused = "token.refused";
    /// A token was revoked.
    TokenRevoked = "token.revoked";
    /// A taxonomy was created.
    TaxonomyCreated = "taxonomy.created";
    /// A taxonomy was deleted.
    TaxonomyDeleted = "taxonomy.deleted";
    /// A dataset was declared.
    DatasetCreated = "dataset.created";
    /// A dataset's columns, description or retention were changed.
    DatasetChanged = "dataset.changed";
    /// A dataset was deleted by its holder or by its retention.
    DatasetDeleted = "dataset.deleted";
    /// Rows were submitted.
    SubmissionCreated = "submission.created";
    /// A job was created.
    JobCreated = "job.created";
    /// A job was cancelled.
    JobCancelled = "job.cancelled";
    /// A release was created.
    ReleaseCreated = "release.created";
    /// A released table or its report was fetched.
    ReleaseFetched = "release.fetched";
    /// A recipient was granted a release.
    GrantCreated = "grant.created";
    /// A grant was withdrawn.
    GrantDeleted = "grant.deleted";
}

/// An event to be written to the log.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The organization whose log it is.
    pub organization: OrganizationId,
    /// The token used; `None` on the command line and for what the service does by itself.
    pub token: Option<TokenId>,
    /// What was done.
    pub action: Action,
    /// The id of the resource.
    pub subject: Uuid,
    /// Ids, names, counts and sizes, as a JSON object; never a value of a row.
    pub detail: Value,
}

impl NewEvent {
    /// An event in the log of the caller's own organization.
    pub fn by(caller: Caller, action: Action, subject: Uuid, detail: Value) -> Self {
        Self {
            organization: caller.organization,
            token: Some(caller.token),
            action,
            subject,
            detail,
        }
    }
}

/// Writes an event, in the same transaction as the action that it records: `&mut *transaction`,
/// `store.now()`.
///
/// # Errors
/// When the database fails.
pub async fn record(
    connection: &mut PgConnection,
    at: OffsetDateTime,
    event: NewEvent,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO audit_events (id, organization_id, at, token_id, action, subject, detail)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(EventId::new().0)
    .bind(event.organization.0)
    .bind(at)
    .bind(event.token.map(|token| token.0))
    .bind(event.action.as_str())
    .bind(event.subject.to_string())
    .bind(event.detail)
    .execute(connection)
    .await?;
    Ok(())
}

/// One line of the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What was done, such as `dataset.created`.
    pub action: String,
    /// The id of what it was done to.
    pub subject: Option<String>,
    /// With which token; null for what was done on the command line or by the service itself.
    pub token_id: Option<TokenId>,
    /// Names, counts and related ids.
    #[schema(value_type = Object)]
    pub detail: Value,
}

/// The events of an organization's log before `before`, newest first, at most `limit`.
///
/// # Errors
/// When the database fails.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Event>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, at, action, subject, token_id, detail FROM audit_events
         WHERE organization_id = $1 AND ($2::uuid IS NULL OR id < $2)
         ORDER BY id DESC LIMIT $3",
    )
    .bind(organization.0)
    .bind(before)
    .bind(limit)
    .fetch_all(store.pool())
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Event {
                id: EventId(row.try_get("id")?),
                at: row.try_get("at")?,
                action: row.try_get("action")?,
                subject: row.try_get("subject")?,
                token_id: row.try_get::<Option<Uuid>, _>("token_id")?.map(TokenId),
                detail: row.try_get("detail")?,
            })
        })
        .collect()
}
