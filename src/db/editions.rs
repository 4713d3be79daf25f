//! Editions: the releases of a publication, one after the other.
//!
//! An edition and its job are queued in one transaction. Its release, the decisions about held-back rows and
//! the waiting rows are written when the job ends. `settle` does the rest, each edition in one
//! transaction: it fails with its job, waits for approval, is refused, or is published with the grants
//! of all recipients. The process that settles an edition locks the publication, the edition and its release,
//! so that it is published once or not at all, and neither deleted nor withdrawn meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, Postgres, Transaction};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::ids::{JobId, OrganizationId, PublicationId, ReleaseId, TokenId};
use crate::problem::{Code, Problem, ProblemDocument};
use crate::roles::Caller;
use crate::telemetry::traces::TraceContext;
use pais_core::definition::{DatasetId, SubmissionId};

use super::approvals::{self, Decision};
use super::audit::{self, Action, Actor, NewEvent};
use super::dataset_revisions::lock_dataset;
use super::grants::{self, GrantRecipient};
use super::jobs::{self, JobStatus, QueuedJob};
use super::key_ring::KeyRing;
use super::publications::{self, LockedPublication, Recipient};
use super::quotas::Quotas;
use super::releases::{Viewer, known_releases, lock_recipient, seen_by, visible};
use super::seal::SealedItem;
use super::submissions::{has_subject, lock_current};
use super::{Store, StoreError, locked_release, policies, token_validity};

/// States of an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub(crate) enum EditionStatus {
    /// Its job waits for a worker.
    Queued,
    /// Its job runs, or has just ended.
    Running,
    /// Its release waits for approval.
    AwaitingApproval,
    /// Its release is granted to the recipients.
    Published,
    /// Its release was rejected, or may not be granted; its rows wait.
    Refused,
    /// Its job has ended without a release; its rows wait.
    Failed,
}

/// An edition as its holder sees it.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, ToSchema)]
#[schema(as = EditionDocument)]
pub(crate) struct Edition {
    /// Its number, from 1.
    #[sqlx(try_from = "i32")]
    pub number: u32,
    /// Its state.
    pub status: EditionStatus,
    /// The submissions whose rows it takes.
    pub submissions: Vec<SubmissionId>,
    /// Its job.
    pub job_id: JobId,
    /// Its release; null while there is none.
    pub release_id: Option<ReleaseId>,
    /// Rows of its release; null while there is none.
    #[schema(value_type = Option<u64>)]
    pub rows: Option<i64>,
    /// Rows that wait for a later edition; null until that is decided.
    #[schema(value_type = Option<u64>)]
    pub held_back_rows: Option<i64>,
    /// Whether it is a base: its labels are of a cut of its own, which later editions continue. With local
    /// recoding each edition is one. Null until that is decided.
    pub is_base: Option<bool>,
    /// Of the CSV of its release, hexadecimal; null while there is none.
    pub sha256: Option<String>,
    /// When it was queued.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it was published; null where it is not.
    #[serde(with = "time::serde::rfc3339::option")]
    pub published_at: Option<OffsetDateTime>,
    /// Why it was refused or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProblemDocument>)]
    pub error: Option<Value>,
    /// Whether its job was started.
    #[serde(skip)]
    #[schema(ignore)]
    pub has_run: bool,
    /// Whether it has ended by the decision on an approval.
    #[serde(skip)]
    #[schema(ignore)]
    pub was_decided: bool,
}

/// A published edition as its recipients see it.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, ToSchema)]
pub(crate) struct ReceivedEdition {
    /// Its number, from 1.
    #[sqlx(try_from = "i32")]
    pub number: u32,
    /// Its release.
    pub release_id: ReleaseId,
    /// Rows of its release.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Whether it is a base: its labels are of a cut of its own, which later editions continue. With local
    /// recoding each edition is one.
    pub is_base: bool,
    /// Of the CSV of its release, hexadecimal.
    pub sha256: String,
    /// When it was published.
    #[serde(with = "time::serde::rfc3339")]
    pub published_at: OffsetDateTime,
}

