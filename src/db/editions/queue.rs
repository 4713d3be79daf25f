//! Editions are queued, with their jobs.

use pais_core::definition::{DatasetId, SubmissionId};
use serde_json::json;
use sqlx::{FromRow, PgConnection};

use crate::db::audit::{self, Action, Actor, NewEvent};
use crate::db::jobs::{self, QueuedJob};
use crate::db::key_ring::KeyRing;
use crate::db::publications::{self, LockedPublication};
use crate::db::quotas::Quotas;
use crate::db::seal::SealedItem;
use crate::db::submissions::has_subject;
use crate::db::{Store, StoreError, token_validity};
use crate::ids::{JobId, OrganizationId, PublicationId, TokenId};
use crate::roles::Caller;
use crate::telemetry::traces::TraceContext;

/// Why a new edition is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// A submission that no edition has taken.
    Submission,
    /// A request.
    Request(Caller),
}

impl Cause {
    fn caller(self) -> Option<Caller> {
        match self {
            Self::Submission => None,
            Self::Request(caller) => Some(caller),
        }
    }

    /// Whether a submission is one for which an edition is made.
    fn is_new(self, submission: &TakenSubmission) -> bool {
        match self {
            Self::Submission => !submission.is_tried,
            Self::Request(_) => submission.held_back.is_none(),
        }
    }

    /// Why the job of the edition is made; `newest` is the newest new submission.
    fn of_job(self, publication: &LockedPublication, newest: &TakenSubmission) -> JobCause {
        match self {
            // A worker or another request may be the first to find the submission.
            Self::Submission => JobCause {
                by: publication.created_by,
                trace: newest.trace,
            },
            Self::Request(caller) => JobCause {
                by: Some(caller.token),
                trace: TraceContext::current(),
            },
        }
    }
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
    let mut transaction = token_validity::begin(with.store, cause.caller()).await?;
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
    if !publication.has_dataset {
        return Ok(Queueing::NoDataset);
    }
    let taken = taken_submissions(&mut transaction, id, publication.dataset_id).await?;
    let Some(newest) = taken.iter().rfind(|it| cause.is_new(it)) else {
        return Ok(Queueing::NothingNew);
    };
    let number: i32 = sqlx::query_scalar(
        "SELECT coalesce(max(number), 0) + 1 FROM editions WHERE publication_id = $1",
    )
    .bind(id)
    .fetch_one(&mut *transaction)
    .await?;
    let cause_of_job = cause.of_job(&publication, newest);
    let job = insert_job(&mut transaction, with, id, &publication, cause_of_job).await?;
    let Some(job) = job else {
        return Ok(Queueing::NoDataset);
    };
    let waiting = taken.iter().filter(|it| it.held_back != Some(0));
    let waiting: Vec<SubmissionId> = waiting.map(|it| it.id).collect();
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
    sqlx::query(
        "INSERT INTO edition_submissions (publication_id, number, submission_id)
         SELECT $1, $2, * FROM unnest($3::uuid[])",
    )
    .bind(id)
    .bind(number)
    .bind(&waiting)
    .execute(&mut *transaction)
    .await?;
    let actor = cause.caller().map_or(Actor::SERVICE, Actor::from);
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
pub(super) struct JobCause {
    /// The token for which it is made.
    pub(super) by: Option<TokenId>,
    /// The request that it belongs to.
    pub(super) trace: Option<TraceContext>,
}

/// Queues the job of an edition; `None` if the dataset was deleted. If persons can be in several submissions,
/// or recipients have other releases of the dataset, the job reads all rows: the decision on what releases
/// disclose together needs them. The publication is locked.
///
/// # Errors
/// [`StoreError::Quota`].
pub(super) async fn insert_job(
    connection: &mut PgConnection,
    with: EditionQueue<'_>,
    id: PublicationId,
    publication: &LockedPublication,
    cause: JobCause,
) -> Result<Option<JobId>, StoreError> {
    if !publication.has_dataset {
        return Ok(None);
    }
    let (dataset, organization) = (publication.dataset_id, publication.organization_id);
    let queue = with.quotas.check_queue(connection, organization);
    queue.await?;
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
    let wrapped = with.store.data_keys().read(&mut *connection, dataset);
    let Some(wrapped) = wrapped.await? else {
        return Ok(None);
    };
    let key = with.keys.open(dataset, &wrapped)?;
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
        at: with.store.now(),
    };
    Ok(Some(jobs::insert(connection, &queued).await?.id()))
}
