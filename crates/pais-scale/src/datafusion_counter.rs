//! Counts rows by Apache DataFusion in this process.
//!
//! The engine sees no value, no code of a value and no name: each statement reads keys, which number the
//! combinations of parts, beside numbers of rows. Only integers cross the border to its version of Arrow.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
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
use hashbrown::HashSet;
use pais_anonymize::{ColumnParts, CountError, Observer, PartCounts, RowCounter};
use pais_core::cancellation::Cancellation;
use tokio::runtime::Runtime;

use crate::codes::CodeFile;
use crate::error::ScaleError;
use crate::sealed::{SealedFile, Sealer};

/// Combinations that one key numbers at most.
const MOST_KEYS: u64 = 1 << 62;

/// Blocks that are read to refuse a set that is too large before it is counted: a million rows.
const SAMPLE_BLOCKS: usize = 64;

/// How long a request to stop can wait.
const PATIENCE: Duration = Duration::from_millis(20);

/// Bytes of a block of a spill file.
const SPILL_BLOCK: usize = 256 << 10;

/// Rows of codes in a sealed file, counted by DataFusion.
pub(crate) struct DataFusionCounter {
    rows: Arc<CodeFile>,
    runtime: Runtime,
    environment: Arc<RuntimeEnv>,
    threads: usize,
}

