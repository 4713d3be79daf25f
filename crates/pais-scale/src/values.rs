//! The first pass: each cell becomes the number of its value, and rows of these numbers are spooled.

use std::fs::File;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use hashbrown::{DefaultHashBuilder, HashTable};
use pais_anonymize::{ColumnValues, Count, DistinctValues, Observer, Phase};
use pais_core::definition::{ColumnRole, Job, JobError, JobErrorKind};
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{ColumnValueCounts, KeyCounter, NULL_CODE, Table, ValueCounters};
use pais_io::read::{ReadFailure, ReadLimits, parquet};
use sha2::{Digest, Sha256};

use crate::codes::{BLOCK_ROWS, CodeFile, CodeWriter};
use crate::error::ScaleError;
use crate::sealed::SealedFile;

/// Maximum number of distinct values of a column.
const MOST_VALUES: usize = 1 << 22;

/// Bytes that a distinct value takes in addition to its text: twice in tables, once in an index.
const VALUE_BYTES: u64 = 72;

/// Bytes of a cell of a table of values, of which a few exist.
const CELL_BYTES: u64 = 12;

/// The rows of a table as numbers of values, and the values.
pub(crate) struct EncodedRows {
    /// The distinct values of each stored column.
    pub(crate) values: DistinctValues,
    /// A column of numbers for each stored column.
    pub(crate) codes: CodeFile,
    /// How often the values of columns that are released unchanged occur.
    pub(crate) counts: Vec<ColumnValueCounts>,
}

/// The Parquet files at a path: itself, or those of the directory in the order of their names. Names that
/// begin with `_` or `.` are left out, as Spark does.
///
/// # Errors
/// When the directory cannot be read or has no Parquet file.
pub(crate) fn input_files(path: &Path) -> Result<Vec<PathBuf>, ScaleError> {
    let of_path = |error| ScaleError::file(path, error);
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(of_path)? {
        let entry = entry.map_err(of_path)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".parquet") && !name.starts_with(['_', '.']) {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        let error = std::io::Error::other("the directory has no .parquet file");
        return Err(ScaleError::file(path, error));
    }
    files.sort();
    Ok(files)
}

/// Raw rows that are read once.
pub trait RowSource {
    /// Why they cannot be read.
    type Error: From<ScaleError>;

    /// Number of rows.
    ///
    /// # Errors
    /// When it cannot be found.
    fn rows(&self) -> Result<u64, Self::Error>;

    /// Passes the rows to `chunk`, in chunks of the stored columns, in the order of the table.
    ///
    /// # Errors
    /// When they cannot be read, and those of `chunk`.
    fn read(
        self,
        chunk: &mut dyn FnMut(Table) -> Result<(), ScaleError>,
    ) -> Result<(), Self::Error>;
}

/// The rows of Parquet files, one file after the other.
pub(crate) struct ParquetRows<'a> {
    pub(crate) files: Vec<PathBuf>,
    /// The declared columns.
    pub(crate) schema: &'a Schema,
}

impl RowSource for ParquetRows<'_> {
    type Error = ScaleError;

    fn rows(&self) -> Result<u64, ScaleError> {
        let rows = self.files.iter().map(|path| {
            let file = File::open(path).map_err(|error| ScaleError::file(path, error))?;
            parquet::rows(&file).map_err(|error| refused(path, error))
        });
        rows.sum()
    }

    fn read(
        self,
        chunk: &mut dyn FnMut(Table) -> Result<(), ScaleError>,
    ) -> Result<(), ScaleError> {
        for path in &self.files {
            let file = File::open(path).map_err(|error| ScaleError::file(path, error))?;
            let read = parquet::read(self.schema, file, ReadLimits::default(), &mut *chunk);
            read.map_err(|failure| match failure {
                ReadFailure::Refused(error) => refused(path, error),
                ReadFailure::Source(error) => ScaleError::file(path, error),
                ReadFailure::Sink(error) => error,
            })?;
        }
        Ok(())
    }
}

/// Reads rows once, and writes them as numbers into an empty file. Distinct values take at most `memory`
/// bytes.
///
/// # Errors
/// Those of the rows; for rows that do not fit the schema, for a column with too many distinct values, for a
/// column that is released unchanged and is a key, and on cancellation.
pub(crate) fn encode<S: RowSource>(
    source: S,
    schema: &Schema,
    job: &Job,
    memory: u64,
    spool: SealedFile,
    observer: &dyn Observer,
) -> Result<EncodedRows, S::Error> {
    observer.progress(Phase::Reading, 0.0);
    let all = source.rows()?;
    if all >= u64::from(u32::MAX) {
        let detail = format!(
            "the table has {all} rows; at most {} can be taken",
            u32::MAX - 1
        );
        return Err(limit_exceeded(detail).into());
    }
    let with_roles = schema.with_roles(&job.roles).map_err(ScaleError::from)?;
    let columns = schema.stored().map(|_| ValueNumbers::default()).collect();
    let mut encoder = Encoder {
        columns,
        writer: CodeWriter::new(spool, schema.stored().count(), BLOCK_ROWS),
        digest: Sha256::new(),
        keys: KeyCounter::new(&with_roles, job, all),
        counters: ValueCounters::default(),
        text_bytes: 0,
    };
    let mut rows = 0;
    source.read(&mut |chunk| {
        observer.check()?;
        rows += chunk.rows as u64;
        encoder.push(&with_roles, chunk, memory)?;
        observer.counted(Count::RowsRead(rows));
        observer.progress(Phase::Reading, rows as f64 / all.max(1) as f64);
        Ok(())
    })?;
    Ok(encoder.finish(rows)?)
}

