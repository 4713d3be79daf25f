//! The storage of a new release, with its tables and its event in the audit log, and with the raw row that
//! each released row comes from: sealed with the key of the dataset, and deleted with it. Only the decision
//! what releases say together reads it.

use futures_util::TryStreamExt;
use pais_core::definition::{DatasetId, JobDefinition, SubmissionId, SuppressionFor};
use pais_core::model::MissingSensitive;
use pais_core::table::Form;
use pais_core::warning::Warning;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;

use crate::ids::{JobId, OrganizationId, ReleaseId};
use crate::telemetry::traces::TraceSpan;

use super::audit::{self, Action, Actor, NewEvent};
use super::dataset_revisions::lock_dataset;
use super::seal::{DataKey, SealedItem};
use super::submissions::{SubmissionRows, lock_current};
use super::{Store, StoreError, policies, token_validity};
use pais_seal::SealError;

/// A release to be stored.
#[derive(Clone, Debug)]
pub struct NewRelease {
    /// Its id.
    pub id: ReleaseId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The job it comes from.
    pub job: JobId,
    /// The dataset it comes from.
    pub dataset: DatasetId,
    /// The submissions whose rows it can have; none of them may be replaced.
    pub submissions: Vec<SubmissionId>,
    /// A display name.
    pub name: Option<String>,
    /// The step of the run that it publishes.
    pub step: Option<u32>,
    /// Who requested it; the service itself where the job creates it when it ends.
    pub by: Actor,
    /// Number of released rows.
    pub rows: u64,
    /// Number of suppressed rows.
    pub suppressed_rows: u64,
    /// The privacy model with its parameters.
    pub privacy: Value,
    /// The labels of the cut of each column.
    pub cut: Option<Value>,
    /// The result of the verification.
    pub verification: Value,
    /// The utility and risk report.
    pub report: Value,
    /// What a recipient needs to resolve its labels.
    pub codebook: Value,
    /// The options of the privacy model of the job that the release is made under.
    pub model_options: ModelOptions,
    /// Warnings for its readers.
    pub warnings: Vec<Warning>,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Its tables, in order.
    pub tables: Vec<NewTable>,
    /// The files that were written at its location; none for one without a location.
    pub files: Vec<NewReleaseFile>,
    /// The shares of raw values and labels in each column, sealed; `None` where there are none.
    pub sealed_distributions: Option<Vec<u8>>,
    /// The raw row of each row of the first table, in sealed parts; none for rows that are in files alone.
    pub source_rows: Vec<Vec<u8>>,
}

/// The options of the privacy model of a job that its releases name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// What rows could be suppressed for; `None` if none could.
    pub suppression_for: Option<SuppressionFor>,
    /// How missing sensitive cells count.
    pub missing_sensitive: MissingSensitive,
}

impl ModelOptions {
    /// The options of the privacy model of a job.
    pub fn of(job: &JobDefinition) -> Self {
        let may_suppress = job.suppression_limit.is_some_and(|limit| limit > 0.0);
        Self {
            suppression_for: may_suppress.then(|| job.suppression_for.unwrap_or_default()),
            missing_sensitive: job.missing_sensitive.unwrap_or_default(),
        }
    }
}

/// A column of a stored table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredColumn {
    /// Its name.
    pub name: Box<str>,
    /// What its cells are.
    pub form: Form,
    /// The words for a missing value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Box<str>>,
}

/// A table of a release to be stored.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// `data`, `qit` or `st_<column>`.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Its columns.
    pub columns: Vec<StoredColumn>,
    /// Its rows; `None` if they are only in the files of the release.
    pub content: Option<TableContent>,
}

/// The rows of a table to be stored.
#[derive(Clone, Debug)]
pub struct TableContent {
    /// SHA-256 of the CSV as served.
    pub sha256: [u8; 32],
    /// Size of the CSV as served.
    pub csv_bytes: u64,
    /// The rows in chunks.
    pub chunks: Vec<Vec<u8>>,
}

/// A file of a release, written and to be stored in its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReleaseFile {
    /// The table that it has rows of.
    pub table: String,
    /// Its name.
    pub name: String,
    /// Number of its rows.
    pub rows: u64,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// Stores a release that a holder requested. Returns `false` if its dataset, or a submission of its job, was
