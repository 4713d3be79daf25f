//! Rendered tables on disk: each is rendered once, their total size is limited, and the oldest are
//! removed first.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pais_core::table::ReleasedTable;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::problem::{Code, Problem};
use crate::store::StoreError;
use crate::store::releases::{self, StoredTable};
use crate::worker::{WorkError, on_thread, release_packing};

use super::table_format::{Rendering, TableFormat};
use super::table_permits::TableKind;
use super::{Service, ServiceError};

/// Maximum total size of the rendered tables, in bytes.
const MAX_TOTAL_BYTES: u64 = 4 << 30;

/// The age at which a temporary file is taken to belong to a process that died.
const STALE: Duration = Duration::from_secs(60 * 60);

/// Prefix of the temporary files.
const UNFINISHED: &str = "unfinished-";

impl Service {
    /// The path of the file with a released table in a format. Renders the file if it does not
    /// exist. The file may be removed at any time, but an open one stays readable.
    ///
    /// # Errors
    /// When the database or the disk fails.
    pub async fn render_table(
        &self,
        table: &Arc<StoredTable>,
        rendering: Rendering,
    ) -> Result<PathBuf, ServiceError> {
        // The version is part of the entity tag of a table, because another version of the program
        // may write other bytes. So it is part of the file name, too.
        let name = format!(
            "{}-{}-{}.{}",
            table.release,
            table.position,
            env!("CARGO_PKG_VERSION"),
            rendering.file_ending()
        );
        let path = self.spool.join(name);
        if exists(&path).await {
            return Ok(path);
        }
        let permit = self.permits.acquire(TableKind::Released).await?;
        // Another request may have rendered it while this one waited.
        if exists(&path).await {
            return Ok(path);
        }
        let mut chunks = Vec::new();
        while let Some(chunk) = releases::chunk(&self.store, table, chunks.len() as u32).await? {
            chunks.push(chunk);
        }
        let (target, stored) = (path.clone(), table.clone());
        on_thread(move || {
            let _permit = permit;
            let table = release_packing::unpack(&stored, chunks)?;
            render(&table, rendering, &stored.sha256, &target)?;
            remove_oldest(&target).map_err(|error| unwritable(&error))
        })
        .await?;
        Ok(path)
    }
}

async fn exists(path: &Path) -> bool {
    tokio::fs::try_exists(path).await.unwrap_or(false)
}

/// Renders a table into a temporary file and renames it to `target`, so that an incomplete table is
/// never served.
fn render(
    table: &ReleasedTable,
    rendering: Rendering,
    sha256: &str,
    target: &Path,
) -> Result<(), WorkError> {
    let directory = target.parent().unwrap_or(Path::new("."));
    let unwritable = |error: io::Error| unwritable(&error);
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    let file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(directory)
        .map_err(unwritable)?;
    let mut out = DigestingFile {
        // Tables are rendered in blocks larger than this buffer, which they bypass.
        file: BufWriter::with_capacity(64 << 10, file),
        hasher: (rendering == Rendering::Exact(TableFormat::Csv)).then(Sha256::new),
    };
    let written = match rendering {
        Rendering::Exact(TableFormat::Csv) => table.write_csv(&mut out),
        Rendering::Exact(TableFormat::Ndjson) => table.write_ndjson(&mut out),
        Rendering::Exact(TableFormat::Parquet) => table.write_parquet(&mut out),
        Rendering::SafeCsv => table.write_safe_csv(&mut out),
    };
    written.map_err(unwritable)?;
    let file: NamedTempFile = out
        .file
        .into_inner()
        .map_err(|error| unwritable(error.into_error()))?;
    if let Some(hasher) = out.hasher
        && hex::encode(hasher.finalize()) != sha256
    {
        return Err(StoreError::Damaged {
            what: "a released table",
        }
        .into());
    }
    file.persist(target)
        .map_err(|error| unwritable(error.error))?;
    Ok(())
}

/// Removes stale temporary files, and the oldest rendered files until the rest is within
/// [`MAX_TOTAL_BYTES`]. Never removes `newest`.
fn remove_oldest(newest: &Path) -> io::Result<()> {
    let Some(directory) = newest.parent() else {
        return Ok(());
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // Another request may have removed the file meanwhile.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if !metadata.is_file() {
            continue;
        }
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if unfinished && modified.elapsed().unwrap_or_default() > STALE {
            let _ = std::fs::remove_file(entry.path());
        } else if !unfinished {
            files.push((modified, metadata.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in files {
        if total <= MAX_TOTAL_BYTES {
            break;
        }
        if path != newest && std::fs::remove_file(&path).is_ok() {
            total -= bytes;
        }
    }
    Ok(())
}

/// A file, and for CSV the SHA-256 of what is written to it: the stored digest is that of the CSV.
struct DigestingFile {
    file: BufWriter<NamedTempFile>,
    hasher: Option<Sha256>,
}

impl Write for DigestingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn unwritable(error: &io::Error) -> WorkError {
    tracing::error!(%error, "a table could not be rendered into the spool directory");
    Problem::new(
        Code::Unavailable,
        "the table could not be rendered; the service's disk may be full",
    )
    .into()
}
