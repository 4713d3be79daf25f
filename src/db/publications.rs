//! Publications: what is published repeatedly, and to whom.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{FromRow, PgConnection};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{OrganizationId, PublicationId, TokenId};
use crate::policy::Policy;
use crate::problem::Problem;
use crate::roles::Caller;
use pais_core::definition::DatasetId;
use pais_core::warning::{Warning, WarningCode};

use super::audit::{self, Action, NewEvent};
use super::dataset_revisions::lock_dataset;
use super::definition_at_rest::DefinitionAtRest;
use super::grants::GrantRecipient;
use super::jobs::cancel_jobs;
use super::key_ring::KeyRing;
use super::releases::Viewer;
use super::seal::{DataKey, SealedItem};
use super::{Store, StoreError, organizations, policies, token_validity, violates};

/// The event that makes a publication publish an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Trigger {
    /// Each new submission.
    Submission,
    /// Each request.
    Manual,
}

/// A publication in its current state.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = PublicationDocument)]
pub(crate) struct Publication {
    /// Its id.
    pub id: PublicationId,
    /// Its name, unique in its organization.
    pub name: String,
    /// The dataset whose rows it publishes.
    pub dataset_id: DatasetId,
    /// The job of each edition; when the dataset is deleted, without the values that it lists. Absent in
    /// a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub job: Option<Value>,
    /// Who gets the next editions.
    pub recipients: Vec<Recipient>,
    /// What makes it publish an edition.
    pub trigger: Trigger,
    /// Whether it makes no editions for now.
    pub paused: bool,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// What the holder should know. Absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Warning>>,
}

/// A publication as a recipient sees it.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, ToSchema)]
pub(crate) struct ReceivedPublication {
    /// Its id.
    pub id: PublicationId,
    /// Its name.
    pub name: String,
    /// The name of its holder.
    pub holder: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// An organization that gets the next editions.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
#[schema(as = PublicationRecipientDocument)]
pub(crate) struct Recipient {
    /// The organization.
    #[sqlx(flatten)]
    pub recipient: GrantRecipient,
    /// The purpose of its grants.
    pub purpose: String,
    /// Until when it may fetch the editions, and gets further ones; null for without end.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
}

/// An organization that is to get the next editions.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PublicationRecipientDefinition)]
pub(crate) struct NewRecipient {
    /// Name or id of the organization.
    #[schema(min_length = 1)]
    pub recipient: String,
    /// The purpose for which it needs the data.
    #[schema(min_length = 1, max_length = 2000)]
    pub purpose: String,
    /// Until when; without an end when omitted.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
}

/// A publication to be made.
pub(crate) struct NewPublication<'a> {
    /// Its name.
    pub name: &'a str,
    /// The dataset whose rows it publishes.
    pub dataset: DatasetId,
    /// The data key of the dataset.
    pub key: &'a DataKey,
    /// The job of each edition, as it was sent.
    pub job: &'a Value,
    /// The recipients of the editions.
    pub recipients: &'a [NewRecipient],
    /// What makes it publish an edition.
    pub trigger: Trigger,
    /// Checks it against the policy of the organization.
    pub check: &'a (dyn Fn(&Policy) -> Result<(), Problem> + Sync),
}

/// The result of [`create`] and [`change`].
#[derive(Debug)]
pub(crate) enum PublicationChange {
    /// It is stored.
    Stored(PublicationId),
    /// The organization has no such publication, or no such dataset.
    NotFound,
    /// Another publication of the organization has the name.
    NameTaken,
    /// There is no organization with the name or id of the recipient at this place.
    NoRecipient(usize),
    /// The recipient at this place is listed twice.
    RepeatedRecipient(usize),
    /// The policy does not allow the recipient at this place.
    NotInPolicy(usize),
}

/// A publication that is locked.
#[derive(FromRow)]
pub(super) struct LockedPublication {
    pub(super) organization_id: OrganizationId,
    pub(super) dataset_id: DatasetId,
    #[sqlx(flatten)]
    pub(super) definition: DefinitionAtRest,
    pub(super) paused: bool,
    pub(super) created_by: Option<TokenId>,
    pub(super) is_deleted: bool,
    pub(super) has_dataset: bool,
}

