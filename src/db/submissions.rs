//! Submissions: batches of rows, stored as sealed chunks. A submission is stored completely or not
//! at all.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, Postgres, Transaction};
use time::OffsetDateTime;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::storage::object_stores::LocatedObject;
use crate::telemetry::traces::TraceContext;
use pais_core::definition::{DatasetId, SubmissionId};
use pais_core::warning::{Warning, WarningCode, by_code};

use super::audit::{self, Action, NewEvent};
use super::dataset_revisions::{DatasetRevision, lock_dataset};
use super::idempotency::{self, IdempotentAnswer, Reservation};
use super::quotas::Quotas;
use super::seal::{DataKey, SealedItem, SubmissionKey};
use super::{Store, StoreError, located_objects, token_validity};

/// A batch of rows that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SubmissionDocument)]
pub(crate) struct Submission {
    /// Its id.
    pub id: SubmissionId,
    /// The dataset it was sent to.
    pub dataset_id: DatasetId,
    /// Number of records.
    pub rows: u64,
    /// Length of the decoded body.
    pub bytes: u64,
    /// Of the decoded body, hexadecimal.
    pub sha256: String,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The submission that it replaced; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<SubmissionId>,
}

/// Which submissions of a dataset are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// Those that no other submission has replaced.
    Current,
    /// All, replaced ones too: earlier releases have their rows.
    Stored,
    /// These, replaced or not.
    Listed(&'a [SubmissionId]),
}

impl<'a> Which<'a> {
    fn listed(self) -> Option<&'a [SubmissionId]> {
        match self {
            Self::Current | Self::Stored => None,
            Self::Listed(ids) => Some(ids),
        }
    }

    fn is_current(self) -> bool {
        self == Self::Current
    }
}

/// The condition that a submission `s` of the dataset `$1` is one of those that are read: `$2` is
/// [`Which::listed`], `$3` is [`Which::is_current`].
macro_rules! is_read {
    () => {
        "s.dataset_id = $1 AND ($2::uuid[] IS NULL OR s.id = ANY($2))
         AND NOT ($3 AND s.replaced_by IS NOT NULL)"
    };
}

/// A chunk of rows of a submission, sealed with its key.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(crate) struct SealedChunk {
    /// The submission that the rows belong to.
    pub submission: SubmissionId,
    /// Index of the chunk in the submission, from 0.
    #[sqlx(try_from = "i32")]
    pub index: u32,
    /// Number of rows.
    #[sqlx(try_from = "i32")]
    pub rows: u32,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// The totals of a submission, which are known only at its end.
#[derive(Clone, Debug)]
pub(crate) struct SubmissionTotals {
    /// Size of the decoded body, in bytes.
    pub bytes: u64,
    /// SHA-256 of the decoded body.
    pub sha256: [u8; 32],
    /// The totals of its rows.
    pub rows: RowTotals,
}

/// The totals of the rows of a submission.
#[derive(Clone, Debug)]
pub(crate) struct RowTotals {
    /// Number of rows.
    pub number: u64,
    /// Memory of the distinct values of its chunks, in bytes.
    pub text_bytes: u64,
    /// Their keyed digest; `None` if no column is stored.
    pub digest: Option<[u8; 32]>,
    /// By identifier column, the number of rows whose identifier occurred before; `None` if none
    /// were counted.
    pub identifier_repeats: Option<BTreeMap<String, u64>>,
    /// What the holder should know about its rows.
    pub warnings: Vec<ColumnWarning>,
}

/// A warning about the rows of a submission, and the column that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ColumnWarning {
    /// Name of the column.
    pub column: String,
    /// The warning.
    pub warning: Warning,
}