/// The condition that edition `e` comes after `$4`; of at most `$5`.
macro_rules! holder_editions {
    () => {
        "SELECT e.number, e.job_id, e.release_id, e.held_back_rows, e.is_base, e.created_at,
                e.published_at, e.error, r.rows, j.started_at IS NOT NULL AS has_run,
                e.status IN ('published', 'refused') AND EXISTS (
                    SELECT FROM release_approvals a WHERE a.release_id = e.release_id
                    AND a.decided_at <= coalesce(e.published_at, a.decided_at)) AS was_decided,
                CASE WHEN e.status = 'queued' AND j.status <> 'queued' THEN 'running'
                     ELSE e.status END AS status,
                ARRAY(SELECT s.submission_id FROM edition_submissions s
                      WHERE s.publication_id = e.publication_id AND s.number = e.number
                      ORDER BY s.submission_id) AS submissions,
                (SELECT encode((array_agg(t.sha256))[1], 'hex') FROM release_tables t
                 WHERE t.release_id = e.release_id HAVING count(*) = 1) AS sha256
         FROM editions e JOIN jobs j ON j.id = e.job_id
              LEFT JOIN releases r ON r.id = e.release_id
         WHERE e.publication_id = $1 AND e.organization_id = $2 AND e.number > $3"
    };
}

/// The editions of a publication of an organization after number `after`, oldest first, at most
/// `limit`.
pub(crate) async fn list(
    store: &Store,
    organization: OrganizationId,
    publication: PublicationId,
    after: u32,
    limit: i64,
) -> Result<Vec<Edition>, StoreError> {
    Ok(
        sqlx::query_as(concat!(holder_editions!(), " ORDER BY e.number LIMIT $4"))
            .bind(publication)
            .bind(organization)
            .bind(i64::from(after))
            .bind(limit)
            .fetch_all(&mut *store.connection().await?)
            .await?,
    )
}

/// The published editions that a viewer may read, after number `after`, oldest first, at most `limit`;
/// without those whose release is withdrawn.
pub(crate) async fn readable(
    store: &Store,
    viewer: Viewer,
    publication: PublicationId,
    after: u32,
    limit: i64,
) -> Result<Vec<ReceivedEdition>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT e.number, e.release_id, r.rows, e.is_base, encode(t.sha256, 'hex') AS sha256,
                e.published_at
         FROM editions e JOIN releases r ON r.id = e.release_id
              JOIN release_tables t ON t.release_id = r.id AND t.name = 'data'
         WHERE e.publication_id = $4 AND e.status = 'published' AND r.withdrawn_at IS NULL
           AND e.number > $5 AND ",
        visible!(),
        " ORDER BY e.number LIMIT $6"
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(publication)
        .bind(i64::from(after))
        .bind(limit)
        .fetch_all(&mut *store.connection().await?)
        .await?)
}

/// The number after which the newest `count` editions of a publication come; 0 if it has no more.
pub(crate) async fn before_newest(
    store: &Store,
    publication: PublicationId,
    count: u32,
) -> Result<u32, StoreError> {
    let before: i32 = sqlx::query_scalar(
        "SELECT greatest(max(number) - $2, 0) FROM editions WHERE publication_id = $1",
    )
    .bind(publication)
    .bind(count.cast_signed())
    .fetch_one(&mut *store.connection().await?)
    .await?;
    Ok(before.cast_unsigned())
}

/// Why a new edition is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// A submission that no edition has taken.
    Submission,
    /// A request.
    Request(Caller),
}

/// The result of [`queue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Queueing {
    /// The edition with this number is queued.
    Queued(u32),
    /// The organization has no such publication.
    NotFound,
    /// The dataset was deleted.
    NoDataset,
    /// The publication is paused.
    Paused,
    /// An edition is in progress.
    Open(u32),
    /// All rows are in editions, or have been waiting since the last one.
    NothingNew,
}

/// The context for queueing editions.
#[derive(Clone, Copy)]
pub(crate) struct EditionQueue<'a> {
    /// The database.
    pub store: &'a Store,
    /// The keys of the datasets.
    pub keys: &'a KeyRing,
    /// The shares of each organization.
    pub quotas: Quotas,
}

/// A submission, and the rows that editions of a publication have taken from it.
#[derive(FromRow)]
struct TakenSubmission {
    id: SubmissionId,
    /// Whether any edition has taken it, published or not.
    is_tried: bool,
    /// Rows that wait after the last published edition that has taken it; `None` if none has.
    held_back: Option<i64>,
    /// The request that sent it.
    trace: Option<TraceContext>,
}