/// deleted meanwhile.
///
/// # Errors
/// [`StoreError::TokenEnded`]; [`StoreError::BelowPolicy`]; [`StoreError::SubmissionReplaced`].
pub async fn create(store: &Store, release: &NewRelease) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    if let Some(token) = release.by.token {
        token_validity::lock_valid(&mut transaction, token, store.now()).await?;
    }
    let is_stored = insert(&mut transaction, release, &|| {}).await?;
    if is_stored {
        transaction.commit().await?;
    }
    Ok(is_stored)
}

/// Stores a release and calls `written` after each chunk. Returns `false`, and stores nothing, if its dataset or
/// a submission of its job was deleted meanwhile, or its job has already created its release.
pub(super) async fn insert(
    connection: &mut PgConnection,
    release: &NewRelease,
    written: &(dyn Fn() + Sync),
) -> Result<bool, StoreError> {
    let trace = TraceSpan::part("storing release");
    trace.set("pais.release_id", release.id);
    if lock_dataset(connection, release.dataset).await?.is_none() {
        return Ok(false);
    }
    lock_current(connection, &release.submissions).await?;
    // A deletion of a submission waits for the lock of the dataset, or is seen here.
    let are_stored: Option<bool> = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM submissions s WHERE s.id = ANY (j.submissions))
                = cardinality(j.submissions) FROM jobs j WHERE j.id = $1",
    )
    .bind(release.job)
    .fetch_optional(&mut *connection)
    .await?;
    if are_stored != Some(true) {
        return Ok(false);
    }
    let done = sqlx::query(
        "INSERT INTO releases (id, organization_id, job_id, dataset_id, name, step, by_job, rows,
             suppressed_rows, privacy, cut, verification, report, created_at, suppression_for,
             missing_sensitive, warnings, created_by, codebook, sealed_distributions,
             source_submissions)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                 $15::jsonb #>> '{}', $16::jsonb #>> '{}', $17,
                 coalesce($18, (SELECT created_by FROM jobs WHERE id = $3)), $19, $20,
                 (SELECT jsonb_agg(jsonb_build_object('id', s.id, 'rows', s.rows) ORDER BY s.id)
                  FROM jobs j JOIN submissions s ON s.id = ANY (j.submissions) WHERE j.id = $3))
         ON CONFLICT (job_id) WHERE by_job DO NOTHING",
    )
    .bind(release.id)
    .bind(release.organization)
    .bind(release.job)
    .bind(release.dataset)
    .bind(&release.name)
    .bind(release.step.map(u32::cast_signed))
    .bind(release.by.token.is_none())
    .bind(release.rows.cast_signed())
    .bind(release.suppressed_rows.cast_signed())
    .bind(&release.privacy)
    .bind(&release.cut)
    .bind(&release.verification)
    .bind(&release.report)
    .bind(release.created_at)
    .bind(release.model_options.suppression_for.map(Json))
    .bind(Json(release.model_options.missing_sensitive))
    .bind(Json(&release.warnings))
    .bind(release.by.token)
    .bind(&release.codebook)
    .bind(&release.sealed_distributions)
    .execute(&mut *connection)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    for (position, table) in (0..).zip(&release.tables) {
        insert_table(connection, release.id, position, table, written).await?;
    }
    insert_files(connection, release.id, &release.files).await?;
    for (index, part) in (0i32..).zip(&release.source_rows) {
        sqlx::query("INSERT INTO release_sources (release_id, index, sealed) VALUES ($1, $2, $3)")
            .bind(release.id)
            .bind(index)
            .bind(part)
            .execute(&mut *connection)
            .await?;
    }
    let pointer = if release.by.token.is_some() {
        "/job_id"
    } else {
        ""
    };
    policies::check_release(connection, release.organization, release.id, pointer).await?;
    let detail = json!({ "job_id": release.job, "step": release.step, "rows": release.rows });
    let (owner, by) = (release.organization, release.by);
    let event = NewEvent::of(owner, by, Action::ReleaseCreated, release.id.0, detail);
    audit::record(connection, release.created_at, event).await?;
    Ok(true)
}