/// The result of [`SubmissionWriter::commit`].
#[derive(Debug)]
pub(crate) enum SubmissionResult {
    /// The submission is stored.
    Stored(IdempotentAnswer),
    /// The dataset was deleted meanwhile.
    NoDataset,
    /// The columns were changed after the rows began to be read.
    ColumnsChanged,
    /// A later request has taken over the idempotency key.
    KeyTaken,
    /// This earlier submission has the same rows.
    Duplicate(SubmissionId),
    /// The submission whose place it was to take cannot be replaced.
    NotReplaceable {
        /// That submission.
        replaced: SubmissionId,
        /// Why.
        reason: NotReplaceable,
    },
}

/// Why a submission cannot be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReplaceable {
    /// The dataset has no such submission.
    NotFound,
    /// This submission has already replaced it.
    Replaced(SubmissionId),
    /// A release was made by a job that read it, and without a `subject` column it is unknown which of the new
    /// rows are of the same persons.
    Released,
}

/// What happens to rows that the dataset already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// They are refused: most probably a file was sent twice.
    Refused,
    /// They are stored again.
    Allowed,
}

/// The conditions on a submission at its commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmissionRules<'a> {
    /// The revision of the columns under which the rows were read.
    pub(crate) columns_revision: DatasetRevision,
    /// Whether rows that the dataset already has are refused.
    pub(crate) duplicates: Duplicates,
    /// The submission that it replaces.
    pub(crate) replaces: Option<SubmissionId>,
    /// What its organization may store.
    pub(crate) quotas: &'a Quotas,
}

/// A submission to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSubmission<'a> {
    /// Its id.
    pub(crate) id: SubmissionId,
    /// The key of its rows, sealed with the key of the dataset.
    pub(crate) sealed_key: &'a [u8],
    /// The media type of its files.
    pub(crate) media_type: &'a str,
}

/// A submission that is being written. If it is dropped before [`SubmissionWriter::commit`], nothing is
/// stored.
pub(crate) struct SubmissionWriter {
    store: Store,
    pub(super) transaction: Transaction<'static, Postgres>,
    submission: Submission,
}

impl SubmissionWriter {
    /// Begins a submission.
    ///
    /// # Errors
    /// When the database or the key file fails.
    pub(crate) async fn begin(
        store: &Store,
        dataset: DatasetId,
        new: NewSubmission<'_>,
    ) -> Result<Self, StoreError> {
        Self::begin_within(store, store.begin().await?, dataset, new).await
    }

    /// As [`Self::begin`], in a transaction of the store.
    pub(super) async fn begin_within(
        store: &Store,
        mut transaction: Transaction<'static, Postgres>,
        dataset: DatasetId,
        new: NewSubmission<'_>,
    ) -> Result<Self, StoreError> {
        let NewSubmission {
            id,
            sealed_key,
            media_type,
        } = new;
        let submission = Submission {
            id,
            dataset_id: dataset,
            rows: 0,
            bytes: 0,
            sha256: String::new(),
            created_at: store.now(),
            replaces: None,
        };
        sqlx::query(
            "INSERT INTO submissions (id, dataset_id, rows, bytes, media_type, created_at, trace_context)
             VALUES ($1, $2, 0, 0, $3, $4, $5)",
        )
        .bind(id)
        .bind(dataset)
        .bind(media_type)
        .bind(submission.created_at)
        .bind(TraceContext::current())
        .execute(&mut *transaction)
        .await?;
        let keys = store.data_keys();
        keys.create(&mut transaction, id, sealed_key).await?;
        Ok(Self {
            store: store.clone(),
            transaction,
            submission,
        })
    }