/// Locks a publication until the end of the transaction, and before it its dataset against deletion. What
/// locks several things of a publication does so in this order: decisions of officers, token and organization of
/// the caller, dataset, publication, edition, release, policy, recipients, so that no two wait for each other.
pub(super) async fn lock(
    connection: &mut PgConnection,
    id: PublicationId,
) -> Result<Option<LockedPublication>, StoreError> {
    let dataset = sqlx::query_scalar("SELECT dataset_id FROM publications WHERE id = $1");
    let dataset: Option<DatasetId> = dataset.bind(id).fetch_optional(&mut *connection).await?;
    let Some(dataset) = dataset else {
        return Ok(None);
    };
    lock_dataset(connection, dataset).await?;
    Ok(sqlx::query_as(
        "SELECT organization_id, dataset_id, definition AS shown, sealed_definition AS sealed, paused,
                created_by, deleted_at IS NOT NULL AS is_deleted,
                EXISTS (SELECT FROM datasets d
                        WHERE d.id = dataset_id AND d.deleted_at IS NULL) AS has_dataset
         FROM publications WHERE id = $1 FOR NO KEY UPDATE",
    )
    .bind(id)
    .fetch_optional(connection)
    .await?)
}

/// Locks a publication of an organization, as [`lock`]; `None` if there is none, or it is deleted.
pub(super) async fn lock_live(
    connection: &mut PgConnection,
    organization: OrganizationId,
    id: PublicationId,
) -> Result<Option<LockedPublication>, StoreError> {
    let locked = lock(connection, id).await?;
    Ok(locked.filter(|it| it.organization_id == organization && !it.is_deleted))
}

/// Makes a publication.
///
/// # Errors
/// [`StoreError::BelowPolicy`].
pub(crate) async fn create(
    store: &Store,
    by: Caller,
    new: &NewPublication<'_>,
) -> Result<PublicationChange, StoreError> {
    let (id, now) = (PublicationId::new(), store.now());
    let mut transaction = token_validity::begin(store, by).await?;
    let policy = policies::check(&mut transaction, by.organization, new.check).await?;
    if lock_dataset(&mut transaction, new.dataset).await?.is_none() {
        return Ok(PublicationChange::NotFound);
    }
    let definition = DefinitionAtRest::seal(new.key, SealedItem::Publication(id), new.job)?;
    let inserted = sqlx::query(
        "INSERT INTO publications (id, organization_id, dataset_id, name, definition,
                                   sealed_definition, trigger, created_by, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(by.organization)
    .bind(new.dataset)
    .bind(new.name)
    .bind(definition.shown)
    .bind(definition.sealed)
    .bind(new.trigger)
    .bind(by.token)
    .bind(now)
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "publications_name") => {
            return Ok(PublicationChange::NameTaken);
        }
        inserted => inserted?,
    };
    let set = set_recipients(
        &mut transaction,
        by.organization,
        id,
        new.recipients,
        &policy,
    );
    if let Some(refused) = set.await? {
        return Ok(refused);
    }
    let detail = json!({
        "name": new.name,
        "dataset_id": new.dataset,
        "recipients": names(new.recipients),
    });
    let event = NewEvent::by(by, Action::PublicationCreated, id.0, detail);
    audit::commit(transaction, now, event).await?;
    Ok(PublicationChange::Stored(id))
}

/// A change of a publication.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublicationPatch {
    /// Whether it makes no editions for now.
    pub paused: Option<bool>,
    /// The recipients of the next editions, as a complete list. A recipient that is not listed keeps the editions it
    /// has; a new recipient gets all later editions.
    #[schema(max_items = 100)]
    pub recipients: Option<Vec<NewRecipient>>,
}

/// Changes a publication.
pub(crate) async fn change(
    store: &Store,
    by: Caller,
    id: PublicationId,
    patch: &PublicationPatch,
) -> Result<PublicationChange, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let locked = lock_live(&mut transaction, by.organization, id).await?;
    if locked.is_none() {
        return Ok(PublicationChange::NotFound);
    }
    let policy = policies::check(&mut transaction, by.organization, |_| Ok(())).await?;
    let recipients_by = patch.recipients.is_some().then_some(by.token);
    sqlx::query(
        "UPDATE publications SET paused = coalesce($2, paused),
                                 recipients_by = coalesce($3, recipients_by) WHERE id = $1",
    )
    .bind(id)
    .bind(patch.paused)
    .bind(recipients_by)
    .execute(&mut *transaction)
    .await?;
    let mut detail = json!({});
    if let Some(paused) = patch.paused {
        detail["paused"] = json!(paused);
    }
    if let Some(recipients) = &patch.recipients {
        let set = set_recipients(&mut transaction, by.organization, id, recipients, &policy);
        if let Some(refused) = set.await? {
            return Ok(refused);
        }
        detail["recipients"] = json!(names(recipients));
    }
    let event = NewEvent::by(by, Action::PublicationChanged, id.0, detail);
    audit::commit(transaction, store.now(), event).await?;
    Ok(PublicationChange::Stored(id))
}