/// Queues the next edition of a publication: of the rows that no published edition has.
///
/// # Errors
/// [`StoreError::Quota`].
pub(crate) async fn queue(
    with: EditionQueue<'_>,
    organization: OrganizationId,
    id: PublicationId,
    cause: Cause,
) -> Result<Queueing, StoreError> {
    let by = match cause {
        Cause::Submission => None,
        Cause::Request(by) => Some(by),
    };
    let mut transaction = token_validity::begin(with.store, by).await?;
    let publication = publications::lock_live(&mut transaction, organization, id).await?;
    let Some(publication) = publication else {
        return Ok(Queueing::NotFound);
    };
    if publication.paused {
        return Ok(Queueing::Paused);
    }
    let open: Option<i32> = sqlx::query_scalar(
        "SELECT number FROM editions
         WHERE publication_id = $1 AND status IN ('queued', 'awaiting_approval')",
    )
    .bind(id)
    .fetch_optional(&mut *transaction)
    .await?;
    if let Some(number) = open {
        return Ok(Queueing::Open(number.cast_unsigned()));
    }
    if lock_dataset(&mut transaction, publication.dataset_id)
        .await?
        .is_none()
    {
        return Ok(Queueing::NoDataset);
    }
    let taken = taken_submissions(&mut transaction, id, publication.dataset_id).await?;
    let is_new = |it: &TakenSubmission| match cause {
        Cause::Submission => !it.is_tried,
        Cause::Request(_) => it.held_back.is_none(),
    };
    if !taken.iter().any(is_new) {
        return Ok(Queueing::NothingNew);
    }
    let number: i32 = sqlx::query_scalar(
        "SELECT coalesce(max(number), 0) + 1 FROM editions WHERE publication_id = $1",
    )
    .bind(id)
    .fetch_one(&mut *transaction)
    .await?;
    let cause_of_job = match cause {
        // The trace of the newest new submission: a worker or another request may be the first to find it.
        Cause::Submission => JobCause {
            by: publication.created_by,
            trace: taken.iter().rfind(|it| is_new(it)).and_then(|it| it.trace),
        },
        Cause::Request(caller) => JobCause {
            by: Some(caller.token),
            trace: TraceContext::current(),
        },
    };
    let job = insert_job(&mut transaction, with, id, &publication, cause_of_job).await?;
    let Some(job) = job else {
        return Ok(Queueing::NoDataset);
    };
    let now = with.store.now();
    sqlx::query(
        "INSERT INTO editions (publication_id, number, organization_id, job_id, created_at)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(id)
    .bind(number)
    .bind(publication.organization_id)
    .bind(job)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    let waiting = taken.iter().filter(|it| it.held_back != Some(0));
    let waiting: Vec<SubmissionId> = waiting.map(|it| it.id).collect();
    sqlx::query(
        "INSERT INTO edition_submissions (publication_id, number, submission_id)
         SELECT $1, $2, * FROM unnest($3::uuid[])",
    )
    .bind(id)
    .bind(number)
    .bind(&waiting)
    .execute(&mut *transaction)
    .await?;
    let actor = match cause {
        Cause::Submission => Actor::SERVICE,
        Cause::Request(caller) => caller.into(),
    };
    let number = number.cast_unsigned();
    let detail = json!({ "number": number, "job_id": job, "submissions": waiting.len() });
    let event = NewEvent::of(organization, actor, Action::EditionQueued, id.0, detail);
    audit::commit(transaction, now, event).await?;
    tracing::info!(%job, "the job of an edition is queued");
    Ok(Queueing::Queued(number))
}

async fn taken_submissions(
    connection: &mut PgConnection,
    publication: PublicationId,
    dataset: DatasetId,
) -> Result<Vec<TakenSubmission>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT s.id, s.trace_context AS trace,
                EXISTS (SELECT 1 FROM edition_submissions t
                        WHERE t.publication_id = $1 AND t.submission_id = s.id) AS is_tried,
                (SELECT t.held_back FROM edition_submissions t
                 JOIN editions e ON e.publication_id = t.publication_id AND e.number = t.number
                 WHERE t.publication_id = $1 AND t.submission_id = s.id AND e.status = 'published'
                 ORDER BY t.number DESC LIMIT 1) AS held_back
         FROM submissions s WHERE s.dataset_id = $2 AND s.replaced_by IS NULL ORDER BY s.id",
    )
    .bind(publication)
    .bind(dataset)
    .fetch_all(connection)
    .await?)
}

/// Why the job of an edition is made.
#[derive(Clone, Copy)]
struct JobCause {
    /// The token for which it is made.
    by: Option<TokenId>,
    /// The request that it belongs to.
    trace: Option<TraceContext>,
}

