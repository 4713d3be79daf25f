//! `/v1/releases/{id}/package` and the public key of packages.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headers::{ETag, HeaderMapExt};
use pais_anonymize::Observer;
use pais_core::cancellation::Cancellation;
use pais_io::FileFormat;
use pais_package::{PackageError, PackageWriter, PackagedFile};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Cursor};
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::StoreError;
use crate::db::releases::{StoredRelease, StoredTable};
use crate::engine::data_package::{PackagedTable, descriptor};
use crate::engine::rendered_tables::{Rendering, SpoolWriter, unwritable};
use crate::engine::table_work::TableKind;
use crate::engine::{WorkError, on_thread};
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::error::{ApiError, internal_error};
use super::extract::{HolderOrRecipient, Path};
use super::releases::load_release;
use super::reports::get_packed_page;
use super::response::permitted_body::while_permitted;
use super::response::served_file::{is_cached, requested_range, serve_file, unservable};
use super::state::{App, AppState};
use super::tables::{get_table, may_still_read};
use crate::db::releases;
use pais_package::SigningKey;

/// The media type of a package.
const ZIP: &str = "application/zip";

/// The public key that verifies the signatures of packages, as a JSON Web Key (RFC 8037).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SigningKeyDocument {
    /// `OKP`.
    kty: String,
    /// `Ed25519`.
    crv: String,
    /// The key: 32 bytes in base64url without padding.
    x: String,
    /// `EdDSA`.
    alg: &'static str,
    /// `sig`.
    #[serde(rename = "use")]
    usage: &'static str,
}

/// The routes of packages.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(package))
}

/// The route of the public key, which needs no token.
pub(super) fn key_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(pais_signing_key))
}

/// The public key of the signatures of packages.
#[utoipa::path(get, path = "/.well-known/pais-signing-key.json", tag = "operation", security(()),
    responses((status = 200, description = "The key", body = SigningKeyDocument)))]
async fn pais_signing_key(
    State(state): State<AppState>,
) -> Result<Json<SigningKeyDocument>, ApiError> {
    let key = signing_key(state.unscoped())?.public().document();
    Ok(Json(SigningKeyDocument {
        kty: key.kty,
        crv: key.crv,
        x: key.x,
        alg: "EdDSA",
        usage: "sig",
    }))
}

/// Fetch a release as one signed file.
///
/// A zip with the tables as CSV and Parquet, `datapackage.json` (Frictionless Data Package, version
/// 1), the report as JSON and as a page, and `manifest.json` with the SHA-256 of each file and an
/// Ed25519 signature. `pais verify-package` checks it.
#[utoipa::path(
    get, path = "/v1/releases/{id}/package", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 200, description = "The package", content((Vec<u8> = "application/zip")),
         headers(("ETag" = String, description = "Changes with the report, the purpose of the grant and the version of the service"))),
        (status = 206, description = "The part asked for by `Range`", content((Vec<u8> = "application/zip"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`limit_exceeded`: the package has more than 4 GiB, or a table needs more memory than there is"),
    ),
)]
async fn package(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(id): Path<ReleaseId>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let app = state.of(caller);
    let (owner, page) = get_packed_page(&app, caller, id).await?;
    let documents = PackageDocuments {
        release: load_release(&app.db, caller, id).await?,
        report_page: page.render().into_bytes(),
        report: page.report,
    };
    let etag: ETag = format!("\"{}\"", documents.digest())
        .parse()
        .map_err(|_| internal_error())?;
    let name = documents.release.name.as_deref();
    let disposition = disposition(name, id);
    if is_cached(&headers, &etag) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(response.headers_mut(), etag, &disposition);
        return Ok(response);
    }
    let is_get = method == Method::GET;
    let range = requested_range(&headers, &etag).filter(|_| is_get);
    // The file may be removed before it is opened; then it is written again.
    for _ in 0..3 {
        let path = render_package(&app, caller, &documents).await?;
        let Some(mut response) = serve_file(path, &method, range.clone()).await? else {
            continue;
        };
        if !response.status().is_success() {
            return Ok(response);
        }
        describe(response.headers_mut(), etag, &disposition);
        if is_get {
            releases::record_fetch(&app.db, caller, owner, id, "package").await?;
        }
        let tables = documents.release.tables.as_array();
        let first = tables.and_then(|tables| tables.first()?["name"].as_str());
        let (app, table) = (app.clone(), first.unwrap_or_default().to_owned());
        return Ok(response.map(|body: Body| {
            while_permitted(body, move || {
                let (app, table) = (app.clone(), table.clone());
                async move { may_still_read(&app, caller, id, &table).await }
            })
        }));
    }
    Err(unservable())
}