fn names(recipients: &[NewRecipient]) -> Vec<&str> {
    recipients.iter().map(|it| it.recipient.as_str()).collect()
}

/// Replaces the recipients; returns why they are refused.
async fn set_recipients(
    connection: &mut PgConnection,
    organization: OrganizationId,
    publication: PublicationId,
    recipients: &[NewRecipient],
    policy: &Policy,
) -> Result<Option<PublicationChange>, StoreError> {
    sqlx::query("DELETE FROM publication_recipients WHERE publication_id = $1")
        .bind(publication)
        .execute(&mut *connection)
        .await?;
    for (place, new) in recipients.iter().enumerate() {
        let found = organizations::find(&mut *connection, &new.recipient).await?;
        let Some(found) = found else {
            return Ok(Some(PublicationChange::NoRecipient(place)));
        };
        if !policy.allows_recipient(&found.name, found.id) {
            return Ok(Some(PublicationChange::NotInPolicy(place)));
        }
        let done = sqlx::query(
            "INSERT INTO publication_recipients (publication_id, recipient_id, organization_id,
                                                 purpose, expires_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        )
        .bind(publication)
        .bind(found.id)
        .bind(organization)
        .bind(&new.purpose)
        .bind(new.expires_at)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(Some(PublicationChange::RepeatedRecipient(place)));
        }
    }
    Ok(None)
}

/// Deletes a publication; its editions stay. Returns `false` if there is none. The job of an edition
/// that is not published yet is cancelled.
pub(crate) async fn delete(
    store: &Store,
    by: Caller,
    id: PublicationId,
) -> Result<bool, StoreError> {
    let (mut transaction, now) = (token_validity::begin(store, by).await?, store.now());
    let locked = lock_live(&mut transaction, by.organization, id).await?;
    if locked.is_none() {
        return Ok(false);
    }
    sqlx::query("UPDATE publications SET deleted_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(concat!(
        cancel_jobs!(),
        "id IN (SELECT job_id FROM editions WHERE publication_id = $2 AND status = 'queued')"
    ))
    .bind(now)
    .bind(id)
    .execute(&mut *transaction)
    .await?;
    sqlx::query("DELETE FROM publication_recipients WHERE publication_id = $1")
        .bind(id)
        .execute(&mut *transaction)
        .await?;
    let event = NewEvent::by(by, Action::PublicationDeleted, id.0, json!({}));
    audit::commit(transaction, now, event).await?;
    Ok(true)
}

#[derive(FromRow)]
struct PublicationRow {
    id: PublicationId,
    name: String,
    dataset_id: DatasetId,
    #[sqlx(flatten)]
    definition: DefinitionAtRest,
    trigger: Trigger,
    paused: bool,
    created_at: OffsetDateTime,
    counts_rows: bool,
}

/// A publication of an organization; `None` if there is none.
pub(crate) async fn load(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    id: PublicationId,
) -> Result<Option<Publication>, StoreError> {
    let mut found = select(store, keys, organization, Some(id), None, 1).await?;
    Ok(found.pop())
}

