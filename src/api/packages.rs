//! `/v1/releases/{id}/package` and the public key of packages.

use axum::Json;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use pais_core::cancellation::Cancellation;
use pais_io::FileFormat;
use pais_package::{PackageError, PackageWriter, SigningKey};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Cursor};
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::ToSchema;

use crate::db::StoreError;
use crate::db::releases::{StoredRelease, StoredTable};
use crate::engine::WorkError;
use crate::engine::data_package::{PackagedTable, descriptor};
use crate::engine::rendered_tables::SpooledFile;
use crate::engine::rendering::{Rendering, SpoolWriter, unwritable};
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};

use super::downloads::Download;
use super::error::ApiError;
use super::extract::{Path, ReleaseReader};
use super::releases::load_release;
use super::reports::get_packed_page;
use super::state::{App, AppState, CallerApp};
use super::tables::get_table;

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

/// The public key of the signatures of packages.
#[utoipa::path(get, path = "/.well-known/pais-signing-key.json", tag = "operation", security(()),
    responses((status = 200, description = "The key", body = SigningKeyDocument)))]
pub(super) async fn pais_signing_key(
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
        (status = 206, description = "The part that `Range` requests", content((Vec<u8> = "application/zip"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 409, description = "`release_in_files`: the rows are in the files of the release alone"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`limit_exceeded`: the package has more than 4 GiB, or a table needs more memory than there is"),
    ),
)]
pub(super) async fn package(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<ReleaseId>,
    request: Parts,
) -> Result<Response, ApiError> {
    let page = get_packed_page(&app, id).await?;
    let documents = PackageDocuments {
        release: load_release(&app, id).await?,
        report_page: page.render().into_bytes(),
        report: page.report,
    };
    let name = documents.release.name.clone();
    let download = Download {
        releases: vec![id],
        part: "package".to_owned(),
        tag: documents.digest(),
        content_type: "application/zip",
        stem: name.unwrap_or_else(|| id.to_string()),
        ending: "zip",
        is_negotiated: false,
    };
    let write = || render_package(&app, &documents);
    download.answer(&app, &request, write).await
}

/// Memory of the packaging of a table in addition to its rendering, in bytes: blocks of files.
const PACKAGING_BYTES: u64 = 1 << 20;

/// The documents of a package in addition to the tables: the release and its report, as the caller may see
/// them.
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

/// A table whose files are to be packaged.
struct RenderedTable {
    table: Arc<StoredTable>,
    csv: File,
    parquet: File,
}

/// The path of the file with the package of a release. Writes the file if it does not exist. The
/// file may be removed at any time, but an open one stays readable.
///
/// # Errors
/// `busy`; `limit_exceeded` for more than 4 GiB; when the database or the disk fails.
async fn render_package(
    app: &CallerApp,
    documents: &PackageDocuments,
) -> Result<PathBuf, ApiError> {
    let file = SpooledFile {
        name: format!("package-{}.zip", documents.digest()),
        owner: documents.release.organization,
        bytes: PACKAGING_BYTES,
    };
    let renderer = app.renderer();
    if let Some(path) = renderer.existing(&file.name).await {
        return Ok(path);
    }
    let key = signing_key(app)?;
    // Before the slot of the package: rendering takes a slot of its own.
    let mut tables = Vec::new();
    for name in documents.tables() {
        let table = Arc::new(get_table(app, documents.release.id, name).await?);
        tables.push(RenderedTable {
            csv: open_rendered(app, &table, FileFormat::CSV).await?,
            parquet: open_rendered(app, &table, FileFormat::Parquet).await?,
            table,
        });
    }
    let documents = documents.clone();
    let write = move |tables, out| write_package(out, tables, &documents, &key);
    Ok(renderer.spooled(file, async || Ok(tables), write).await?)
}

/// Writes the tables in both formats, the documents and the manifest.
fn write_package(
    file: SpoolWriter,
    tables: Vec<RenderedTable>,
    documents: &PackageDocuments,
    key: &SigningKey,
) -> Result<SpoolWriter, WorkError> {
    let cancellation = &file.cancellation().clone();
    let mut writer = PackageWriter::new(file);
    let mut packaged = Vec::with_capacity(tables.len());
    for (position, rendered) in tables.into_iter().enumerate() {
        let RenderedTable {
            table,
            csv,
            parquet,
        } = rendered;
        let stem = file_stem(&table.name, position);
        let mut add = |file, format: FileFormat| {
            let mut content = Cancellable { file, cancellation };
            let added = writer.add(&format!("{stem}.{}", format.as_str()), &mut content);
            added.map_err(unwritten)
        };
        let csv = add(csv, FileFormat::CSV)?;
        let parquet = add(parquet, FileFormat::Parquet)?;
        if csv.sha256 != table.sha256 {
            let what = "a released table";
            return Err(StoreError::Damaged(what).into());
        }
        packaged.push(PackagedTable {
            table: Arc::unwrap_or_clone(table),
            csv,
            parquet,
        });
    }
    let json = |value: &Value| serde_json::to_vec_pretty(value).map_err(StoreError::from);
    let package = json(&descriptor(&documents.release, &packaged)?)?;
    for (name, content) in [
        ("datapackage.json", package),
        ("report.json", json(&documents.report)?),
        ("report.html", documents.report_page.clone()),
    ] {
        let added = writer.add(name, &mut Cursor::new(content));
        added.map_err(unwritten)?;
    }
    let id = documents.release.id.to_string();
    writer.finish(&id, key).map_err(unwritten)
}

/// A rendered table. It is rendered again if it was removed before it was opened.
async fn open_rendered(
    app: &CallerApp,
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

/// The name of the files of a table without their ending. A name that is not valid in every file system gets
/// the table's number.
fn file_stem(table: &str, position: usize) -> String {
    let is_safe = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    let stem: String = table.chars().take(100).filter(is_safe).collect();
    if stem == table {
        stem
    } else {
        format!("{stem}-{position}")
    }
}

/// A file that can be read until the work is stopped.
struct Cancellable<'c> {
    file: File,
    cancellation: &'c Cancellation,
}

impl io::Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

impl io::Seek for Cancellable<'_> {
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
