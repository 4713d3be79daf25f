//! Loads raw rows for the engine: opens and decodes sealed chunks, and joins them into one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::db::datasets::StoredDataset;
use crate::db::key_ring::KeyRing;
use crate::db::seal::{SealedItem, SubmissionKey};
use crate::db::submissions::{self, SealedChunk, Which};
use crate::db::{Store, StoreError};
use crate::problem::{Code, Problem};
use pais_anonymize::{Count, Observer, Phase};
use pais_core::definition::{Job, SubmissionId};
use pais_core::schema::Schema;
use pais_core::table::{KeyCounter, Table};
use pais_io::chunk::{self, Assembler};

use super::{WorkError, on_thread};

/// Number of chunks that wait to be decoded.
const CHUNKS_AHEAD: usize = 2;

/// Loads the rows of submissions of a dataset into one table. The rows are in the
/// order of the submissions' ids, so the same submissions always give the same table.
///
/// # Errors
/// `cancelled`; `dataset_deleted` if rows were deleted meanwhile; when the database fails.
pub async fn load(
    store: &Store,
    keys: &KeyRing,
    dataset: &StoredDataset,
    which: Which<'_>,
    observer: Arc<dyn Observer>,
) -> Result<Table, WorkError> {
    let rows = count_rows(store, dataset, which).await?;
    let table = stream(store, keys, dataset, which, move |chunks| {
        assemble(chunks, rows, &*observer)
    });
    let table = table.await?;
    if table.rows as u64 != rows {
        return Err(deleted().into());
    }
    Ok(table)
}

/// The number of rows of submissions of a dataset.
///
/// # Errors
/// `dataset_deleted` if some of them were deleted meanwhile; when the database fails.
pub(crate) async fn count_rows(
    store: &Store,
    dataset: &StoredDataset,
    which: Which<'_>,
) -> Result<u64, WorkError> {
    let size = submissions::size(store, dataset.id, which).await?;
    match which {
        Which::Listed(ids) if size.submissions != ids.len() as u64 => Err(deleted().into()),
        _ => Ok(size.rows),
    }
}

/// The data that decides whether a column that a job releases unchanged is a key of its rows.
pub(crate) struct UnchangedKeyCheck {
    /// Under the roles of the job.
    pub(crate) schema: Schema,
    pub(crate) job: Job,
    /// Number of its rows.
    pub(crate) rows: u64,
}

/// Counts the values of the rows of submissions of a dataset until no column that a job releases
/// unchanged can be a key of them.
///
/// # Errors
/// `unchanged_key`; `cancelled`; `dataset_deleted` if rows were deleted meanwhile; when the database
/// fails.
pub(crate) async fn refuse_keys(
    store: &Store,
    keys: &KeyRing,
    dataset: &StoredDataset,
    which: Which<'_>,
    check: UnchangedKeyCheck,
    observer: Arc<dyn Observer>,
) -> Result<(), WorkError> {
    let count = move |mut chunks: Chunks| {
        let mut counter = KeyCounter::new(&check.schema, &check.job, check.rows);
        while !counter.is_decided() {
            let Some(chunk) = chunks.next(&*observer)? else {
                break;
            };
            counter.push(&chunk);
        }
        Ok(counter.finish().map_err(Problem::from)?)
    };
    stream(store, keys, dataset, which, count).await
}

/// Works on the chunks of submissions on a thread of its own, while they are loaded.
///
/// # Errors
/// Those of `work`; when the database fails.
pub(crate) async fn stream<T: Send + 'static>(
    store: &Store,
    keys: &KeyRing,
    dataset: &StoredDataset,
    which: Which<'_>,
    work: impl FnOnce(Chunks) -> Result<T, WorkError> + Send + 'static,
) -> Result<T, WorkError> {
    let key = dataset.open_key(keys)?;
    let keys = submissions::keys(store, &key, dataset.id, which).await?;
    let (send, sealed) = mpsc::channel(CHUNKS_AHEAD);
    let done = on_thread(move || work(Chunks { sealed, keys }));
    let loading = submissions::load_chunks(store, dataset.id, which, send);
    // Wait for both, so that a panic of the thread is reported.
    let (loaded, done) = tokio::join!(loading, done);
    loaded?;
    done
}

/// The chunks of submissions, in the order of their rows.
pub(crate) struct Chunks {
    sealed: mpsc::Receiver<SealedChunk>,
    keys: BTreeMap<SubmissionId, SubmissionKey>,
}

impl Chunks {
    /// The next chunk, opened and decoded; `None` after the last one.
    ///
    /// # Errors
    /// `cancelled`; `dataset_deleted` if rows were deleted meanwhile; for a damaged chunk.
    pub(crate) fn next(&mut self, observer: &dyn Observer) -> Result<Option<Table>, WorkError> {
        let Some(chunk) = self.sealed.blocking_recv() else {
            return Ok(None);
        };
        if observer.must_stop() {
            return Err(Problem::new(Code::Cancelled, "the run was stopped").into());
        }
        let SealedChunk {
            submission, index, ..
        } = chunk;
        // Its key was destroyed since its rows were read.
        let key = self.keys.get(&submission).ok_or_else(deleted)?;
        let opened = key.open(SealedItem::Chunk { submission, index }, &chunk.sealed)?;
        Ok(Some(chunk::decode(&opened).map_err(|_| damaged())?))
    }
}

fn damaged() -> StoreError {
    StoreError::Damaged("a submission's chunk")
}

pub(super) fn deleted() -> Problem {
    let detail = "a submission that is to be read was deleted with its rows";
    Problem::new(Code::DatasetDeleted, detail)
}

fn assemble(mut chunks: Chunks, rows: u64, observer: &dyn Observer) -> Result<Table, WorkError> {
    // The caller has reserved memory for this many rows.
    let mut table = Assembler::with_capacity(rows as usize);
    let mut read = 0u64;
    while let Some(chunk) = chunks.next(observer)? {
        read += chunk.rows as u64;
        table.push(chunk).map_err(|_| damaged())?;
        // The second half of the phase is the encoding by the engine.
        observer.counted(Count::RowsRead(read));
        observer.progress(Phase::Reading, read as f64 / rows.max(1) as f64 / 2.0);
    }
    Ok(table.finish())
}
