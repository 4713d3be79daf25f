//! Packages of releases: rendered once into the spool directory, as tables are.

use std::fs::File;
use std::io::{self, BufWriter, Cursor, Write};
use std::path::PathBuf;
use std::sync::Arc;

use pais_anonymize::Observer;
use pais_core::cancellation::Cancellation;
use pais_package::{KeyDocument, PackageError, PackageWriter, PackagedFile};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::db::StoreError;
use crate::db::releases::{StoredRelease, StoredTable};
use crate::engine::{WorkError, on_thread};
use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::storage::spool::UNFINISHED;

use super::{ApiError, App};
use crate::engine::data_package::{PackagedTable, descriptor};
use crate::engine::rendered_tables::unwritable;
use crate::engine::table_format::{Rendering, TableFormat};
use crate::engine::table_work::TableKind;

/// Memory of the packaging of a table beside its rendering, in bytes: blocks of files.
const PACKAGING_BYTES: u64 = 1 << 20;

/// What a package has beside the tables: the release and its report, as the caller may see them.
#[derive(Clone, Debug)]
pub struct PackageDocuments {
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
    pub fn digest(&self) -> String {
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
    writer: PackageWriter<CancellableFile>,
    tables: Vec<PackagedTable>,
}

impl App {
    /// The public key of the signatures of packages.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn signing_key(&self) -> Result<KeyDocument, ApiError> {
        let key = self.keys.signing_key().map_err(|_| unsigned())?;
        Ok(key.public().document())
    }

    /// The path of the file with the package of a release. Writes the file if it does not exist. The
    /// file may be removed at any time, but an open one stays readable.
    ///
    /// # Errors
    /// `busy`; `limit_exceeded` for more than 4 GiB; when the database or the disk fails.
    pub async fn render_package(
        &self,
        caller: Caller,
        documents: &PackageDocuments,
    ) -> Result<PathBuf, ApiError> {
        let directory = self.storage.spool.directory().to_owned();
        let path = directory.join(format!("package-{}.zip", documents.digest()));
        if tokio::fs::try_exists(&path).await.unwrap_or(false) {
            return Ok(path);
        }
        let key = self.keys.signing_key().map_err(|_| unsigned())?;
        let cancellation = Cancellation::new();
        let _stop = StopOnDrop(cancellation.clone());
        let mut package = on_thread(move || {
            let file = CancellableFile::new(&directory, cancellation)?;
            Ok(Unfinished {
                writer: PackageWriter::new(file),
                tables: Vec::new(),
            })
        })
        .await?;
        for (position, name) in documents.tables().enumerate() {
            let table = self.get_table(caller, documents.release.id, name).await?;
            package = self.package_table(package, position, table).await?;
        }
        let (documents, target) = (documents.clone(), path.clone());
        let storage = self.storage.clone();
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
        &self,
        mut package: Unfinished,
        position: usize,
        table: StoredTable,
    ) -> Result<Unfinished, ApiError> {
        let table = Arc::new(table);
        let stem = file_stem(&table.name, position);
        let mut files = Vec::with_capacity(2);
        for format in [TableFormat::Csv, TableFormat::Parquet] {
            let rendered = self.open_rendered(&table, format).await?;
            let guard = self
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
                return Err(StoreError::Damaged { what }.into());
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
        &self,
        table: &Arc<StoredTable>,
        format: TableFormat,
    ) -> Result<File, ApiError> {
        let rendering = Rendering::exact(format);
        for _ in 0..3 {
            let path = self.renderer().render(table, &rendering).await?;
            if let Ok(file) = tokio::fs::File::open(path).await {
                return Ok(file.into_std().await);
            }
        }
        let detail = "a table of the package could not be read; try again";
        Err(ApiError::new(Code::Unavailable, detail))
    }
}

/// Adds the documents and the manifest.
fn finish(
    package: Unfinished,
    documents: &PackageDocuments,
    key: &pais_package::SigningKey,
) -> Result<CancellableFile, WorkError> {
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

/// A temporary file that can be written until the request ends.
struct CancellableFile {
    file: BufWriter<NamedTempFile>,
    cancellation: Cancellation,
}

impl CancellableFile {
    fn new(directory: &std::path::Path, cancellation: Cancellation) -> Result<Self, WorkError> {
        let unwritable = |error: io::Error| unwritable(&error);
        std::fs::create_dir_all(directory).map_err(unwritable)?;
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(directory)
            .map_err(unwritable)?;
        Ok(Self {
            file: BufWriter::new(file),
            cancellation,
        })
    }

    fn into_inner(self) -> Result<NamedTempFile, WorkError> {
        let file = self.file.into_inner();
        file.map_err(|error| unwritable(error.error()))
    }
}

impl Write for CancellableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            Err(io::Error::other("stopped"))
        } else {
            self.file.write(bytes)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
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

fn unsigned() -> Problem {
    tracing::error!("the key that signs packages could not be made");
    Problem::new(Code::Internal, "the package could not be signed")
}
