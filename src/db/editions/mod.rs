//! Editions: the releases of a publication, one after the other.
//!
//! An edition and its job are queued in one transaction. Its release, the decisions about held-back rows and
//! the waiting rows are written when the job ends. `settle` does the rest, each edition in one
//! transaction: it fails with its job, waits for approval, is refused, or is published with the grants
//! of all recipients. The process that settles an edition locks the publication, the edition and its release,
//! so that it is published once or not at all, and neither deleted nor withdrawn meanwhile.

use pais_core::definition::SubmissionId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::ids::{JobId, OrganizationId, PublicationId, ReleaseId};
use crate::problem::ProblemDocument;

use super::releases::{Viewer, seen_by, visible};
use super::{Store, StoreError};

mod plan;
mod queue;
mod settling;

pub use plan::DecidedEdition;
pub(super) use plan::record;
pub(crate) use plan::{EditionPlan, is_edition, plan};
pub(crate) use queue::{Cause, EditionQueue, Queueing, queue};
pub(crate) use settling::settle;

/// States of an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum EditionStatus {
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
    /// When its release was withdrawn; absent where it is not. Recipients do not get a withdrawn edition.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    pub withdrawn_at: Option<OffsetDateTime>,
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

/// The editions of a publication of an organization after number `after`, oldest first, at most
/// `limit`.
pub(crate) async fn list(
    store: &Store,
    organization: OrganizationId,
    publication: PublicationId,
    after: u32,
    limit: i64,
) -> Result<Vec<Edition>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT e.number, e.job_id, e.release_id, e.held_back_rows, e.is_base, e.created_at,
                e.published_at, r.withdrawn_at, e.error, r.rows, j.started_at IS NOT NULL AS has_run,
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
         WHERE e.publication_id = $1 AND e.organization_id = $2 AND e.number > $3
         ORDER BY e.number LIMIT $4",
    )
    .bind(publication)
    .bind(organization)
    .bind(i64::from(after))
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
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
