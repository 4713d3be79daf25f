//! The storage of a new release, with its tables and its event in the audit log.

use pais_core::definition::{DatasetId, JobDefinition, SuppressionFor};
use pais_core::model::MissingSensitive;
use pais_core::warning::Warning;
use serde_json::{Value, json};
use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;

use crate::ids::{JobId, OrganizationId, ReleaseId};

use super::audit::{self, Action, Actor, NewEvent, Outcome};
use super::release_sources::{self, SealedSourceRows};
use super::submissions::lock_dataset;
use super::{Store, StoreError, token_validity};

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
    /// A display name.
    pub name: Option<String>,
    /// The step of the run that it publishes.
    pub step: Option<u32>,
    /// The token that requested it; `None` if the job itself creates it at its end.
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
    /// What a reader should know about it.
    pub warnings: Vec<Warning>,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// Its tables, in order.
    pub tables: Vec<NewTable>,
    /// The shares of raw values and labels in each column, sealed; `None` where there are none.
    pub sealed_distributions: Option<Vec<u8>>,
    /// The raw row of each row of the first table, in sealed parts.
    pub source_rows: Vec<SealedSourceRows>,
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

/// A table of a release to be stored.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// `data`, `qit` or `st_<column>`.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// The names and types of its columns.
    pub columns: Value,
    /// SHA-256 of the CSV as served.
    pub sha256: [u8; 32],
    /// Size of the CSV as served.
    pub csv_bytes: u64,
    /// The rows in chunks, each with its number of rows.
    pub chunks: Vec<(u32, Vec<u8>)>,
}

/// The result of [`create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseCreation {
    /// The release is stored.
    Stored,
    /// The dataset was deleted meanwhile.
    NoDataset,
    /// The token of the request was revoked or has expired meanwhile.
    TokenEnded,
}

/// Stores a release that a holder requested.
///
/// # Errors
/// When the database fails.
pub async fn create(store: &Store, release: &NewRelease) -> Result<ReleaseCreation, StoreError> {
    let mut transaction = store.begin().await?;
    if let Some(token) = release.by.token
        && !token_validity::lock_valid(&mut transaction, token, store.now()).await?
    {
        return Ok(ReleaseCreation::TokenEnded);
    }
    if insert(&mut transaction, release, &|_| {}).await?.is_none() {
        return Ok(ReleaseCreation::NoDataset);
    }
    transaction.commit().await?;
    Ok(ReleaseCreation::Stored)
}

/// Stores a release and calls `written` with the number of rows of each chunk. Returns `None`, and
/// stores nothing, if its dataset was deleted meanwhile or its job has already created its release.
///
/// # Errors
/// When the database fails.
pub(super) async fn insert(
    connection: &mut PgConnection,
    release: &NewRelease,
    written: &(dyn Fn(u64) + Sync),
) -> Result<Option<()>, StoreError> {
    if !lock_dataset(connection, release.dataset).await? {
        return Ok(None);
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
        return Ok(None);
    }
    for (position, table) in (0..).zip(&release.tables) {
        insert_table(connection, release.id, position, table, written).await?;
    }
    release_sources::insert(connection, release.id, &release.source_rows).await?;
    let event = NewEvent {
        organization: release.organization,
        actor: release.by,
        action: Action::ReleaseCreated,
        subject: release.id.0,
        detail: json!({ "job_id": release.job, "step": release.step, "rows": release.rows }),
        outcome: Outcome::Done,
    };
    audit::record(connection, release.created_at, event).await?;
    Ok(Some(()))
}

async fn insert_table(
    connection: &mut PgConnection,
    release: ReleaseId,
    position: i32,
    table: &NewTable,
    written: &(dyn Fn(u64) + Sync),
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO release_tables (release_id, name, position, rows, columns, sha256, csv_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(release)
    .bind(&table.name)
    .bind(position)
    .bind(table.rows.cast_signed())
    .bind(&table.columns)
    .bind(table.sha256.as_slice())
    .bind(table.csv_bytes.cast_signed())
    .execute(&mut *connection)
    .await?;
    for (index, (rows, data)) in (0..).zip(&table.chunks) {
        let index: i32 = index;
        sqlx::query(
            "INSERT INTO release_chunks (release_id, table_name, index, rows, data)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(release)
        .bind(&table.name)
        .bind(index)
        .bind(rows.cast_signed())
        .bind(data)
        .execute(&mut *connection)
        .await?;
        written(u64::from(*rows));
    }
    Ok(())
}
