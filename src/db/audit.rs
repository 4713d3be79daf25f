//! The audit log: who did what to which resource, and when. It never contains values of rows.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, Postgres, Transaction};
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
        pub(crate) enum Action {$($(#[$doc])* $name,)+}

        impl Action {
            /// All actions.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name of the action in the log.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }
        }
    };
}

actions! {
    /// An organization was created.
    OrganizationCreated = "organization.created";
    /// An organization was disabled: its tokens are refused.
    OrganizationDisabled = "organization.disabled";
    /// An organization was enabled again.
    OrganizationEnabled = "organization.enabled";
    /// A token was issued.
    TokenCreated = "token.created";
    /// The enrolment code of a token was redeemed: its organization has the secret.
    TokenRedeemed = "token.redeemed";
    /// A use of an expired or revoked token, or one beyond its role, was refused; at most one event a
    /// minute for a token.
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
    /// A dataset got a legal hold: nothing of it is deleted.
    LegalHoldPlaced = "legal_hold.placed";
    /// The legal hold of a dataset ended.
    LegalHoldLifted = "legal_hold.lifted";
    /// Rows were submitted.
    SubmissionCreated = "submission.created";
    /// Another submission took the place of this one.
    SubmissionReplaced = "submission.replaced";
    /// A submission was deleted by its holder or by its retention.
    SubmissionDeleted = "submission.deleted";
    /// A job was created.
    JobCreated = "job.created";
    /// A job was cancelled.
    JobCancelled = "job.cancelled";
    /// A release was created.
    ReleaseCreated = "release.created";
    /// A release was withdrawn.
    ReleaseWithdrawn = "release.withdrawn";
    /// A second token of the holder approved a release.
    ReleaseApproved = "release.approved";
    /// A second token of the holder rejected a release.
    ReleaseRejected = "release.rejected";
    /// The policy of the organization was replaced.
    PolicyChanged = "policy.changed";
    /// A link was made that opens the report for some minutes.
    ReportLinked = "report.linked";
    /// A released table, its report or its package was fetched.
    ReleaseFetched = "release.fetched";
    /// What a release discloses together with those of a recipient was requested.
    CompositionRead = "composition.read";
    /// The profile of a dataset was requested.
    ProfileRead = "profile.read";
    /// The risk of a dataset's rows was requested.
    RiskRead = "risk.read";
    /// The report that a release of a job's table would have was requested.
    JobReportRead = "job_report.read";
    /// The log was read.
    AuditRead = "audit.read";
    /// The oldest events of the log were archived and removed.
    AuditArchived = "audit.archived";
    /// A publication was made.
    PublicationCreated = "publication.created";
    /// A publication was paused or resumed, or got other recipients.
    PublicationChanged = "publication.changed";
    /// A publication was deleted; its editions stay.
    PublicationDeleted = "publication.deleted";
    /// An edition of a publication was queued, or queued again.
    EditionQueued = "edition.queued";
    /// An edition was published: its release was granted to the recipients.
    EditionPublished = "edition.published";
    /// An edition was refused: its release may not be granted.
    EditionRefused = "edition.refused";
    /// An edition has failed with its job.
    EditionFailed = "edition.failed";
    /// A recipient was granted a release.
    GrantCreated = "grant.created";
    /// A grant was withdrawn.
    GrantDeleted = "grant.deleted";
}

/// An event to be written to the log.
#[derive(Clone, Debug)]
pub(crate) struct NewEvent {
    /// The organization whose log it is.
    pub organization: OrganizationId,
    /// Who did it.
    pub actor: Actor,
    /// What was done.
    pub action: Action,
    /// The id of the resource.
    pub subject: Uuid,
    /// Ids, names, counts and sizes, as a JSON object; never a value of a row.
    pub detail: Value,
    /// Whether it was done.
    pub outcome: Outcome,
}

/// The actor of an event, and where the request came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// The token used; `None` on the command line and for actions of the service itself.
    pub token: Option<TokenId>,
    /// The address that the request came from; `None` where there was none.
    pub address: Option<IpAddr>,
}

impl Actor {
    /// The service itself, or its operator on the command line.
    pub(crate) const SERVICE: Self = Self {
        token: None,
        address: None,
    };

    /// A token, used from an address.
    pub(super) fn token(token: TokenId, address: Option<IpAddr>) -> Self {
        let token = Some(token);
        Self { token, address }
    }
}

impl From<Caller> for Actor {
    fn from(caller: Caller) -> Self {
        Self::token(caller.token, caller.address)
    }
}

/// Whether an action was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was asked for and refused; nothing was changed.
    Refused,
}

impl NewEvent {
    /// Something that was done, in the log of an organization.
    pub(super) fn of(
        organization: OrganizationId,
        actor: Actor,
        action: Action,
        subject: Uuid,
        detail: Value,
    ) -> Self {
        Self {
            organization,
            actor,
            action,
            subject,
            detail,
            outcome: Outcome::Done,
        }
    }

    /// An event in the log of the caller's own organization.
    pub(crate) fn by(caller: Caller, action: Action, subject: Uuid, detail: Value) -> Self {
        Self::of(caller.organization, caller.into(), action, subject, detail)
    }
}

