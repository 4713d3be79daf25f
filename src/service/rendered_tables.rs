//! Rendered tables on disk: each is rendered once, their total size is limited, and the oldest are
//! removed first.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pais_core::table::ReleasedTable;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::problem::Problem;
use crate::storage::{Spool, SpoolLease, StorageError};
use crate::store::StoreError;
use crate::store::releases::{self, StoredTable};
use crate::worker::{WorkError, on_thread, release_packing};

use super::table_format::TableFormat;
use super::table_permits::TableKind;
use super::{Service, ServiceError};

impl Service {
    /// The path of the file with a released table in a format. Renders the file if it does not
    /// exist. The file may be removed at any time, but an open one stays readable.
    ///
    /// # Errors
    /// When the database or the disk fails.
    pub async fn render_table(
        &self,
        table: &Arc<StoredTable>,
        format: TableFormat,
    ) -> Result<PathBuf, ServiceError> {
        // The version is part of the entity tag of a table, because another version of the program
        // may write other bytes. So it is part of the file name, too.
        let name = format!(
            "{}-{}-{}.{}",
            table.release,
            table.position,
            env!("CARGO_PKG_VERSION"),
            format.as_str()
        );
        let path = self.storage.spool().dir().join(name);
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
        let spool = Arc::clone(self.storage.spool());
        on_thread(move || {
            let _permit = permit;
            let table = release_packing::unpack(&stored, chunks)?;
            render(&table, format, &stored.sha256, (&spool, &target))
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
    format: TableFormat,
    sha256: &str,
    (spool, target): (&Arc<Spool>, &Path),
) -> Result<(), WorkError> {
    let file = spool.named_file().map_err(unwritable)?;
    let mut out = DigestingFile {
        // Tables are rendered in blocks larger than this buffer, which they bypass.
        file: BufWriter::with_capacity(64 << 10, file),
        hasher: (format == TableFormat::Csv).then(Sha256::new),
        lease: spool.lease(),
    };
    let written = match format {
        TableFormat::Csv => table.write_csv(&mut out),
        TableFormat::Ndjson => table.write_ndjson(&mut out),
        TableFormat::Parquet => table.write_parquet(&mut out),
    };
    written.map_err(unwritable)?;
    let DigestingFile {
        file,
        hasher,
        lease,
    } = out;
    let file: NamedTempFile = file
        .into_inner()
        .map_err(|error| unwritable(error.into_error()))?;
    if let Some(hasher) = hasher
        && hex::encode(hasher.finalize()) != sha256
    {
        return Err(StoreError::Damaged {
            what: "a released table",
        }
        .into());
    }
    match file.persist_noclobber(target) {
        Ok(_) => lease.keep(),
        // Another request has rendered it meanwhile.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unwritable(error.error)),
    }
    Ok(())
}

/// A file with its share in the quota of the spool directory, and for CSV the SHA-256 of what is
/// written to it: the stored digest is that of the CSV.
struct DigestingFile {
    file: BufWriter<NamedTempFile>,
    hasher: Option<Sha256>,
    lease: SpoolLease,
}

impl Write for DigestingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lease
            .grow(bytes.len() as u64)
            .map_err(io::Error::other)?;
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

fn unwritable(error: io::Error) -> WorkError {
    tracing::error!(%error, "a table could not be rendered into the spool directory");
    Problem::from(StorageError::from(error)).into()
}