impl DataFusionCounter {
    /// Counts with at most `memory` bytes; what does not fit is spilled into sealed files.
    ///
    /// # Errors
    /// When the engine cannot be started.
    pub(crate) fn new(
        rows: Arc<CodeFile>,
        memory: usize,
        sealer: Sealer,
    ) -> std::result::Result<Self, ScaleError> {
        let engine = |error: &dyn fmt::Display| ScaleError::Engine(error.to_string());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .build();
        let spill_files = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(sealer));
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
            .with_disk_manager_builder(spill_files)
            .build_arc();
        Ok(Self {
            rows,
            runtime: runtime.map_err(|error| engine(&error))?,
            environment: environment.map_err(|error| engine(&error))?,
            threads,
        })
    }

    /// Whether the first rows alone have more than `most` combinations.
    fn exceeds(&self, keys: &Keys, most: usize, cancellation: &Cancellation) -> io::Result<bool> {
        let blocks = self.rows.blocks().min(SAMPLE_BLOCKS);
        let mut found = HashSet::new();
        for block in (0..blocks).take_while(|_| !cancellation.is_cancelled()) {
            let columns = keys.of_block(&self.rows, block)?;
            for row in 0..self.rows.rows_of(block) {
                // Two keys are rarely needed; a mix of them can only lose combinations.
                let mixed = columns.iter().fold(0u64, |mixed, keys| {
                    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ keys[row]
                });
                found.insert(mixed);
            }
            if found.len() > most {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn run(
        &self,
        keys: &Arc<Keys>,
        most: Option<usize>,
        cancellation: &Cancellation,
    ) -> Result<Answer> {
        let partitions = (0..self.threads).map(|first| {
            let partition = KeyPartition {
                rows: Arc::clone(&self.rows),
                keys: Arc::clone(keys),
                first,
                step: self.threads,
                cancellation: cancellation.clone(),
            };
            Arc::new(partition) as Arc<dyn PartitionStream>
        });
        let table = StreamingTable::try_new(Arc::clone(&keys.schema), partitions.collect())?;
        let config = SessionConfig::new().with_target_partitions(self.threads);
        let session = SessionContext::new_with_config_rt(config, Arc::clone(&self.environment));
        // SELECT key, COUNT(*), SUM(row_id) FROM keys GROUP BY key
        let grouped = keys.names().map(col).collect();
        let counted = vec![count(lit(1u64)).alias("n"), sum(col(ROW_ID)).alias("ids")];
        let statement = session
            .read_table(Arc::new(table))?
            .aggregate(grouped, counted)?;
        let mut batches = statement.execute_stream().await?;
        let mut answer = Answer::Counts(KeyCounts::new(keys.groups.len()));
        while let Answer::Counts(counts) = &mut answer {
            // The statement ends with its stream.
            let batch = tokio::time::timeout(PATIENCE, batches.next()).await;
            if cancellation.is_cancelled() {
                return Ok(Answer::Cancelled);
            }
            match batch {
                Err(_) => {}
                Ok(None) => break,
                Ok(Some(batch)) => {
                    counts.push(&batch?)?;
                    if most.is_some_and(|most| counts.rows.len() > most) {
                        answer = Answer::MoreThan;
                    }
                }
            }
        }
        Ok(answer)
    }
}

/// How a statement ends.
enum Answer {
    Counts(KeyCounts),
    MoreThan,
    Cancelled,
}

/// The result of a statement.
struct KeyCounts {
    /// By key column.
    keys: Vec<Vec<u64>>,
    rows: Vec<u64>,
    number_sums: Vec<u64>,
}

impl KeyCounts {
    fn new(keys: usize) -> Self {
        Self {
            keys: vec![Vec::new(); keys],
            rows: Vec::new(),
            number_sums: Vec::new(),
        }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let all = self
            .keys
            .iter_mut()
            .chain([&mut self.rows, &mut self.number_sums]);
        for (numbers, column) in all.zip(batch.columns()) {
            // The number of rows is signed.
            let column = datafusion::arrow::compute::cast(column, &DataType::UInt64)?;
            numbers.extend_from_slice(column.as_primitive::<UInt64Type>().values());
        }
        Ok(())
    }
}

impl RowCounter for DataFusionCounter {
    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> std::result::Result<PartCounts, CountError> {
        if observer.must_stop() {
            return Err(CountError::Cancelled);
        }
        let keys = Arc::new(Keys::new(columns));
        if let Some(most) = most {
            let exceeds = self.exceeds(&keys, most, observer.cancellation());
            if exceeds.map_err(|error| CountError::Failed(error.to_string()))? {
                return Err(CountError::MoreThan);
            }
        }
        if observer.must_stop() {
            return Err(CountError::Cancelled);
        }
        let run = self.run(&keys, most, observer.cancellation());
        match self.runtime.block_on(run) {
            Ok(Answer::Counts(counts)) => Ok(PartCounts {
                parts: keys.parts(&counts.keys, columns.len()),
                rows: counts.rows,
                number_sums: counts.number_sums,
            }),
            Ok(Answer::MoreThan) => Err(CountError::MoreThan),
            Ok(Answer::Cancelled) => Err(CountError::Cancelled),
            Err(_) if observer.must_stop() => Err(CountError::Cancelled),
            // It quotes numbers of combinations at most.
            Err(error) => Err(CountError::Failed(format!("the engine failed: {error}"))),
        }
    }
}

/// The column of the numbers of rows.
const ROW_ID: &str = "row_id";

/// How rows are numbered by their parts: by mixed radix, in as few keys as have room for all
/// combinations.
struct Keys {
    schema: SchemaRef,
    groups: Vec<Vec<Digit>>,
}

/// A digit of a key.
struct Digit {
    /// The column that was asked for.
    asked: usize,
    /// The stored column.
    column: usize,
    /// What a unit of it is worth.
    place: u64,
    /// Number of its values.
    parts: u64,
    /// By value of the column, what it adds to the key.
    addends: Vec<u64>,
}

impl Keys {
    fn new(columns: &[ColumnParts]) -> Self {
        let mut groups = vec![Vec::new()];
        let mut place = 1u64;
        for (asked, column) in columns.iter().enumerate() {
            let parts = u64::from(column.parts).max(1);
            if place.checked_mul(parts).is_none_or(|keys| keys > MOST_KEYS) {
                groups.push(Vec::new());
                place = 1;
            }
            let addends = column.part_of.iter().map(|&part| u64::from(part) * place);
            let digit = Digit {
                asked,
                column: column.column,
                place,
                parts,
                addends: addends.collect(),
            };
            if let Some(group) = groups.last_mut() {
                group.push(digit);
            }
            place *= parts;
        }
        let keys = (0..groups.len()).map(|key| format!("key{key}"));
        let names = keys.chain([ROW_ID.to_owned()]);
        let fields: Vec<Field> = names
            .map(|name| Field::new(name, DataType::UInt64, false))
            .collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            groups,
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let keys = self.schema.fields().iter().take(self.groups.len());
        keys.map(|field| field.name().as_str())
    }

    /// The keys of the rows of a block.
    fn of_block(&self, rows: &CodeFile, block: usize) -> io::Result<Vec<Vec<u64>>> {
        let block = rows.block(block)?;
        let mut keys = vec![vec![0; block.rows()]; self.groups.len()];
        block.for_each_column(|column, codes| {
            for (keys, group) in keys.iter_mut().zip(&self.groups) {
                for digit in group.iter().filter(|digit| digit.column == column) {
                    codes.add_to(keys, |code| digit.addends[code as usize]);
                }
            }
        });
        Ok(keys)
    }

    /// By column that was asked for, the part of each key.
    fn parts(&self, keys: &[Vec<u64>], asked: usize) -> Vec<Vec<u32>> {
        let mut parts = vec![Vec::new(); asked];
        for (keys, group) in keys.iter().zip(&self.groups) {
            for digit in group {
                let part = |&key: &u64| (key / digit.place % digit.parts) as u32;
                parts[digit.asked] = keys.iter().map(part).collect();
            }
        }
        parts
    }
}

/// A share of the rows, as keys.
struct KeyPartition {
    rows: Arc<CodeFile>,
    keys: Arc<Keys>,
    /// Its first block; further ones follow in steps.
    first: usize,
    step: usize,
    cancellation: Cancellation,
}

impl fmt::Debug for KeyPartition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeyPartition({} of {})", self.first, self.step)
    }
}

impl PartitionStream for KeyPartition {
    fn schema(&self) -> &SchemaRef {
        &self.keys.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (rows, keys) = (Arc::clone(&self.rows), Arc::clone(&self.keys));
        let cancellation = self.cancellation.clone();
        let blocks = (self.first..rows.blocks()).step_by(self.step);
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
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
    }
}

impl TempFileFactory for Sealer {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let file = Arc::new(Mutex::new(self.file()?));
        Ok(Arc::new(SealedSpill(file)))
    }
}

/// A sealed file of what the engine has no memory for.
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

fn locked(file: &Mutex<SealedFile>) -> std::sync::MutexGuard<'_, SealedFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// What is flushed can be read.
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
        // What cannot be written is missing when the file is read, and the statement fails.
        let _ = io::Write::flush(self);
    }
}