    /// Writes a chunk.
    pub(crate) async fn add(&mut self, chunk: &SealedChunk) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO submission_chunks (submission_id, index, rows, sealed)
             VALUES ($1, $2, $3, $4)",
        )
        .bind(chunk.submission)
        .bind(chunk.index.cast_signed())
        .bind(chunk.rows.cast_signed())
        .bind(&chunk.sealed)
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    /// Writes which objects the rows were read from.
    pub(super) async fn add_objects(
        &mut self,
        objects: &[LocatedObject],
    ) -> Result<(), StoreError> {
        located_objects::insert(&mut self.transaction, self.submission.id, objects).await
    }

    /// Commits the rows, the totals, the event in the audit log, and the answer under the
    /// idempotency key of the request, whose reservation is taken.
    ///
    /// # Errors
    /// [`StoreError::TokenEnded`]; when the database fails, or the answer cannot be written as JSON.
    pub(crate) async fn commit(
        mut self,
        key: &DataKey,
        by: Caller,
        totals: &SubmissionTotals,
        rules: SubmissionRules<'_>,
        reservation: &mut Option<Reservation>,
        answer: impl FnOnce(&Submission) -> Result<IdempotentAnswer, serde_json::Error>,
    ) -> Result<SubmissionResult, StoreError> {
        let submission = Submission {
            rows: totals.rows.number,
            bytes: totals.bytes,
            sha256: hex::encode(totals.sha256),
            replaces: rules.replaces,
            ..self.submission
        };
        // From here until the commit, the token cannot be revoked and the dataset cannot be deleted.
        let now = self.store.now();
        token_validity::lock_valid(&mut self.transaction, by.token, now).await?;
        let locked = lock_dataset(&mut self.transaction, submission.dataset_id).await?;
        let Some(revision) = locked else {
            return Ok(SubmissionResult::NoDataset);
        };
        let refused = if revision == rules.columns_revision {
            refused(&mut self.transaction, &submission, totals, rules).await?
        } else {
            Some(SubmissionResult::ColumnsChanged)
        };
        if let Some(refused) = refused {
            self.transaction.rollback().await?;
            return Ok(refused);
        }
        // Bare, it would confirm a guessed body.
        let sealed_sha256 = key.seal(SealedItem::BodySha256(submission.id), &totals.sha256)?;
        sqlx::query(
            "UPDATE submissions
             SET rows = $2, bytes = $3, sealed_sha256 = $4, warnings = $5,
                 text_bytes = $6, rows_digest = $7, identifier_repeats = $8, created_by = $9
             WHERE id = $1",
        )
        .bind(submission.id)
        .bind(totals.rows.number.cast_signed())
        .bind(totals.bytes.cast_signed())
        .bind(sealed_sha256)
        .bind(Json(&totals.rows.warnings))
        .bind(totals.rows.text_bytes.cast_signed())
        .bind(totals.rows.digest.as_ref().map(<[u8; 32]>::as_slice))
        .bind(totals.rows.identifier_repeats.as_ref().map(Json))
        .bind(by.token)
        .execute(&mut *self.transaction)
        .await?;
        let quotas = rules.quotas;
        let stored = quotas.check_stored(&mut self.transaction, by.organization);
        stored.await?;
        let detail = json!({ "dataset_id": submission.dataset_id, "rows": totals.rows.number });
        let event = NewEvent::by(by, Action::SubmissionCreated, submission.id.0, detail);
        audit::record(&mut self.transaction, submission.created_at, event).await?;
        if let Some(replaced) = submission.replaces {
            replace(&mut self.transaction, by, replaced, &submission).await?;
        }
        let answer = answer(&submission)?;
        let sent = sent_digest(&totals.sha256, submission.replaces);
        let commit = idempotency::commit(reservation.take(), self.transaction, &sent, &answer);
        if commit.await? {
            Ok(SubmissionResult::Stored(answer))
        } else {
            Ok(SubmissionResult::KeyTaken)
        }
    }
}

/// What a retry of a request must repeat: the body, and the submission that it replaces.
pub(crate) fn sent_digest(body_sha256: &[u8; 32], replaces: Option<SubmissionId>) -> Vec<u8> {
    let replaces = replaces.iter().flat_map(|id| id.0.as_bytes());
    body_sha256.iter().chain(replaces).copied().collect()
}