/// Queues the job of an edition; `None` if the dataset was deleted. If persons can be in several submissions,
/// or recipients have other releases of the dataset, the job reads all rows: the decision on what releases
/// disclose together needs them. The publication is locked.
///
/// # Errors
/// [`StoreError::Quota`].
async fn insert_job(
    connection: &mut PgConnection,
    with: EditionQueue<'_>,
    id: PublicationId,
    publication: &LockedPublication,
    cause: JobCause,
) -> Result<Option<JobId>, StoreError> {
    let EditionQueue {
        store,
        keys,
        quotas,
    } = with;
    let dataset = publication.dataset_id;
    if lock_dataset(connection, dataset).await?.is_none() {
        return Ok(None);
    }
    let organization = publication.organization_id;
    quotas.check_queue(connection, organization).await?;
    let submissions: Vec<SubmissionId> = sqlx::query_scalar(concat!(
        "SELECT s.id FROM submissions s
         WHERE s.dataset_id = $2 AND (",
        has_subject!("$2"),
        "    OR s.replaced_by IS NULL AND (EXISTS (SELECT 1 FROM releases r
                        WHERE r.dataset_id = $2
                          AND (EXISTS (SELECT 1 FROM grants g WHERE g.release_id = r.id)
                               OR EXISTS (SELECT 1 FROM release_readers k WHERE k.release_id = r.id))
                          AND NOT EXISTS (SELECT 1 FROM editions e
                                          WHERE e.publication_id = $1 AND e.release_id = r.id
                                            AND e.status = 'published'))
             OR (SELECT t.held_back FROM edition_submissions t
                 JOIN editions e ON e.publication_id = t.publication_id AND e.number = t.number
                 WHERE t.publication_id = $1 AND t.submission_id = s.id AND e.status = 'published'
                 ORDER BY t.number DESC LIMIT 1) IS DISTINCT FROM 0))
         ORDER BY s.id",
    ))
    .bind(id)
    .bind(dataset)
    .fetch_all(&mut *connection)
    .await?;
    let wrapped = store.data_keys().read(&mut *connection, dataset).await?;
    let Some(wrapped) = wrapped else {
        return Ok(None);
    };
    let key = keys.open(dataset, &wrapped)?;
    let item = SealedItem::Publication(id);
    let mut definition = publication.definition.clone().open(&key, item)?;
    if let Some(definition) = definition.as_object_mut() {
        definition.insert("dataset_id".to_owned(), json!(dataset));
        definition.insert("release".to_owned(), json!(true));
    }
    let queued = QueuedJob {
        organization,
        dataset,
        key: &key,
        definition: &definition,
        submissions: &submissions,
        by: cause.by,
        trace: cause.trace,
        at: store.now(),
    };
    Ok(Some(jobs::insert(connection, &queued).await?.id()))
}

/// What the job of an edition has to decide.
#[derive(Clone, Debug)]
pub(crate) struct EditionPlan {
    /// The name of the publication.
    pub name: String,
    /// The number of the edition.
    pub number: u32,
    /// The submissions whose rows it takes: without those that were replaced since it was queued.
    pub submissions: BTreeSet<SubmissionId>,
    /// The published editions, oldest first.
    pub published: Vec<PublishedEdition>,
    /// For each recipient, the releases of the dataset that it knows.
    pub known: BTreeMap<OrganizationId, Vec<ReleaseId>>,
    /// The recipients who get it.
    pub recipients: Vec<Recipient>,
    /// Rows of the published editions and of the known releases.
    pub released_rows: u64,
}

/// A published edition, as far as the next one depends on it.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct PublishedEdition {
    /// Its release.
    pub release_id: ReleaseId,
    /// The cut of its release; `None` if there is no single cut, under local recoding.
    #[sqlx(json(nullable))]
    pub cut: Option<BTreeMap<String, Vec<String>>>,
    /// Rows of its release.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Whether it is a base.
    pub is_base: bool,
}

#[derive(FromRow)]
struct PlanRow {
    publication_id: PublicationId,
    name: String,
    number: i32,
    dataset_id: DatasetId,
    submissions: Vec<SubmissionId>,
}

/// What a job has to decide as an edition; `None` for a job that is not an edition's.
pub(crate) async fn plan(store: &Store, job: JobId) -> Result<Option<EditionPlan>, StoreError> {
    let mut connection = store.connection().await?;
    let row: Option<PlanRow> = sqlx::query_as(
        "SELECT e.publication_id, p.name, e.number, p.dataset_id,
                ARRAY(SELECT s.submission_id FROM edition_submissions s
                      WHERE s.publication_id = e.publication_id AND s.number = e.number
                        AND NOT EXISTS (SELECT 1 FROM submissions r
                                        WHERE r.id = s.submission_id AND r.replaced_by IS NOT NULL))
                AS submissions
         FROM editions e JOIN publications p ON p.id = e.publication_id
         WHERE e.job_id = $1",
    )
    .bind(job)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let now = store.now();
    let publication = row.publication_id;
    let recipients = publications::current_recipients(&mut connection, publication, now).await?;
    let mut known: BTreeMap<OrganizationId, Vec<ReleaseId>> = BTreeMap::new();
    for Recipient { recipient, .. } in &recipients {
        // No release has this id.
        let none = ReleaseId::new();
        let releases =
            known_releases(&mut *connection, recipient.id, row.dataset_id, none, now).await?;
        known.insert(recipient.id, releases);
    }
    let published: Vec<PublishedEdition> = sqlx::query_as(
        "SELECT e.release_id, r.cut, r.rows, e.is_base
         FROM editions e JOIN releases r ON r.id = e.release_id
         WHERE e.publication_id = $1 AND e.status = 'published' ORDER BY e.number",
    )
    .bind(publication)
    .fetch_all(&mut *connection)
    .await?;
    let of_published = published.iter().map(|it| it.release_id);
    let releases = known.values().flatten().copied().chain(of_published);
    let releases: Vec<ReleaseId> = releases.collect();
    let released_rows: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(rows), 0)::bigint FROM releases WHERE id = ANY ($1)",
    )
    .bind(releases)
    .fetch_one(&mut *connection)
    .await?;
    Ok(Some(EditionPlan {
        released_rows: released_rows.cast_unsigned(),
        name: row.name,
        number: row.number.cast_unsigned(),
        submissions: row.submissions.into_iter().collect(),
        published,
        known,
        recipients,
    }))
}

