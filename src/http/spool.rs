//! Rendered tables on disk while they are served: made once, bounded, the oldest removed.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::problem::{Code, Problem};
use crate::store::StoreError;
use crate::store::releases::{self, StoredTable};
use crate::worker::{WorkError, on_thread, release_packing};
use pais_core::table::ReleasedTable;

use super::{ApiError, AppState, bulk};

/// Bytes of rendered tables that are kept.
const KEPT_BYTES: u64 = 4 << 30;

/// A temporary file this old belongs to a process that died.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

const UNFINISHED: &str = "unfinished-";

/// What a table is served as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// RFC 4180, with a header.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Ndjson, Self::Parquet];

    /// The word of `?format=`, and the ending of a file's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn write(self, table: &ReleasedTable, out: &mut (impl Write + Send)) -> io::Result<()> {
        match self {
            Self::Csv => table.write_csv(out),
            Self::Ndjson => table.write_ndjson(out),
            Self::Parquet => table.write_parquet(out),
        }
    }
}

/// The file with a table in a format, rendered unless it is there.
///
/// # Errors
/// When the store or the disk fails.
pub async fn rendered(
    state: &AppState,
    table: &Arc<StoredTable>,
    format: TableFormat,
) -> Result<PathBuf, ApiError> {
    // Another version may write other bytes, and its entity tags say so.
    let name = format!(
        "{}-{}-{}.{}",
        table.release,
        table.position,
        env!("CARGO_PKG_VERSION"),
        format.as_str()
    );
    let path = state.spool.join(name);
    if there(&path).await {
        return Ok(path);
    }
    let place = bulk::place(bulk::Held::Released).await?;
    // Whoever had the place before may have rendered it.
    if there(&path).await {
        return Ok(path);
    }
    let mut chunks = Vec::new();
    while let Some(chunk) = releases::chunk(&state.store, table, chunks.len() as u32).await? {
        chunks.push(chunk);
    }
    let (target, stored) = (path.clone(), table.clone());
    on_thread(move || {
        let _place = place;
        let table = release_packing::unpack(&stored, chunks)?;
        render(&table, format, &stored.sha256, &target)?;
        sweep(&target).map_err(|error| unwritable(&error))
    })
    .await?;
    Ok(path)
}

async fn there(path: &Path) -> bool {
    tokio::fs::try_exists(path).await.unwrap_or(false)
}

/// Renders beside the target and renames, so that no half table is ever served.
fn render(
    table: &ReleasedTable,
    format: TableFormat,
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
    let mut out = Digesting {
        // What is rendered comes in blocks, which go past the buffer.
        file: BufWriter::with_capacity(64 << 10, file),
        hasher: (format == TableFormat::Csv).then(Sha256::new),
    };
    format.write(table, &mut out).map_err(unwritable)?;
    let file: NamedTempFile = out
        .file
        .into_inner()
        .map_err(|error| unwritable(error.into_error()))?;
    if let Some(hasher) = out.hasher {
        let digest = hasher.finalize();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != sha256 {
            return Err(StoreError::Damaged {
                what: "a released table",
            }
            .into());
        }
    }
    file.persist(target)
        .map_err(|error| unwritable(error.error))?;
    Ok(())
}

/// Removes the oldest files until the rest is within bounds; never `newest`.
fn sweep(newest: &Path) -> io::Result<()> {
    let Some(directory) = newest.parent() else {
        return Ok(());
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // A file may be gone by now: another sweep is as good as this one.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if !metadata.is_file() {
            continue;
        }
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if unfinished && modified.elapsed().unwrap_or_default() > ABANDONED {
            let _ = std::fs::remove_file(entry.path());
        } else if !unfinished {
            files.push((modified, metadata.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in files {
        if total <= KEPT_BYTES {
            break;
        }
        if path != newest && std::fs::remove_file(&path).is_ok() {
            total -= bytes;
        }
    }
    Ok(())
}

/// A file, and the digest of what is written to it where the table's is known: that of its CSV.
struct Digesting {
    file: BufWriter<NamedTempFile>,
    hasher: Option<Sha256>,
}

impl Write for Digesting {
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