/// Why a submission is not stored; `None` if it can be until the end of the transaction.
async fn refused(
    connection: &mut PgConnection,
    submission: &Submission,
    totals: &SubmissionTotals,
    rules: SubmissionRules<'_>,
) -> Result<Option<SubmissionResult>, StoreError> {
    let dataset = submission.dataset_id;
    if let (Duplicates::Refused, Some(digest)) = (rules.duplicates, &totals.rows.digest)
        && let Some(earlier) = equal_submission(connection, dataset, digest).await?
    {
        return Ok(Some(SubmissionResult::Duplicate(earlier)));
    }
    let Some(replaced) = submission.replaces else {
        return Ok(None);
    };
    let replaceable = lock_replaceable(connection, dataset, replaced).await?;
    let refused = |reason| SubmissionResult::NotReplaceable { replaced, reason };
    Ok(replaceable.err().map(refused))
}

/// The condition that the dataset of this parameter has a column of the role `subject`.
macro_rules! has_subject {
    ($dataset:literal) => {
        concat!(
            "EXISTS (SELECT FROM datasets d, jsonb_array_elements(d.definition -> 'columns') c
                     WHERE d.id = ",
            $dataset,
            " AND c ->> 'role' = 'subject')"
        )
    };
}
pub(super) use has_subject;

/// Whether a submission can be replaced. Until the end of the transaction no other submission replaces it, and
/// no release of its rows is stored.
pub(crate) async fn lock_replaceable(
    connection: &mut PgConnection,
    dataset: DatasetId,
    id: SubmissionId,
) -> Result<Result<(), NotReplaceable>, StoreError> {
    let found: Option<Option<SubmissionId>> = sqlx::query_scalar(
        "SELECT replaced_by FROM submissions WHERE id = $1 AND dataset_id = $2
         FOR NO KEY UPDATE",
    )
    .bind(id)
    .bind(dataset)
    .fetch_optional(&mut *connection)
    .await?;
    match found {
        None => return Ok(Err(NotReplaceable::NotFound)),
        Some(Some(by)) => return Ok(Err(NotReplaceable::Replaced(by))),
        Some(None) => {}
    }
    let is_released: bool = sqlx::query_scalar(concat!(
        "SELECT NOT ",
        has_subject!("$2"),
        " AND EXISTS (SELECT FROM releases r JOIN jobs j ON j.id = r.job_id
                      WHERE r.dataset_id = $2 AND $1 = ANY (j.submissions))"
    ))
    .bind(id)
    .bind(dataset)
    .fetch_one(connection)
    .await?;
    if is_released {
        return Ok(Err(NotReplaceable::Released));
    }
    Ok(Ok(()))
}

/// Replaces a submission, which [`lock_replaceable`] has locked, with another one.
async fn replace(
    connection: &mut PgConnection,
    by: Caller,
    replaced: SubmissionId,
    submission: &Submission,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE submissions SET replaced_by = $2 WHERE id = $1")
        .bind(replaced)
        .bind(submission.id)
        .execute(&mut *connection)
        .await?;
    let detail = json!({ "dataset_id": submission.dataset_id, "replaced_by": submission.id });
    let event = NewEvent::by(by, Action::SubmissionReplaced, replaced.0, detail);
    audit::record(connection, submission.created_at, event).await
}

/// Checks that submissions whose rows are to be released are current, and keeps them so until the end of
/// the transaction.
///
/// # Errors
/// [`StoreError::SubmissionReplaced`].
pub(crate) async fn lock_current(
    connection: &mut PgConnection,
    ids: &[SubmissionId],
) -> Result<(), StoreError> {
    let replaced: Vec<Option<SubmissionId>> = sqlx::query_scalar(
        "SELECT replaced_by FROM submissions WHERE id = ANY ($1) ORDER BY id FOR SHARE",
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    let Some(by) = replaced.into_iter().flatten().next() else {
        return Ok(());
    };
    let detail = format!(
        "submission {by} has taken the place of one of the job's, whose rows are not released any more"
    );
    let problem = Problem::new(Code::SubmissionReplaced, detail);
    Err(StoreError::SubmissionReplaced(problem.into()))
}

/// The current submission of a dataset whose rows have this digest. Until the transaction ends, no other
/// transaction that asks for the same digest gets an answer: of two equal submissions at the same
/// time, one waits for the other.
async fn equal_submission(
    connection: &mut PgConnection,
    dataset: DatasetId,
    digest: &[u8; 32],
) -> Result<Option<SubmissionId>, StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 12))")
        .bind(digest.as_slice())
        .execute(&mut *connection)
        .await?;
    Ok(sqlx::query_scalar(
        "SELECT id FROM submissions
         WHERE dataset_id = $1 AND rows_digest = $2 AND replaced_by IS NULL
         ORDER BY id LIMIT 1",
    )
    .bind(dataset)
    .bind(digest.as_slice())
    .fetch_optional(connection)
    .await?)
}