/// Whether a job is that of an edition.
pub(crate) async fn is_edition(store: &Store, job: JobId) -> Result<bool, StoreError> {
    let found = sqlx::query("SELECT 1 FROM editions WHERE job_id = $1")
        .bind(job)
        .fetch_optional(&mut *store.connection().await?)
        .await?;
    Ok(found.is_some())
}

/// What the job of an edition has decided.
#[derive(Clone, Debug)]
pub struct DecidedEdition {
    /// For each recipient, the releases that were decided with that of the edition.
    pub decided_with: BTreeMap<OrganizationId, Vec<ReleaseId>>,
    /// Of each submission of the edition, the number of rows that wait.
    pub held_back: BTreeMap<SubmissionId, u64>,
    /// Whether it does not continue the cut of an earlier edition.
    pub is_base: bool,
}

/// Writes what the job of an edition has decided, in the transaction that ends the job.
pub(super) async fn record(
    connection: &mut PgConnection,
    job: JobId,
    release: ReleaseId,
    decided: &DecidedEdition,
) -> Result<(), StoreError> {
    let total: u64 = decided.held_back.values().sum();
    sqlx::query(
        "UPDATE editions SET release_id = $2, decided_with = $3, held_back_rows = $4, is_base = $5
         WHERE job_id = $1",
    )
    .bind(job)
    .bind(release)
    .bind(Json(&decided.decided_with))
    .bind(total.cast_signed())
    .bind(decided.is_base)
    .execute(&mut *connection)
    .await?;
    let submissions: Vec<SubmissionId> = decided.held_back.keys().copied().collect();
    let rows = decided.held_back.values().map(|rows| rows.cast_signed());
    let rows: Vec<i64> = rows.collect();
    sqlx::query(
        "UPDATE edition_submissions s SET held_back = n.rows
         FROM unnest($2::uuid[], $3::bigint[]) AS n (id, rows), editions e
         WHERE e.job_id = $1 AND s.publication_id = e.publication_id AND s.number = e.number
           AND s.submission_id = n.id",
    )
    .bind(job)
    .bind(submissions)
    .bind(rows)
    .execute(connection)
    .await?;
    Ok(())
}

/// An edition that may proceed.
#[derive(FromRow)]
struct OpenEdition {
    publication_id: PublicationId,
    number: i32,
    organization_id: OrganizationId,
    status: EditionStatus,
    release_id: Option<ReleaseId>,
    decided_with: Option<Json<BTreeMap<OrganizationId, Vec<ReleaseId>>>>,
    job_status: JobStatus,
    job_error: Option<Value>,
    job_created_by: Option<TokenId>,
    is_withdrawn: bool,
}

/// Whether something was queued, so that a worker should be woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Number of jobs that were queued.
    pub queued: u64,
}

impl Settled {
    /// Counts the job of a publication, if one was queued.
    ///
    /// # Errors
    /// When the database cannot be reached, so that the others would fail too.
    fn count(
        &mut self,
        publication: PublicationId,
        is_queued: Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        match is_queued {
            Ok(is_queued) => self.queued += u64::from(is_queued),
            Err(error) if error.is_unreachable() => return Err(error),
            // It is queued once other jobs of the organization have begun.
            Err(StoreError::Quota(_)) => {}
            Err(error) => tracing::warn!(
                %publication,
                error = &error as &dyn std::error::Error,
                "an edition could not be brought on; this is tried again"
            ),
        }
        Ok(())
    }
}