/// Sets the headers that describe a package.
fn describe(headers: &mut HeaderMap, etag: ETag, disposition: &str) {
    headers.remove(header::LAST_MODIFIED);
    headers.typed_insert(etag);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ZIP));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
}

/// A file name that is valid in every file system and in a header.
fn disposition(name: Option<&str>, id: ReleaseId) -> String {
    let id = id.to_string();
    let safe = |char: char| match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => char,
        _ => '_',
    };
    let stem: String = name.unwrap_or(&id).chars().take(100).map(safe).collect();
    format!("attachment; filename=\"{stem}.zip\"")
}

/// Memory of the packaging of a table beside its rendering, in bytes: blocks of files.
const PACKAGING_BYTES: u64 = 1 << 20;

/// What a package has beside the tables: the release and its report, as the caller may see them.
#[derive(Clone, Debug)]
pub(crate) struct PackageDocuments {
    /// The release.
    pub release: StoredRelease,
    /// Its report.
    pub report: Value,
    /// Its report as a page.
    pub report_page: Vec<u8>,
}

impl PackageDocuments {
    /// The digest of everything that decides the bytes of the package: these documents, the tables,
    /// which do not change, and the version of the program, which writes them.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let release = &self.release;
        for part in [
            release.id.to_string().as_bytes(),
            env!("CARGO_PKG_VERSION").as_bytes(),
            release.purpose.as_deref().unwrap_or_default().as_bytes(),
            self.report.to_string().as_bytes(),
            &self.report_page,
        ] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        hex::encode(digest.finalize())
    }

    fn tables(&self) -> impl Iterator<Item = &str> {
        let tables = self.release.tables.as_array().into_iter().flatten();
        tables.filter_map(|table| table["name"].as_str())
    }
}

/// A package that is being written.
struct Unfinished {
    writer: PackageWriter<SpoolWriter>,
    tables: Vec<PackagedTable>,
}

/// The path of the file with the package of a release. Writes the file if it does not exist. The
/// file may be removed at any time, but an open one stays readable.
///
/// # Errors
/// `busy`; `limit_exceeded` for more than 4 GiB; when the database or the disk fails.
async fn render_package(
    app: &App,
    caller: Caller,
    documents: &PackageDocuments,
) -> Result<PathBuf, ApiError> {
    let directory = app.storage.spool.directory().to_owned();
    let path = directory.join(format!("package-{}.zip", documents.digest()));
    if tokio::fs::try_exists(&path).await.unwrap_or(false) {
        return Ok(path);
    }
    let key = signing_key(app)?;
    let cancellation = Cancellation::new();
    let _stop = StopOnDrop(cancellation.clone());
    let mut package = on_thread(move || {
        let file = SpoolWriter::new(&directory, cancellation)?;
        Ok(Unfinished {
            writer: PackageWriter::new(file),
            tables: Vec::new(),
        })
    })
    .await?;
    for (position, name) in documents.tables().enumerate() {
        let table = get_table(app, caller, documents.release.id, name).await?;
        package = package_table(app, package, position, table).await?;
    }
    let (documents, target) = (documents.clone(), path.clone());
    let storage = app.storage.clone();
    let finishing = on_thread(move || {
        let file = finish(package, &documents, &key)?;
        let file = file.into_inner()?;
        file.persist(&target)
            .map_err(|error| unwritable(&error.error))?;
        let removed = storage.spool.remove_oldest(&target);
        removed.map_err(|error| unwritable(&error))
    });
    finishing.await?;
    Ok(path)
}

