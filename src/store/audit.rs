//! The audit log: who did what to what, and when; never with values of rows.

use serde::Serialize;
use serde_json::Value;
use sqlx::{PgConnection, Row};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::roles::Caller;
use crate::ids::{EventId, OrganizationId, TokenId};

use super::{Store, StoreError};

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)+) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action {$($(#[$doc])* $name,)+}

        impl Action {
            /// The word in the log.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }
        }
    };
}

actions! {
    /// An organization was made.
    OrganizationCreated = "organization.created";
    /// A token was issued.
    TokenCreated = "token.created";
    /// A token was revoked.
    TokenRevoked = "token.revoked";
    /// A taxonomy was made.
    TaxonomyCreated = "taxonomy.created";
    /// A dataset was declared.
    DatasetCreated = "dataset.created";
    /// A dataset was deleted by its holder or by its retention.
    DatasetDeleted = "dataset.deleted";
    /// Rows were sent.
    SubmissionCreated = "submission.created";
    /// A run was asked for.
    JobCreated = "job.created";
    /// A run was cancelled.
    JobCancelled = "job.cancelled";
    /// A table was released.
    ReleaseCreated = "release.created";
    /// A released table or its report was fetched.
    ReleaseFetched = "release.fetched";
    /// A recipient was granted a release.
    GrantCreated = "grant.created";
    /// A grant was withdrawn.
    GrantDeleted = "grant.deleted";
}

/// One line to be written.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Whose log.
    pub organization: OrganizationId,
    /// With which token; `None` on the command line and for what the service does by itself.
    pub token: Option<TokenId>,
    /// What was done.
    pub action: Action,
    /// To what.
    pub subject: Uuid,
    /// Ids, names, counts and sizes, as a JSON object; never a value of a row.
    pub detail: Value,
}

impl NewEvent {
    /// An event of the caller's own organization.
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

/// Writes a line, in the transaction of what it tells of: `&mut *transaction`, `store.now()`.
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

/// Lines of an organization's log, newest first, at most `limit` of those before `before`.
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