fn refused(path: &Path, error: pais_core::table::ReadError) -> ScaleError {
    let path = path.to_owned();
    ScaleError::Refused { path, error }
}

fn limit_exceeded(detail: String) -> ScaleError {
    JobError::new(JobErrorKind::LimitExceeded, detail).into()
}

struct Encoder<'s> {
    columns: Vec<ValueNumbers>,
    writer: CodeWriter,
    digest: Sha256,
    keys: KeyCounter<'s>,
    counters: ValueCounters,
    text_bytes: u64,
}

impl Encoder<'_> {
    fn push(&mut self, schema: &Schema, chunk: Table, memory: u64) -> Result<(), ScaleError> {
        if !self.keys.is_decided() {
            self.keys.push(&chunk);
        }
        self.counters.push(schema.stored().zip(&chunk.columns));
        let mut codes = Vec::with_capacity(chunk.columns.len());
        for ((spec, numbers), column) in schema.stored().zip(&mut self.columns).zip(chunk.columns) {
            codes.push(numbers.encode(column, &mut self.text_bytes));
            if numbers.found.values.len() > MOST_VALUES {
                return Err(limit_exceeded(too_many_values(spec)));
            }
        }
        // Tables of values have as many rows as the column with the most.
        let most = self
            .columns
            .iter()
            .map(|column| column.found.values.len())
            .max();
        let cells = (most.unwrap_or(0) * self.columns.len()) as u64;
        if self.text_bytes + cells * CELL_BYTES > memory {
            return Err(limit_exceeded(format!(
                "the distinct values of the columns take more than {} MiB; have `memory` raised, or \
                 leave out columns whose values hardly repeat",
                memory >> 20
            )));
        }
        let digest = &mut self.digest;
        let spooled = self
            .writer
            .push_columns(&codes, chunk.rows, &mut |block| digest.update(block));
        spooled.map_err(ScaleError::Spool)
    }

    fn finish(mut self, rows: u64) -> Result<EncodedRows, ScaleError> {
        self.keys.finish()?;
        let digest = &mut self.digest;
        let codes = self.writer.finish(&mut |block| digest.update(block));
        let codes = codes.map_err(ScaleError::Spool)?;
        let columns: Vec<ColumnValues> = self.columns.into_iter().map(|it| it.found).collect();
        for column in &columns {
            self.digest
                .update((column.values.len() as u64).to_le_bytes());
            for value in &column.values {
                let text = value.as_deref();
                let length = text.map_or(u64::MAX, |text| text.len() as u64);
                self.digest.update(length.to_le_bytes());
                self.digest.update(text.unwrap_or_default().as_bytes());
            }
        }
        Ok(EncodedRows {
            values: DistinctValues {
                columns,
                rows,
                digest: self.digest.finalize().into(),
            },
            codes,
            counts: self.counters.counts(),
        })
    }
}

fn too_many_values(spec: &SchemaColumn) -> String {
    let advice = if spec.role() == ColumnRole::QuasiIdentifier {
        "give the numbers a taxonomy of ranges over their `domain`, or `round` them"
    } else {
        "leave the column out, or `round` its numbers"
    };
    format!(
        "the column `{}` has more than {MOST_VALUES} distinct values, which are kept in memory; {advice}",
        spec.name()
    )
}

/// The numbers of the values of a column, in the order of their first occurrences.
#[derive(Default)]
struct ValueNumbers {
    found: ColumnValues,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The number of null cells.
    null: Option<u32>,
}

impl ValueNumbers {
    /// The numbers of the cells of a chunk, whose rows are counted.
    fn encode(&mut self, column: pais_core::table::Column, text_bytes: &mut u64) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(column.dictionary.len());
        for text in column.dictionary {
            let (hasher, values) = (&self.hasher, &self.found.values);
            let hash = hasher.hash_one(&*text);
            let is_text = |&number: &u32| values[number as usize].as_deref() == Some(&*text);
            numbers.push(match self.index.find(hash, is_text) {
                Some(&number) => number,
                None => {
                    *text_bytes += text.len() as u64 + VALUE_BYTES;
                    let number = self.found.values.len() as u32;
                    self.found.values.push(Some(text));
                    self.found.rows.push(0);
                    let values = &self.found.values;
                    self.index.insert_unique(hash, number, |&number| {
                        hasher.hash_one(values[number as usize].as_deref().unwrap_or_default())
                    });
                    number
                }
            });
        }
        let mut codes = column.codes;
        for code in &mut codes {
            *code = match *code {
                NULL_CODE => *self.null.get_or_insert_with(|| {
                    self.found.values.push(None);
                    self.found.rows.push(0);
                    self.found.values.len() as u32 - 1
                }),
                code => numbers[code as usize],
            };
            self.found.rows[*code as usize] += 1;
        }
        codes
    }
}