/// Sends the sealed chunks of a dataset's submissions to `out`, in the order of the submissions' ids and
/// of the rows. It waits while the channel is full.
///
/// Stops early, without an error, if the receiver is dropped.
pub(crate) async fn load_chunks(
    store: &Store,
    dataset: DatasetId,
    which: Which<'_>,
    out: mpsc::Sender<SealedChunk>,
) -> Result<(), StoreError> {
    let mut connection = store.connection().await?;
    let mut chunks = sqlx::query_as(concat!(
        "SELECT c.submission_id AS submission, c.index, c.rows, c.sealed
         FROM submission_chunks c JOIN submissions s ON s.id = c.submission_id
         WHERE ",
        is_read!(),
        " ORDER BY c.submission_id, c.index",
    ))
    .bind(dataset)
    .bind(which.listed())
    .bind(which.is_current())
    .fetch(&mut *connection);
    while let Some(chunk) = chunks.try_next().await? {
        if out.send(chunk).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The totals of the submissions of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub(crate) struct SubmissionsSize {
    /// Number of submissions.
    #[sqlx(try_from = "i64")]
    pub submissions: u64,
    /// Number of rows.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Memory of the distinct values of their chunks, in bytes.
    #[sqlx(try_from = "i64")]
    pub text_bytes: u64,
    /// Size of the decoded bodies, in bytes.
    #[sqlx(try_from = "i64")]
    pub bytes: u64,
}

/// Adds up submissions of a dataset.
pub(crate) async fn size(
    store: &Store,
    dataset: DatasetId,
    which: Which<'_>,
) -> Result<SubmissionsSize, StoreError> {
    Ok(sqlx::query_as(concat!(
        "SELECT count(*) AS submissions, coalesce(sum(rows), 0)::bigint AS rows,
                coalesce(sum(bytes), 0)::bigint AS bytes,
                coalesce(sum(text_bytes), 0)::bigint AS text_bytes
         FROM submissions s WHERE ",
        is_read!(),
    ))
    .bind(dataset)
    .bind(which.listed())
    .bind(which.is_current())
    .fetch_one(&mut *store.connection().await?)
    .await?)
}

/// The keys of submissions of a dataset, without those that are deleted meanwhile.
///
/// # Errors
/// When the database fails, and for a submission whose key is missing or does not open.
pub(crate) async fn keys(
    store: &Store,
    key: &DataKey,
    dataset: DatasetId,
    which: Which<'_>,
) -> Result<BTreeMap<SubmissionId, SubmissionKey>, StoreError> {
    let stored: Vec<SubmissionId> =
        sqlx::query_scalar(concat!("SELECT s.id FROM submissions s WHERE ", is_read!(),))
            .bind(dataset)
            .bind(which.listed())
            .bind(which.is_current())
            .fetch_all(&mut *store.connection().await?)
            .await?;
    let mut keys = BTreeMap::new();
    let mut without_key = Vec::new();
    for id in stored {
        let mut connection = store.connection().await?;
        let sealed = store.data_keys().read(&mut *connection, id).await?;
        match sealed.and_then(|sealed| key.open_submission_key(id, &sealed).ok()) {
            Some(opened) => drop(keys.insert(id, opened)),
            None => without_key.push(id),
        }
    }
    // A key is overwritten and destroyed after its submission is deleted.
    let is_lost = !without_key.is_empty()
        && sqlx::query_scalar("SELECT EXISTS (SELECT FROM submissions WHERE id = ANY ($1))")
            .bind(without_key)
            .fetch_one(&mut *store.connection().await?)
            .await?;
    if is_lost {
        let damaged = "a submission, whose key is missing or does not open,";
        return Err(StoreError::Damaged(damaged));
    }
    Ok(keys)
}

/// Whether a stored submission of a dataset came in a format that has null: every format except text.
pub(crate) async fn may_have_null(store: &Store, dataset: DatasetId) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM submissions
                        WHERE dataset_id = $1 AND media_type NOT LIKE 'text/%')",
    );
    let mut connection = store.connection().await?;
    Ok(found.bind(dataset).fetch_one(&mut *connection).await?)
}

