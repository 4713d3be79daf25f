//! Statements of Apache DataFusion over blocks of rows of codes.
//!
//! The engine sees no value, no code of a value and no name: each statement reads keys, which number the
//! combinations of parts, and the numbers of rows. Only integers pass to its version of Arrow.

use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{
    SendableRecordBatchStream, SpillFile, SpillWriter, TaskContext, TempFileFactory,
};
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{col, lit};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::{Stream, StreamExt, stream};
use pais_core::cancellation::Cancellation;

use crate::codes::CodeFile;
use crate::keys::{Keys, ROW_ID};
use crate::sealed::{SealedFile, Sealer};

/// Bytes of a block of a spill file.
const SPILL_BLOCK: usize = 256 << 10;

/// The engine, with the memory that its statements share.
pub(crate) struct RowEngine {
    environment: Arc<RuntimeEnv>,
    threads: usize,
}

impl RowEngine {
    /// Counts with at most `memory` bytes; what does not fit is spilled into sealed files.
    ///
    /// # Errors
    /// When the engine cannot be started.
    pub(crate) fn new(memory: usize, sealer: Sealer) -> Result<Self> {
        let spill_files = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(sealer));
        Ok(Self {
            environment: RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
                .with_disk_manager_builder(spill_files)
                .build_arc()?,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// Counts the rows of some blocks by keys: `SELECT key, COUNT(*), SUM(row_id) … GROUP BY key`. The
    /// statement ends with its stream.
    ///
    /// # Errors
    /// When the engine fails.
    pub(crate) async fn count(
        &self,
        rows: &Arc<CodeFile>,
        keys: &Arc<Keys>,
        blocks: Range<usize>,
        cancellation: &Cancellation,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = (0..self.threads).map(|number| {
            let partition = KeyPartition {
                rows: Arc::clone(rows),
                keys: Arc::clone(keys),
                blocks: blocks.start + number..blocks.end,
                step: self.threads,
                cancellation: cancellation.clone(),
            };
            Arc::new(partition) as Arc<dyn PartitionStream>
        });
        let table = StreamingTable::try_new(Arc::clone(&keys.schema), partitions.collect())?;
        let config = SessionConfig::new().with_target_partitions(self.threads);
        let session = SessionContext::new_with_config_rt(config, Arc::clone(&self.environment));
        let grouped = keys.names().map(col).collect();
        let counted = vec![count(lit(1u64)).alias("n"), sum(col(ROW_ID)).alias("ids")];
        let statement = session
            .read_table(Arc::new(table))?
            .aggregate(grouped, counted)?;
        statement.execute_stream().await
    }
}

/// A share of the rows, as keys.
struct KeyPartition {
    rows: Arc<CodeFile>,
    keys: Arc<Keys>,
    /// Its first block, and where the statement ends; further ones follow in steps.
    blocks: Range<usize>,
    step: usize,
    cancellation: Cancellation,
}

impl fmt::Debug for KeyPartition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeyPartition({:?} by {})", self.blocks, self.step)
    }
}

impl PartitionStream for KeyPartition {
    fn schema(&self) -> &SchemaRef {
        &self.keys.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (rows, keys) = (Arc::clone(&self.rows), Arc::clone(&self.keys));
        let cancellation = self.cancellation.clone();
        let blocks = self.blocks.clone().step_by(self.step);
        let batches = blocks.map(move |block| {
            if cancellation.is_cancelled() {
                return Err(DataFusionError::External("cancelled".into()));
            }
            let first = rows.first_row(block);
            let ids = first..first + rows.rows_of(block) as u64;
            let columns = keys
                .of_block(&rows, block)?
                .into_iter()
                .map(UInt64Array::from);
            let columns = columns.chain([UInt64Array::from_iter_values(ids)]);
            let columns = columns.map(|column| Arc::new(column) as ArrayRef);
            Ok(RecordBatch::try_new(
                Arc::clone(&keys.schema),
                columns.collect(),
            )?)
        });
        let schema = Arc::clone(&self.keys.schema);
        // A block takes milliseconds. Other tasks of the thread have their turn after each one.
        let batches = stream::iter(batches).then(|batch| async move {
            tokio::task::yield_now().await;
            batch
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

impl TempFileFactory for Sealer {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let file = Arc::new(Mutex::new(self.file()?));
        Ok(Arc::new(SealedSpill(file)))
    }
}

/// A sealed file for data that exceeds the engine's memory.
struct SealedSpill(Arc<Mutex<SealedFile>>);

impl SpillFile for SealedSpill {
    fn size(&self) -> Option<u64> {
        Some(locked(&self.0).bytes())
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<bytes::Bytes>> + Send>>> {
        let file = Arc::clone(&self.0);
        let mut next = 0;
        let blocks = std::iter::from_fn(move || {
            let file = locked(&file);
            let block = (next < file.blocks()).then(|| file.block(next));
            next += 1;
            block.map(|block| Ok(block?.into()))
        });
        Ok(Box::pin(stream::iter(blocks)))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(SealedSpillWriter {
            file: Arc::clone(&self.0),
            block: Vec::new(),
        }))
    }
}

/// The content of a mutex, even after a panic of another thread.
pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

struct SealedSpillWriter {
    file: Arc<Mutex<SealedFile>>,
    block: Vec<u8>,
}

impl io::Write for SealedSpillWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.extend_from_slice(bytes);
        if self.block.len() >= SPILL_BLOCK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    /// Flushed data can be read.
    fn flush(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            locked(&self.file).push(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }
}

impl SpillWriter for SealedSpillWriter {
    fn finish(&mut self) -> Result<()> {
        Ok(io::Write::flush(self)?)
    }
}

impl Drop for SealedSpillWriter {
    fn drop(&mut self) {
        // Data that cannot be written is missing when the file is read, and the statement fails.
        let _ = io::Write::flush(self);
    }
}