/// Advances all editions that can proceed, and queues those that are due. Called by workers repeatedly, and
/// after each request that may have an effect. Cheap if there is nothing to do. A failure of an edition is
/// logged, does not affect the others, and the edition is tried again.
pub(crate) async fn settle(with: EditionQueue<'_>) -> Result<Settled, StoreError> {
    let store = with.store;
    let mut settled = Settled::default();
    // Planning the queries below takes longer than most requests, and is repeated on each new connection.
    let mut connection = store.connection().await?;
    let has_publications: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM publications)")
        .fetch_one(&mut *connection)
        .await?;
    if !has_publications {
        return Ok(settled);
    }
    let open: Vec<(PublicationId, i32)> = sqlx::query_as(
        "SELECT e.publication_id, e.number
         FROM editions e JOIN jobs j ON j.id = e.job_id
              JOIN publications p ON p.id = e.publication_id
              LEFT JOIN releases r ON r.id = e.release_id
         WHERE e.status = 'queued' AND j.status IN ('succeeded', 'failed', 'cancelled')
            OR e.status = 'awaiting_approval' AND (
                p.deleted_at IS NOT NULL OR r.withdrawn_at IS NOT NULL
                OR EXISTS (SELECT 1 FROM release_approvals a WHERE a.release_id = e.release_id)
                OR EXISTS (SELECT 1 FROM edition_submissions t
                           JOIN submissions s ON s.id = t.submission_id
                           WHERE t.publication_id = e.publication_id AND t.number = e.number
                             AND t.held_back IS NOT NULL AND s.replaced_by IS NOT NULL)
                OR NOT EXISTS (SELECT 1 FROM policies c
                               WHERE c.organization_id = e.organization_id AND c.require_approval))
         ORDER BY e.created_at",
    )
    .fetch_all(&mut *connection)
    .await?;
    drop(connection);
    for (publication, number) in open {
        let queued = settle_edition(with, publication, number).await;
        settled.count(publication, queued)?;
    }
    let due: Vec<(PublicationId, OrganizationId)> = sqlx::query_as(
        "SELECT p.id, p.organization_id FROM publications p
         WHERE p.deleted_at IS NULL AND NOT p.paused AND p.trigger = 'submission'
           AND NOT EXISTS (SELECT 1 FROM editions e
                           WHERE e.publication_id = p.id
                             AND e.status IN ('queued', 'awaiting_approval'))
           AND EXISTS (SELECT 1 FROM submissions s
                       WHERE s.dataset_id = p.dataset_id AND s.replaced_by IS NULL
                         AND NOT EXISTS (SELECT 1 FROM edition_submissions t
                                         WHERE t.publication_id = p.id AND t.submission_id = s.id))
           AND EXISTS (SELECT 1 FROM datasets d
                       WHERE d.id = p.dataset_id AND d.deleted_at IS NULL)
         ORDER BY p.id",
    )
    .fetch_all(&mut *store.connection().await?)
    .await?;
    for (publication, organization) in due {
        let queued = queue(with, organization, publication, Cause::Submission).await;
        let queued = queued.map(|queued| matches!(queued, Queueing::Queued(_)));
        settled.count(publication, queued)?;
    }
    Ok(settled)
}

/// Advances one edition; returns whether it was queued again.
async fn settle_edition(
    with: EditionQueue<'_>,
    publication: PublicationId,
    number: i32,
) -> Result<bool, StoreError> {
    let store = with.store;
    let mut transaction = store.begin().await?;
    let Some(locked) = publications::lock(&mut transaction, publication).await? else {
        return Ok(false);
    };
    let release: Option<Option<ReleaseId>> = sqlx::query_scalar(
        "SELECT release_id FROM editions
         WHERE publication_id = $1 AND number = $2 AND status IN ('queued', 'awaiting_approval')
         FOR UPDATE",
    )
    .bind(publication)
    .bind(number)
    .fetch_optional(&mut *transaction)
    .await?;
    if let Some(Some(release)) = release {
        locked_release::lock(&mut transaction, locked.organization_id, release).await?;
    }
    let edition: Option<OpenEdition> = sqlx::query_as(
        "SELECT e.publication_id, e.number, e.organization_id, e.status, e.release_id,
                e.decided_with, j.status AS job_status, j.error AS job_error,
                j.created_by AS job_created_by, r.withdrawn_at IS NOT NULL AS is_withdrawn
         FROM editions e JOIN jobs j ON j.id = e.job_id LEFT JOIN releases r ON r.id = e.release_id
         WHERE e.publication_id = $1 AND e.number = $2
           AND e.status IN ('queued', 'awaiting_approval')",
    )
    .bind(publication)
    .bind(number)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(edition) = edition else {
        return Ok(false);
    };
    let Some(release) = edition
        .release_id
        .filter(|_| edition.job_status == JobStatus::Succeeded)
    else {
        let error = match (edition.job_status, edition.job_error.clone()) {
            (JobStatus::Queued | JobStatus::Running, _) => return Ok(false),
            (JobStatus::Cancelled, _)
                if !locked.is_deleted && edition.lost_rows(&mut transaction).await? =>
            {
                return edition.decide_again(with, transaction, &locked).await;
            }
            (_, Some(error)) => error,
            (_, None) => document(Problem::new(Code::Cancelled, "the edition was cancelled"))?,
        };
        let failed = EditionStatus::Failed;
        edition.end(store, transaction, failed, error).await?;
        return Ok(false);
    };
    let now = store.now();
    let checked = edition.check(&mut transaction, &locked, release, now);
    let Publishable {
        recipients,
        waits_for_approval,
    } = match checked.await? {
        Ok(publishable) => publishable,
        Err(problem) => {
            let refused = EditionStatus::Refused;
            let error = document(problem)?;
            edition.end(store, transaction, refused, error).await?;
            return Ok(false);
        }
    };
    for Recipient { recipient, .. } in &recipients {
        let dataset = locked.dataset_id;
        let known = known_to(&mut transaction, recipient, dataset, release, now).await?;
        if !edition.is_decided_with(recipient, &known) {
            return edition.decide_again(with, transaction, &locked).await;
        }
    }
    if waits_for_approval {
        edition.await_approval(transaction).await?;
    } else {
        let published = edition.publish(store, transaction, release, &recipients);
        published.await?;
    }
    Ok(false)
}

