//! The files of releases: their manifests and their folders.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::ids::{OrganizationId, ReleaseId};

use super::claims::Claim;
use super::releases::{Viewer, seen_by, visible};
use super::{RowScope, Store, StoreError};

/// How long the folder of an attempt that made no release is checked again: after that, no worker whose lease
/// has ended can still write into it.
const LATE_WRITES: time::Duration = time::Duration::DAY;

/// Records, before the first file of a release is written, where they will be.
pub(crate) async fn announce_files(
    store: &Store,
    claim: &Claim,
    release: ReleaseId,
    url: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO release_locations
             (release_id, organization_id, job_id, lease_token, url, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(release)
    .bind(claim.organization)
    .bind(claim.job)
    .bind(claim.token)
    .bind(url)
    .bind(store.now())
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(())
}

/// A file of a release.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
#[schema(as = ReleaseFileDocument)]
pub(crate) struct ReleaseFile {
    /// Its place among the release's files, from 0.
    #[serde(skip)]
    #[sqlx(try_from = "i32")]
    pub position: u32,
    /// The table that it has rows of.
    pub table: String,
    /// Its name, for `GET /v1/releases/{id}/files/{name}`.
    pub name: String,
    /// Number of its rows.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Its size, in bytes.
    #[sqlx(try_from = "i64")]
    pub bytes: u64,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

macro_rules! file_columns {
    () => {
        "f.position, f.table_name AS \"table\", f.name, f.rows, f.bytes,
         encode(f.sha256, 'hex') AS sha256"
    };
}

/// Whether a release is withdrawn; `None` if the viewer cannot read it.
pub(crate) async fn is_withdrawn(
    store: &Store,
    viewer: Viewer,
    release: ReleaseId,
) -> Result<Option<bool>, StoreError> {
    Ok(sqlx::query_scalar(concat!(
        "SELECT r.withdrawn_at IS NOT NULL FROM releases r WHERE r.id = $4 AND ",
        visible!()
    ))
    .bind(viewer.is_holder())
    .bind(viewer.organization())
    .bind(store.now())
    .bind(release)
    .fetch_optional(&mut *store.connection().await?)
    .await?)
}

/// The files of a release that the viewer can read, from number `from` on, at most `limit`.
pub(crate) async fn files(
    store: &Store,
    viewer: Viewer,
    release: ReleaseId,
    from: u32,
    limit: i64,
) -> Result<Vec<ReleaseFile>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT ",
        file_columns!(),
        " FROM release_files f JOIN releases r ON r.id = f.release_id
         WHERE r.id = $4 AND f.position >= $5 AND ",
        visible!(),
        " ORDER BY f.position LIMIT $6"
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(release)
        .bind(i64::from(from))
        .bind(limit)
        .fetch_all(&mut *store.connection().await?)
        .await?)
}

/// A file of a release by its name; `None` if there is none or the viewer cannot read the release.
pub(crate) async fn file(
    store: &Store,
    viewer: Viewer,
    release: ReleaseId,
    name: &str,
) -> Result<Option<ReleaseFile>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT ",
        file_columns!(),
        " FROM release_files f JOIN releases r ON r.id = f.release_id
         WHERE r.id = $4 AND f.name = $5 AND ",
        visible!()
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(release)
        .bind(name)
        .fetch_optional(&mut *store.connection().await?)
        .await?)
}

/// The folder of the files of a release.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct ReleaseFolder {
    /// The release, which may never have been stored.
    pub release: ReleaseId,
    /// The organization that holds it.
    pub organization: OrganizationId,
    /// The folder that the job names.
    pub url: String,
}

macro_rules! folder {
    () => {
        "SELECT l.release_id AS release, l.organization_id AS organization, l.url
         FROM release_locations l "
    };
}

/// The folder of the files of a release that the caller was found to see; `None` for one without files.
pub(crate) async fn folder(
    store: &Store,
    release: ReleaseId,
) -> Result<Option<ReleaseFolder>, StoreError> {
    // Where the files are is not for recipients, who fetch them from the service.
    let mut connection = store.within(RowScope::Service).connection().await?;
    Ok(
        sqlx::query_as(concat!(folder!(), "WHERE l.release_id = $1"))
            .bind(release)
            .fetch_optional(&mut *connection)
            .await?,
    )
}

/// The folders of attempts that ended without a release, and of withdrawn releases.
pub(crate) async fn folders_to_remove(store: &Store) -> Result<Vec<ReleaseFolder>, StoreError> {
    Ok(sqlx::query_as(concat!(
        folder!(),
        "LEFT JOIN releases r ON r.id = l.release_id
         WHERE l.removed_at IS NULL AND CASE WHEN r.id IS NULL THEN NOT EXISTS (
                        SELECT FROM jobs j WHERE j.id = l.job_id AND j.status = 'running'
                        AND j.lease_token = l.lease_token)
                    ELSE r.withdrawn_at IS NOT NULL END",
    ))
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// Records that the files of a folder are removed. The folder of an attempt is forgotten when nobody can write
/// into it any more.
pub(crate) async fn record_removal(store: &Store, release: ReleaseId) -> Result<(), StoreError> {
    let now = store.now();
    sqlx::query(
        "WITH withdrawn AS (
             UPDATE release_locations l SET removed_at = $2
             WHERE l.release_id = $1 AND EXISTS (SELECT FROM releases r WHERE r.id = $1)
         )
         DELETE FROM release_locations l
         WHERE l.release_id = $1 AND l.created_at < $3
           AND NOT EXISTS (SELECT FROM releases r WHERE r.id = $1)",
    )
    .bind(release)
    .bind(now)
    .bind(now - LATE_WRITES)
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(())
}
