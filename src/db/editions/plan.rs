//! What the job of an edition has to decide, and what it has decided.

use std::collections::{BTreeMap, BTreeSet};

use pais_core::definition::{DatasetId, SubmissionId};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

use crate::db::publications::{self, Recipient};
use crate::db::releases::known_releases;
use crate::db::{Store, StoreError};
use crate::ids::{JobId, OrganizationId, PublicationId, ReleaseId};

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
        let releases = known_releases(&mut *connection, recipient.id, row.dataset_id, None, now);
        known.insert(recipient.id, releases.await?);
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
pub(in crate::db) async fn record(
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