/// A release that may be published, as far as its holder decides.
struct Publishable {
    recipients: Vec<Recipient>,
    /// Whether a second person has to approve it first.
    waits_for_approval: bool,
}

/// What a recipient knows about a dataset in addition to a release. Until the end of the transaction it gets no
/// other grant of the dataset.
async fn known_to(
    connection: &mut PgConnection,
    recipient: &GrantRecipient,
    dataset: DatasetId,
    release: ReleaseId,
    now: OffsetDateTime,
) -> Result<Vec<ReleaseId>, StoreError> {
    lock_recipient(connection, dataset, recipient.id).await?;
    known_releases(connection, recipient.id, dataset, release, now).await
}

fn document(problem: Problem) -> Result<Value, StoreError> {
    Ok(serde_json::to_value(problem.document())?)
}

impl OpenEdition {
    /// Keeps the submissions whose rows its release takes current until the end of the transaction.
    ///
    /// # Errors
    /// [`StoreError::SubmissionReplaced`].
    async fn lock_rows(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let taken: Vec<SubmissionId> = sqlx::query_scalar(
            "SELECT submission_id FROM edition_submissions
             WHERE publication_id = $1 AND number = $2 AND held_back IS NOT NULL",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .fetch_all(&mut *connection)
        .await?;
        lock_current(connection, &taken).await
    }

    /// Whether a submission that its job reads was deleted, which cancels the job, and one that it takes was not.
    async fn lost_rows(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM submissions s WHERE s.id = ANY (j.submissions))
                    < cardinality(j.submissions)
                AND EXISTS (SELECT FROM edition_submissions t JOIN submissions s ON s.id = t.submission_id
                            WHERE t.publication_id = e.publication_id AND t.number = e.number)
             FROM editions e JOIN jobs j ON j.id = e.job_id
             WHERE e.publication_id = $1 AND e.number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .fetch_one(connection)
        .await?)
    }

    /// Whether the release may be published; `Ok(Err(_))` with the reason why it never may.
    async fn check(
        &self,
        connection: &mut PgConnection,
        publication: &LockedPublication,
        release: ReleaseId,
        now: OffsetDateTime,
    ) -> Result<Result<Publishable, Problem>, StoreError> {
        let refused = |code, detail: &str| Ok(Err(Problem::new(code, detail)));
        if publication.is_deleted {
            return refused(Code::Cancelled, "the publication was deleted");
        }
        if self.is_withdrawn {
            let detail = "the release was withdrawn before it was published";
            return refused(Code::Withdrawn, detail);
        }
        match self.lock_rows(connection).await {
            Err(StoreError::SubmissionReplaced(problem)) => return Ok(Err(*problem)),
            locked => locked?,
        }
        let policy = policies::check_release(connection, self.organization_id, release, "").await;
        let policy = match policy {
            Err(StoreError::BelowPolicy(problem)) => return Ok(Err(*problem)),
            policy => policy?,
        };
        let decision = approvals::decision(connection, release).await?;
        if decision == Some(Decision::Rejected) {
            let detail = "the release was rejected; `GET /v1/releases/{id}` has the reason";
            return refused(Code::ApprovalRequired, detail);
        }
        let recipients =
            publications::current_recipients(connection, self.publication_id, now).await?;
        let mut organizations = recipients.iter().map(|it| &it.recipient);
        if let Some(other) = organizations.find(|it| !policy.allows_recipient(&it.name, it.id)) {
            let detail = format!(
                "the policy's `recipients` does not name `{}`; take it from the publication's \
                 recipients",
                other.name
            );
            return refused(Code::BelowPolicy, &detail);
        }
        Ok(Ok(Publishable {
            recipients,
            waits_for_approval: decision.is_none() && policy.requires_approval(),
        }))
    }

    /// Ends the edition with an error.
    async fn end(
        &self,
        store: &Store,
        mut transaction: Transaction<'static, Postgres>,
        status: EditionStatus,
        error: Value,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE editions SET status = $3, error = $4 WHERE publication_id = $1 AND number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .bind(status)
        .bind(&error)
        .execute(&mut *transaction)
        .await?;
        let action = match status {
            EditionStatus::Failed => Action::EditionFailed,
            _ => Action::EditionRefused,
        };
        let detail = json!({ "number": self.number, "code": error["code"] });
        let event = self.event(action, detail);
        audit::commit(transaction, store.now(), event).await
    }

    async fn await_approval(
        &self,
        mut transaction: Transaction<'static, Postgres>,
    ) -> Result<(), StoreError> {
        if self.status == EditionStatus::AwaitingApproval {
            return Ok(());
        }
        sqlx::query(
            "UPDATE editions SET status = 'awaiting_approval'
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Whether all that a recipient knows was decided with the release.
    fn is_decided_with(&self, recipient: &GrantRecipient, known: &[ReleaseId]) -> bool {
        let decided = self.decided_with.as_ref();
        let decided = decided.and_then(|Json(decided)| decided.get(&recipient.id));
        decided.is_some_and(|decided| known.iter().all(|it| decided.contains(it)))
    }

    /// Queues the edition again, because a recipient was added or has got other releases: for the token that
    /// requested it before, which does not approve its release.
    async fn decide_again(
        &self,
        with: EditionQueue<'_>,
        mut transaction: Transaction<'static, Postgres>,
        publication: &LockedPublication,
    ) -> Result<bool, StoreError> {
        let id = self.publication_id;
        let cause = JobCause {
            by: self.job_created_by,
            trace: TraceContext::current(),
        };
        let job = insert_job(&mut transaction, with, id, publication, cause).await?;
        let Some(job) = job else {
            let problem = Problem::new(Code::DatasetDeleted, "the dataset was deleted");
            let status = EditionStatus::Failed;
            self.end(with.store, transaction, status, document(problem)?)
                .await?;
            return Ok(false);
        };
        sqlx::query(
            "UPDATE editions SET status = 'queued', job_id = $3, release_id = NULL,
                                 decided_with = NULL, held_back_rows = NULL, is_base = NULL
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(id)
        .bind(self.number)
        .bind(job)
        .execute(&mut *transaction)
        .await?;
        // The decision of the previous job does not count: the new one leaves out rows that are replaced
        // meanwhile.
        sqlx::query(
            "UPDATE edition_submissions SET held_back = NULL
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(id)
        .bind(self.number)
        .execute(&mut *transaction)
        .await?;
        let detail = json!({ "number": self.number, "job_id": job });
        let event = self.event(Action::EditionQueued, detail);
        audit::commit(transaction, with.store.now(), event).await?;
        Ok(true)
    }

    /// Publishes the edition: grants its release to the recipients.
    async fn publish(
        &self,
        store: &Store,
        mut transaction: Transaction<'static, Postgres>,
        release: ReleaseId,
        recipients: &[Recipient],
    ) -> Result<(), StoreError> {
        let now = store.now();
        for recipient in recipients {
            let grant = grants::EditionGrant {
                organization: self.organization_id,
                release,
                recipient: &recipient.recipient,
                purpose: &recipient.purpose,
                expires_at: recipient.expires_at,
            };
            grants::of_edition(&mut transaction, now, &grant).await?;
        }
        sqlx::query(
            "UPDATE editions SET status = 'published', published_at = $3
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
        let names = recipients.iter().map(|it| &it.recipient.name);
        let names: Vec<&String> = names.collect();
        let detail = json!({ "number": self.number, "release_id": release, "recipients": names });
        audit::commit(
            transaction,
            now,
            self.event(Action::EditionPublished, detail),
        )
        .await
    }

    fn event(&self, action: Action, detail: Value) -> NewEvent {
        let by = Actor::SERVICE;
        NewEvent::of(
            self.organization_id,
            by,
            action,
            self.publication_id.0,
            detail,
        )
    }
}
