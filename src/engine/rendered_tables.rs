//! Rendered tables on disk: each is rendered once, their total size is limited, and the oldest are
//! removed first.

use std::path::PathBuf;
use std::sync::Arc;

use pais_anonymize::Observer;

use crate::db::Store;
use crate::db::releases::{self, StoredTable};
use crate::ids::OrganizationId;
use crate::storage::Storage;

use super::rendering::{Rendering, SpoolWriter, render};
use super::table_work::{TableKind, TableSlots};
use super::{WorkError, on_thread, release_packing};

/// What the rendering of a table needs from the process.
pub(crate) struct Renderer<'a> {
    pub(crate) db: &'a Store,
    pub(crate) storage: &'a Arc<Storage>,
    pub(crate) slots: &'a TableSlots,
}

impl Renderer<'_> {
    /// The path of the file with a released table in a format. Renders the file if it does not
    /// exist. The file may be removed at any time, but an open one stays readable.
    ///
    /// # Errors
    /// `busy`; when the database or the disk fails.
    pub(crate) async fn render(
        &self,
        table: &Arc<StoredTable>,
        rendering: &Rendering,
    ) -> Result<PathBuf, WorkError> {
        let file = SpooledFile {
            name: rendering.file_name(table.release, table.position),
            owner: table.organization,
            bytes: render_bytes(table, rendering),
        };
        let load = async || Ok(releases::chunks(self.db, table).await?);
        let (stored, rendering) = (table.clone(), rendering.clone());
        let write = move |chunks, out| {
            let table = release_packing::unpack(&stored, chunks)?;
            let table = match &rendering.bounds {
                Some(bounded) => table.with_bounds(bounded),
                None => table,
            };
            render(&table, &rendering, Some(&stored.sha256), out)
        };
        self.spooled(file, load, write).await
    }

    /// The path of a file with this name in the spool directory, if there is one.
    pub(crate) async fn existing(&self, name: &str) -> Option<PathBuf> {
        let path = self.storage.spool.directory().join(name);
        let exists = tokio::fs::try_exists(&path).await.unwrap_or(false);
        exists.then_some(path)
    }

    /// The path of the file. If it does not exist, `load` reads what `write` writes on a thread of its own.
    ///
    /// # Errors
    /// `busy`; when the database or the disk fails; those of `load` and `write`.
    pub(crate) async fn spooled<T: Send + 'static>(
        &self,
        file: SpooledFile,
        load: impl AsyncFnOnce() -> Result<T, WorkError>,
        write: impl FnOnce(T, SpoolWriter) -> Result<SpoolWriter, WorkError> + Send + 'static,
    ) -> Result<PathBuf, WorkError> {
        if let Some(path) = self.existing(&file.name).await {
            return Ok(path);
        }
        let guard = self
            .slots
            .begin(TableKind::Released, file.owner, file.bytes);
        let guard = guard.await?;
        // Another request may have made it while this one waited.
        if let Some(path) = self.existing(&file.name).await {
            return Ok(path);
        }
        let loaded = load().await?;
        let (work, storage) = (guard.share(), self.storage.clone());
        let writing = on_thread(move || {
            let out = SpoolWriter::new(&storage.spool, work.cancellation().clone())?;
            write(loaded, out)?.keep(&storage.spool, &file.name)
        });
        let path = writing.await?;
        drop(guard);
        Ok(path)
    }
}

/// A file of the spool directory that is made once.
pub(crate) struct SpooledFile {
    /// Its name.
    pub(crate) name: String,
    /// The organization for which the work counts.
    pub(crate) owner: OrganizationId,
    /// Bytes of memory that the work needs.
    pub(crate) bytes: u64,
}

/// Bytes that the rendering of a table needs: its codes as joined and as written, and its text as
/// stored, joined and in the blocks that are written.
fn render_bytes(table: &StoredTable, rendering: &Rendering) -> u64 {
    let columns = table.columns.len();
    let bounds = rendering.bounds.as_ref().map_or(0, |it| 2 * it.len());
    let columns = (columns + bounds) as u64;
    let codes = table.rows.saturating_mul(columns).saturating_mul(8);
    codes.saturating_add(table.csv_bytes.saturating_mul(3))
}