/// A submission and its number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, FromRow)]
pub(crate) struct SubmissionRows {
    /// Its id.
    pub id: SubmissionId,
    /// Number of rows.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
}

/// Submissions of a dataset with their numbers of rows, in the order in which rows are loaded.
pub(crate) async fn rows_by_submission(
    store: &Store,
    dataset: DatasetId,
    which: Which<'_>,
) -> Result<Vec<SubmissionRows>, StoreError> {
    Ok(sqlx::query_as(concat!(
        "SELECT s.id, s.rows FROM submissions s WHERE ",
        is_read!(),
        " ORDER BY s.id",
    ))
    .bind(dataset)
    .bind(which.listed())
    .bind(which.is_current())
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// By identifier column, the number of current rows whose identifier occurred before in their
/// submission; `None` if none were counted.
pub(crate) async fn identifier_repeats(
    store: &Store,
    dataset: DatasetId,
) -> Result<Option<BTreeMap<String, u64>>, StoreError> {
    let counted: Option<Json<BTreeMap<String, u64>>> = sqlx::query_scalar(
        "SELECT jsonb_object_agg(name, rows) FROM (
             SELECT c.key AS name, sum(c.value::bigint) AS rows
             FROM submissions s, jsonb_each_text(s.identifier_repeats) c
             WHERE s.dataset_id = $1 AND s.replaced_by IS NULL
             GROUP BY c.key) counted",
    )
    .bind(dataset)
    .fetch_one(&mut *store.connection().await?)
    .await?;
    Ok(counted.map(|Json(counted)| counted))
}

/// The warnings about rows of a dataset, one for each code. Of several with the same code about one
/// column only that of the newest submission is returned.
pub(crate) async fn row_warnings(
    connection: &mut PgConnection,
    dataset: DatasetId,
    which: Which<'_>,
) -> Result<Vec<Warning>, StoreError> {
    let rows: Vec<Json<ColumnWarning>> = sqlx::query_scalar(concat!(
        "SELECT warning FROM (
             SELECT DISTINCT ON (w.warning -> 'column', w.warning -> 'warning' -> 'code')
                    w.warning, s.id, w.position
             FROM submissions s,
                  jsonb_array_elements(s.warnings) WITH ORDINALITY AS w (warning, position)
             WHERE ",
        is_read!(),
        " ORDER BY w.warning -> 'column', w.warning -> 'warning' -> 'code', s.id DESC) newest
         ORDER BY id, position",
    ))
    .bind(dataset)
    .bind(which.listed())
    .bind(which.is_current())
    .fetch_all(connection)
    .await?;
    Ok(by_code(rows.into_iter().map(|Json(about)| about.warning)))
}

/// The warnings about rows of a dataset that its jobs and releases have too: it is not known, or not as
/// declared, which rows are of one person.
pub(crate) async fn person_warnings(
    store: &Store,
    dataset: DatasetId,
    submissions: &[SubmissionId],
) -> Result<Vec<Warning>, StoreError> {
    let which = Which::Listed(submissions);
    let mut warnings = row_warnings(&mut *store.connection().await?, dataset, which).await?;
    warnings.retain(|warning| warning.code == WarningCode::RepeatedIdentifier);
    Ok(warnings)
}