/// Writes an event, in the same transaction as the action that it records: `&mut *transaction`,
/// `store.now()`.
pub(crate) async fn record(
    connection: &mut PgConnection,
    at: OffsetDateTime,
    event: NewEvent,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO audit_events (id, organization_id, at, token_id, action, subject, detail,
                                   address, outcome)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(EventId::new())
    .bind(event.organization)
    .bind(at)
    .bind(event.actor.token)
    .bind(event.action.as_str())
    .bind(event.subject.to_string())
    .bind(event.detail)
    .bind(event.actor.address.map(|address| address.to_string()))
    .bind(event.outcome)
    .execute(connection)
    .await?;
    Ok(())
}

/// Like [`record`]; the event is also in the log of `other`, if that is another one.
pub(super) async fn record_in_both(
    connection: &mut PgConnection,
    at: OffsetDateTime,
    event: NewEvent,
    other: OrganizationId,
) -> Result<(), StoreError> {
    if event.organization != other {
        let copy = NewEvent {
            organization: other,
            ..event.clone()
        };
        record(&mut *connection, at, copy).await?;
    }
    record(connection, at, event).await
}

/// Like [`commit`]; the event is also in the log of `other`, if that is another one.
pub(super) async fn commit_in_both(
    mut transaction: Transaction<'_, Postgres>,
    at: OffsetDateTime,
    event: NewEvent,
    other: OrganizationId,
) -> Result<(), StoreError> {
    record_in_both(&mut transaction, at, event, other).await?;
    Ok(transaction.commit().await?)
}

/// Writes an event and commits the transaction of the action that it records.
pub(super) async fn commit(
    mut transaction: Transaction<'_, Postgres>,
    at: OffsetDateTime,
    event: NewEvent,
) -> Result<(), StoreError> {
    record(&mut transaction, at, event).await?;
    Ok(transaction.commit().await?)
}

/// Writes an event of something that changes nothing, in a transaction of its own.
pub(crate) async fn record_alone(store: &Store, event: NewEvent) -> Result<(), StoreError> {
    commit(store.begin().await?, store.now(), event).await
}

/// One line of the log.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Its place in the organization's log, from 1, without gaps.
    pub seq: i64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What was done, such as `dataset.created`.
    pub action: String,
    /// The id of what it was done to.
    pub subject: Option<String>,
    /// With which token; null for what was done on the command line or by the service itself.
    pub token_id: Option<TokenId>,
    /// What that token is for.
    pub token_label: Option<String>,
    /// Whose token it is in the words of the issuer, for a person.
    pub oidc_subject: Option<String>,
    /// The address that the request came from; null where there was none.
    pub address: Option<String>,
    /// Whether it was done.
    pub outcome: Outcome,
    /// Names, counts and related ids.
    #[schema(value_type = Object)]
    pub detail: Value,
    /// SHA-256 over the event, its place and `previous_hash`, hexadecimal.
    pub hash: String,
    /// The `hash` of the event before; 64 zeros for the first.
    pub previous_hash: String,
}

/// Which events of a log are read.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Not before this time.
    pub from: Option<OffsetDateTime>,
    /// Before this time.
    pub to: Option<OffsetDateTime>,
    /// With this name of an action.
    pub action: Option<String>,
    /// With this token.
    pub actor: Option<String>,
}

/// The order of events, and where a page of them begins.
#[derive(Clone, Copy, Debug)]
pub enum EventOrder {
    /// Newest first, before this place.
    NewestFirst(Option<i64>),
    /// Oldest first, after this place.
    OldestFirst(i64),
}

/// The chained events that pass a filter, before their order.
const EVENTS: &str = "
    SELECT e.id, c.seq, e.at, e.action, e.subject, e.token_id, e.detail, e.address, e.outcome,
           t.label AS token_label, t.oidc_subject,
           encode(c.hash, 'hex') AS hash,
           coalesce(encode(p.hash, 'hex'), encode(a.hash, 'hex'), repeat('0', 64)) AS previous_hash
    FROM audit_chain c JOIN audit_events e ON e.id = c.event_id
    LEFT JOIN tokens t ON t.id = e.token_id
    LEFT JOIN audit_chain p ON p.organization_id = c.organization_id AND p.seq = c.seq - 1
    LEFT JOIN audit_archives a ON a.organization_id = c.organization_id AND a.seq = c.seq - 1
    WHERE c.organization_id = $1
      AND ($2::timestamptz IS NULL OR e.at >= $2) AND ($3::timestamptz IS NULL OR e.at < $3)
      AND ($4::text IS NULL OR e.action = $4)
      AND ($5::text IS NULL OR e.token_id::text = $5 OR e.token_id IN (
               SELECT t.id FROM tokens t WHERE t.oidc_subject = $5))";

/// The chained events of an organization's log that pass the filter, at most `limit`.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    filter: &EventFilter,
    order: EventOrder,
    limit: i64,
) -> Result<Vec<Event>, StoreError> {
    let (end, place) = match order {
        EventOrder::NewestFirst(before) => (
            "AND ($6::bigint IS NULL OR c.seq < $6) ORDER BY c.seq DESC LIMIT $7",
            before,
        ),
        EventOrder::OldestFirst(after) => ("AND c.seq > $6 ORDER BY c.seq LIMIT $7", Some(after)),
    };
    // Of words of this program.
    let query = AssertSqlSafe(format!("{EVENTS} {end}"));
    Ok(sqlx::query_as(query)
        .bind(organization)
        .bind(filter.from)
        .bind(filter.to)
        .bind(&filter.action)
        .bind(&filter.actor)
        .bind(place)
        .bind(limit)
        .fetch_all(&mut *store.connection().await?)
        .await?)
}