async fn insert_table(
    connection: &mut PgConnection,
    release: ReleaseId,
    position: i32,
    table: &NewTable,
    written: &(dyn Fn() + Sync),
) -> Result<(), StoreError> {
    let content = table.content.as_ref();
    sqlx::query(
        "INSERT INTO release_tables (release_id, name, position, rows, columns, sha256, csv_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(release)
    .bind(&table.name)
    .bind(position)
    .bind(table.rows.cast_signed())
    .bind(Json(&table.columns))
    .bind(content.map(|content| content.sha256.as_slice()))
    .bind(content.map(|content| content.csv_bytes.cast_signed()))
    .execute(&mut *connection)
    .await?;
    let chunks = content.iter().flat_map(|content| &content.chunks);
    for (index, data) in (0i32..).zip(chunks) {
        sqlx::query(
            "INSERT INTO release_chunks (release_id, table_name, index, data)
             VALUES ($1, $2, $3, $4)",
        )
        .bind(release)
        .bind(&table.name)
        .bind(index)
        .bind(data)
        .execute(&mut *connection)
        .await?;
        written();
    }
    Ok(())
}

/// Writes the manifest of a release.
async fn insert_files(
    connection: &mut PgConnection,
    release: ReleaseId,
    files: &[NewReleaseFile],
) -> Result<(), StoreError> {
    for (position, file) in (0i32..).zip(files) {
        sqlx::query(
            "INSERT INTO release_files (release_id, position, table_name, name, rows, bytes, sha256)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(release)
        .bind(position)
        .bind(&file.table)
        .bind(&file.name)
        .bind(file.rows.cast_signed())
        .bind(file.bytes.cast_signed())
        .bind(file.sha256.as_slice())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Number of rows of a part.
const PART_ROWS: usize = 1 << 18;

/// Where the rows of a release come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceRows {
    /// The submissions of its job with their numbers of rows, in the order of the raw table.
    pub submissions: Vec<SubmissionRows>,
    /// The raw row of each row of its first table, numbered over these submissions.
    pub rows: Vec<u32>,
}

/// Seals the raw rows of a release's rows.
///
/// # Errors
/// When the operating system returns no random bytes.
pub(crate) fn seal_source_rows(
    key: &DataKey,
    release: ReleaseId,
    rows: &[u32],
) -> Result<Vec<Vec<u8>>, SealError> {
    let parts = (0u32..).zip(rows.chunks(PART_ROWS));
    let sealed = parts.map(|(index, rows)| {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        key.seal(SealedItem::SourceRows { release, index }, &bytes)
    });
    sealed.collect()
}

/// Where the rows of a release come from; `None` for a release of a deleted dataset.
///
/// # Errors
/// When the database fails, or the stored data is damaged.
pub(crate) async fn source_rows(
    store: &Store,
    key: &DataKey,
    release: ReleaseId,
) -> Result<Option<SourceRows>, StoreError> {
    let (expected, submissions): (i64, Option<Json<Vec<SubmissionRows>>>) =
        sqlx::query_as("SELECT rows, source_submissions FROM releases WHERE id = $1")
            .bind(release)
            .fetch_one(&mut *store.connection().await?)
            .await?;
    let Some(Json(submissions)) = submissions else {
        return Ok(None);
    };
    let mut rows = Vec::with_capacity(expected.max(0) as usize);
    let mut connection = store.connection().await?;
    let mut parts = sqlx::query_as::<_, (i32, Vec<u8>)>(
        "SELECT index, sealed FROM release_sources WHERE release_id = $1 ORDER BY index",
    )
    .bind(release)
    .fetch(&mut *connection);
    while let Some((index, sealed)) = parts.try_next().await? {
        let index = index.cast_unsigned();
        let bytes = key.open(SealedItem::SourceRows { release, index }, &sealed)?;
        let numbers = bytes.as_chunks::<4>().0.iter();
        rows.extend(numbers.map(|bytes| u32::from_le_bytes(*bytes)));
    }
    if rows.len() as i64 == expected {
        Ok(Some(SourceRows { submissions, rows }))
    } else if rows.is_empty() {
        // Deleted with its dataset since the key was read.
        Ok(None)
    } else {
        Err(StoreError::Damaged("the raw rows of a release"))
    }
}