/// Adds a table in both formats.
async fn package_table(
    app: &App,
    mut package: Unfinished,
    position: usize,
    table: StoredTable,
) -> Result<Unfinished, ApiError> {
    let table = Arc::new(table);
    let stem = file_stem(&table.name, position);
    let mut files = Vec::with_capacity(2);
    for format in [FileFormat::CSV, FileFormat::Parquet] {
        let rendered = open_rendered(app, &table, format).await?;
        let guard = app
            .tables
            .begin(TableKind::Released, table.organization, PACKAGING_BYTES);
        let guard = guard.await?;
        let (work, name) = (guard.share(), format!("{stem}.{}", format.as_str()));
        let adding = on_thread(move || {
            let mut rendered = Cancellable {
                file: rendered,
                cancellation: work.cancellation().clone(),
            };
            let file = package.writer.add(&name, &mut rendered);
            let file = file.map_err(unwritten)?;
            Ok((package, file))
        });
        let file: PackagedFile;
        (package, file) = adding.await?;
        drop(guard);
        files.push(file);
    }
    if let [csv, parquet] = &files[..] {
        if csv.sha256 != table.sha256 {
            let what = "a released table";
            return Err(StoreError::Damaged(what).into());
        }
        package.tables.push(PackagedTable {
            table: StoredTable::clone(&table),
            csv: csv.clone(),
            parquet: parquet.clone(),
        });
    }
    Ok(package)
}

/// A rendered table. It is rendered again if it was removed before it was opened.
async fn open_rendered(
    app: &App,
    table: &Arc<StoredTable>,
    format: FileFormat,
) -> Result<File, ApiError> {
    let rendering = Rendering::exact(format);
    for _ in 0..3 {
        let path = app.renderer().render(table, &rendering).await?;
        if let Ok(file) = tokio::fs::File::open(path).await {
            return Ok(file.into_std().await);
        }
    }
    let detail = "a table of the package could not be read; try again";
    Err(ApiError::new(Code::Unavailable, detail))
}

/// Adds the documents and the manifest.
fn finish(
    package: Unfinished,
    documents: &PackageDocuments,
    key: &SigningKey,
) -> Result<SpoolWriter, WorkError> {
    let Unfinished { mut writer, tables } = package;
    let json = |value: &Value| serde_json::to_vec_pretty(value).map_err(StoreError::from);
    for (name, content) in [
        (
            "datapackage.json",
            json(&descriptor(&documents.release, &tables))?,
        ),
        ("report.json", json(&documents.report)?),
        ("report.html", documents.report_page.clone()),
    ] {
        writer
            .add(name, &mut Cursor::new(content))
            .map_err(unwritten)?;
    }
    let id = documents.release.id.to_string();
    writer.finish(&id, key).map_err(unwritten)
}

/// The name of the files of a table without their ending. A name that is not one in every file system
/// gets the table's number.
fn file_stem(table: &str, position: usize) -> String {
    let is_safe = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    let stem: String = table
        .chars()
        .take(100)
        .filter(|&char| is_safe(char))
        .collect();
    if stem == table {
        stem
    } else {
        format!("{stem}-{position}")
    }
}

/// Stops the writing when the request ends.
struct StopOnDrop(Cancellation);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A file that can be read until the work is stopped.
struct Cancellable {
    file: File,
    cancellation: Cancellation,
}

impl io::Read for Cancellable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

impl io::Seek for Cancellable {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn unwritten(error: PackageError) -> WorkError {
    match error {
        PackageError::Io(error) => unwritable(&error),
        PackageError::TooLarge => {
            let detail = "the package would have more than 4 GiB or 4,095 files; fetch the tables \
                          one by one";
            Problem::new(Code::LimitExceeded, detail).into()
        }
        error => {
            tracing::error!(%error, "a package could not be written");
            Problem::new(Code::Internal, "the package could not be written").into()
        }
    }
}

/// The key that signs packages.
fn signing_key(app: &App) -> Result<SigningKey, Problem> {
    app.keys.signing_key().map_err(|_| {
        tracing::error!("the key that signs packages could not be made");
        Problem::new(Code::Internal, "the package could not be signed")
    })
}