/// The publications of an organization after `after`, oldest first, at most `limit`.
pub(crate) async fn list(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Publication>, StoreError> {
    select(store, keys, organization, None, after, limit).await
}

/// With their jobs and warnings if `id` is given.
async fn select(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    id: Option<PublicationId>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Publication>, StoreError> {
    let mut connection = store.connection().await?;
    let rows: Vec<PublicationRow> = sqlx::query_as(
        "SELECT id, name, dataset_id, trigger, paused, created_at,
                EXISTS (SELECT FROM datasets d WHERE d.id = dataset_id AND NOT jsonb_path_exists(
                            d.definition, '$.columns[*] ? (@.role == \"subject\")')) AS counts_rows,
                CASE WHEN $2::uuid IS NULL THEN 'null' ELSE definition END AS shown,
                CASE WHEN $2::uuid IS NULL THEN NULL ELSE sealed_definition END AS sealed
         FROM publications
         WHERE organization_id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id = $2)
           AND ($3::uuid IS NULL OR id > $3)
         ORDER BY id LIMIT $4",
    )
    .bind(organization)
    .bind(id)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *connection)
    .await?;
    let mut publications = Vec::with_capacity(rows.len());
    for row in rows {
        let recipients = recipients(&mut connection, row.id).await?;
        let (item, dataset) = (SealedItem::Publication(row.id), row.dataset_id);
        let definition = row.definition;
        let job = definition.open_if_kept(store, &mut *connection, keys, dataset, item);
        let job = job.await?;
        publications.push(Publication {
            id: row.id,
            name: row.name,
            dataset_id: row.dataset_id,
            job: id.is_some().then_some(job),
            recipients,
            trigger: row.trigger,
            paused: row.paused,
            created_at: row.created_at,
            warnings: id.map(|_| row.counts_rows.then(rows_counted).into_iter().collect()),
        });
    }
    Ok(publications)
}

/// The warning about a dataset that does not say which rows are of one person.
fn rows_counted() -> Warning {
    let detail = "the dataset has no `subject` column, so each row counts as one person, and editions cannot \
                  tell whose rows earlier ones have: what all editions together say about a person with rows \
                  in several of them is not bounded, and released rows cannot be replaced; if persons can have \
                  several rows, declare another dataset with their key as `subject`, and publish that";
    Warning::at(WarningCode::EditionsCountRows, "/dataset_id", detail)
}

/// The recipients of a publication by name.
async fn recipients(
    connection: &mut PgConnection,
    id: PublicationId,
) -> Result<Vec<Recipient>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT p.recipient_id, o.name AS recipient_name, p.purpose, p.expires_at
         FROM publication_recipients p JOIN organizations o ON o.id = p.recipient_id
         WHERE p.publication_id = $1 ORDER BY o.name",
    )
    .bind(id)
    .fetch_all(connection)
    .await?)
}

/// The recipients of a publication who get editions now, by name.
pub(super) async fn current_recipients(
    connection: &mut PgConnection,
    id: PublicationId,
    now: OffsetDateTime,
) -> Result<Vec<Recipient>, StoreError> {
    let mut recipients = recipients(connection, id).await?;
    recipients.retain(|it| it.expires_at.is_none_or(|end| end > now));
    Ok(recipients)
}

/// The publications that a recipient gets or has editions of, after `after`, oldest first, at most `limit`;
/// only `id` if it is given.
pub(crate) async fn received(
    store: &Store,
    recipient: OrganizationId,
    id: Option<PublicationId>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ReceivedPublication>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT p.id, p.name, o.name AS holder, p.created_at
         FROM publications p JOIN organizations o ON o.id = p.organization_id
         WHERE ($2::uuid IS NULL OR p.id = $2) AND ($3::uuid IS NULL OR p.id > $3)
           AND (EXISTS (SELECT 1 FROM publication_recipients r
                        WHERE r.publication_id = p.id AND r.recipient_id = $1
                          AND (r.expires_at IS NULL OR r.expires_at > $5))
                OR EXISTS (SELECT 1 FROM editions e JOIN grants g ON g.release_id = e.release_id
                           WHERE e.publication_id = p.id AND e.status = 'published'
                             AND g.recipient_id = $1
                             AND (g.expires_at IS NULL OR g.expires_at > $5)))
         ORDER BY p.id LIMIT $4",
    )
    .bind(recipient)
    .bind(id)
    .bind(after)
    .bind(limit)
    .bind(store.now())
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// Whether a viewer may see the editions of a publication: its holder, and recipients that get or have some.
/// The editions of a deleted one stay.
pub(crate) async fn is_visible(
    store: &Store,
    viewer: Viewer,
    id: PublicationId,
) -> Result<bool, StoreError> {
    match viewer {
        Viewer::Holder(organization) => {
            let mut connection = store.connection().await?;
            let found = "SELECT FROM publications WHERE id = $1 AND organization_id = $2";
            let found = sqlx::query(found).bind(id).bind(organization);
            Ok(found.fetch_optional(&mut *connection).await?.is_some())
        }
        Viewer::Recipient(organization) => Ok(!received(store, organization, Some(id), None, 1)
            .await?
            .is_empty()),
    }
}
