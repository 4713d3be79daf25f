//! `/v1/releases/{id}/files`: the files of a release that were written to its holder's location.

use std::io::Write;
use std::path::PathBuf;

use axum::Json;
use axum::http::request::Parts;
use axum::response::Response;
use pais_io::FileFormat;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::Handle;

use crate::db::release_files::{self, ReleaseFile};
use crate::db::releases;
use crate::engine::rendered_tables::SpooledFile;
use crate::engine::rendering::{SpoolWriter, unwritable};
use crate::engine::{WorkError, locations};
use crate::ids::{OrganizationId, ReleaseId};
use crate::storage::object_stores::LocationError;

use super::downloads::Download;
use super::error::ApiError;
use super::extract::{Parameters, Path, ReleaseReader};
use super::page::{NumberedPageQuery, Page, PageRequest};
use super::releases::viewer;
use super::state::CallerApp;

/// Memory of the fetch of a file, in bytes: blocks of it.
const FETCH_BYTES: u64 = 1 << 20;

/// Bytes that are read and written at once.
const BLOCK_BYTES: usize = 128 << 10;

/// List the files of a release
///
/// The files that its job has written to `release.location`: Parquet files that together have the rows of its
/// tables, in the order of the rows. None for a release without a location: its tables are at
/// `/v1/releases/{id}/data` and `/tables/{table}`, as those of every release but one whose rows an
/// executor has counted, which are in the files alone.
#[utoipa::path(
    get, path = "/v1/releases/{id}/files", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), NumberedPageQuery),
    responses(
        (status = 200, description = "A page of files", body = Page<ReleaseFile>),
        (status = 410, description = "`withdrawn`"),
    ),
)]
pub(super) async fn list(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<ReleaseId>,
    Parameters(query): Parameters<NumberedPageQuery>,
) -> Result<Json<Page<ReleaseFile>>, ApiError> {
    let page: PageRequest<u32> = query.parse()?;
    let viewer = viewer(app.caller);
    match release_files::is_withdrawn(&app.db, viewer, id).await? {
        None => return Err(ApiError::not_found()),
        Some(true) => return Err(ApiError::withdrawn()),
        Some(false) => {}
    }
    let (first, limit) = (page.first(), page.rows_to_query());
    let rows = release_files::files(&app.db, viewer, id, first, limit).await?;
    Ok(Json(Page::new(rows, page, |file| file.position)))
}

/// Fetch a file of a release
///
/// The service reads it from the location and sends it when its SHA-256 is that of the manifest.
#[utoipa::path(
    get, path = "/v1/releases/{id}/files/{name}", tag = "releases",
    params(
        ("id" = ReleaseId, Path, description = "The release"),
        ("name" = String, Path, description = "The name of one of its files"),
    ),
    responses(
        (status = 200, description = "The file", content((Vec<u8> = "application/vnd.apache.parquet")),
         headers(("ETag" = String, description = "Changes never"))),
        (status = 206, description = "The part that `Range` requests", content((Vec<u8> = "application/vnd.apache.parquet"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 409, description = "`location_changed`: the file at the location is gone, or another one"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 503, description = "`location_unavailable`"),
    ),
)]
pub(super) async fn file(
    ReleaseReader(app): ReleaseReader,
    Path((id, name)): Path<(ReleaseId, String)>,
    request: Parts,
) -> Result<Response, ApiError> {
    // PostgreSQL rejects NUL in text, and no file's name contains it.
    if name.contains('\0') {
        return Err(ApiError::not_found());
    }
    let file = release_files::file(&app.db, viewer(app.caller), id, &name).await?;
    let file = file.ok_or_else(ApiError::not_found)?;
    let place = releases::table_place(&app.db, viewer(app.caller), id, &file.table).await?;
    let place = place.ok_or_else(ApiError::not_found)?;
    if place.is_withdrawn {
        return Err(ApiError::withdrawn());
    }
    let format = FileFormat::Parquet;
    let ending = format.as_str();
    let stem = name.strip_suffix(&format!(".{ending}"));
    let download = Download {
        releases: vec![id],
        part: format!("files/{name}"),
        tag: file.sha256.clone(),
        content_type: format.media_type(),
        stem: stem.unwrap_or(&name).to_owned(),
        ending,
        is_negotiated: false,
    };
    let fetch = || fetch(&app, place.organization, id, &file);
    download.answer(&app, &request, fetch).await
}

/// The path of a copy of the file in the spool directory, which is made if it does not exist. The copy may be
/// removed at any time, but an open one stays readable.
async fn fetch(
    app: &CallerApp,
    owner: OrganizationId,
    release: ReleaseId,
    file: &ReleaseFile,
) -> Result<PathBuf, ApiError> {
    let spooled = SpooledFile {
        name: format!("file-{release}-{}", file.name),
        owner,
        bytes: FETCH_BYTES,
    };
    let load = async || locations::open_file(&app.db, &app.storage, release, file).await;
    let expected = file.sha256.clone();
    let write = move |source, mut out| {
        if hex::encode(copy(source, &mut out)?) != expected {
            return Err(LocationError::FileChanged.into());
        }
        Ok(out)
    };
    Ok(app.renderer().spooled(spooled, load, write).await?)
}

/// Copies the file. Returns its SHA-256.
fn copy(mut source: impl AsyncRead + Unpin, out: &mut SpoolWriter) -> Result<[u8; 32], WorkError> {
    let runtime = Handle::current();
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let read = runtime.block_on(source.read(&mut block));
        let read = read.map_err(|_| LocationError::Unavailable)?;
        if read == 0 {
            return Ok(hasher.finalize().into());
        }
        hasher.update(&block[..read]);
        let written = out.write_all(&block[..read]);
        written.map_err(|error| unwritable(&error))?;
    }
}
