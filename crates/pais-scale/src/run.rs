//! A whole run: from Parquet files to a verified release in a directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pais_anonymize::{
    ColumnParts, CountError, CountedRun, Observer, PartCounts, RowCounter, StepItem,
};
use pais_core::definition::{Job, JobError, JobErrorKind};
use pais_core::schema::Schema;
use pais_core::warning::{Warning, by_code};
use pais_verify::{ReleaseError, ReleaseVerification, StreamedVerification};

use crate::codes::CodeFile;
use crate::datafusion_counter::DataFusionCounter;
use crate::engine::locked;
use crate::error::ScaleError;
use crate::files::RawRows;
use crate::release::{Manifest, ReleaseRows, stored_columns};
use crate::remote_counter::{Executors, RemoteCounter, Resubmissions};
use crate::sealed::Sealer;
use crate::spool::RunDirectory;
use crate::values::{EncodedRows, encode, input_files};

/// Least bytes of memory that a run is given.
pub(crate) const LEAST_MEMORY: u64 = 32 << 20;

/// A table to anonymize, and where its release goes.
#[derive(Clone, Debug)]
pub struct ScaleTask {
    /// A Parquet file, or a directory of them.
    pub input: PathBuf,
    /// The directory of the release, which does not exist yet or is empty. Temporary files are beside it.
    pub output: PathBuf,
    /// The declared columns.
    pub schema: Arc<Schema>,
    /// The job.
    pub job: Job,
    /// Bytes of memory: half of them for the engine, half for the records of the search. The distinct
    /// values of the columns, and later the distinct rows of the release, may take as many again.
    pub memory: u64,
    /// Who counts the rows; `None` for the engine in this process.
    pub executors: Option<Arc<Executors>>,
}

/// A release whose files were verified.
#[derive(Debug)]
pub struct ScaledRelease {
    /// Its files.
    pub manifest: Manifest,
    /// The steps that led to it; it is the table after the last one.
    pub steps: Vec<StepItem>,
    /// Column to the labels of its cut.
    pub cut: BTreeMap<String, Vec<String>>,
    /// What the verifier found in the files.
    pub verification: ReleaseVerification,
    /// What the holder should know.
    pub warnings: Vec<Warning>,
    /// Number of statements that the engine was given: one for each attribute if there is a class, and one
    /// or more for each round of the search.
    pub statements: usize,
    /// How many of them repeat one whose answer was void.
    pub resubmissions: Resubmissions,
}

/// Makes a counter of rows that uses at most a number of bytes.
pub(crate) type MakeCounter<'a> =
    dyn Fn(Arc<CodeFile>, usize, Sealer) -> Result<Box<dyn RowCounter + 'a>, ScaleError> + 'a;

/// How the rows of a run are counted.
pub(crate) struct Engine<'a> {
    /// Makes the counter of the rows.
    pub(crate) counter: &'a MakeCounter<'a>,
    /// Most records of a frequency set; `None` for as many as the memory has room for.
    pub(crate) budget: Option<usize>,
    /// Where executors find the rows.
    pub(crate) directory: Option<&'a RunDirectory>,
    /// Counts the statements whose answers were void.
    pub(crate) resubmissions: &'a Mutex<Resubmissions>,
}

/// Anonymizes a table whose rows are counted by DataFusion, in this process or by executors.
///
/// # Errors
/// [`ScaleError`]. Nothing is left of a run that fails, but for an output directory that was there.
pub fn anonymize(task: &ScaleTask, observer: &dyn Observer) -> Result<ScaledRelease, ScaleError> {
    let resubmissions = Mutex::default();
    let Some(executors) = &task.executors else {
        let engine = Engine {
            counter: &|rows, memory, sealer| {
                Ok(Box::new(DataFusionCounter::new(rows, memory, sealer)?))
            },
            budget: None,
            directory: None,
            resubmissions: &resubmissions,
        };
        return engine.anonymize(task, observer);
    };
    let directory = RunDirectory::new(&executors.spool);
    let directory = directory.map_err(|error| ScaleError::file(&executors.spool, error))?;
    let engine = Engine {
        counter: &|rows, _, _| {
            let executors = Arc::clone(executors);
            let published = directory.publish(&rows, &executors.key);
            let counter = published
                .and_then(|()| RemoteCounter::new(executors, directory.id, rows, &resubmissions));
            Ok(Box::new(counter.map_err(ScaleError::Spool)?))
        },
        budget: None,
        directory: Some(&directory),
        resubmissions: &resubmissions,
    };
    engine.anonymize(task, observer)
}

impl Engine<'_> {
    pub(crate) fn anonymize(
        &self,
        task: &ScaleTask,
        observer: &dyn Observer,
    ) -> Result<ScaledRelease, ScaleError> {
        let ScaleTask {
            input,
            output,
            schema,
            job,
            memory,
            executors: _,
        } = task;
        CountedRun::check(schema, job)?;
        let memory = LEAST_MEMORY.max(*memory);
        can_verify(schema, job, memory)?;
        refuse_full(output)?;
        let parent = match output.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let of_parent = |error| ScaleError::file(parent, error);
        let sealer = Sealer::new(parent.to_owned()).map_err(ScaleError::Spool)?;
        let spool = match self.directory {
            Some(directory) => directory.codes(),
            None => sealer.file(),
        };
        let EncodedRows {
            values,
            codes,
            counts,
        } = encode(
            &input_files(input)?,
            (schema, job),
            memory,
            spool.map_err(ScaleError::Spool)?,
            observer,
        )?;
        let codes = Arc::new(codes);
        let run = CountedRun::new(Arc::clone(schema), job.clone(), &values, observer)?;
        let (found, statements) = {
            let counter = Numbered {
                counter: (self.counter)(Arc::clone(&codes), memory as usize / 2, sealer.clone())?,
                statements: AtomicUsize::new(0),
                last: Mutex::default(),
                resubmissions: self.resubmissions,
            };
            let record = record_bytes(schema);
            let budget = self.budget.unwrap_or((memory / 2 / record) as usize);
            let found = run.search(&counter, budget, observer)?;
            (found, counter.statements.into_inner())
        };
        let recoded = run.recode(&found, observer)?;
        let columns = stored_columns(run.schema(), &recoded.table)
            .ok_or_else(|| ScaleError::NotVerified("a released column is not declared".into()))?;
        let rows = ReleaseRows {
            codes: &codes,
            recoded: &recoded,
            columns: &columns,
        };
        // Nobody else reads files that are not verified: the directory around them is private.
        let private = tempfile::Builder::new()
            .prefix(".unfinished-")
            .tempdir_in(parent)
            .map_err(of_parent)?;
        let unfinished = private.path().join("release");
        std::fs::create_dir(&unfinished).map_err(of_parent)?;
        let mut draw = run.order(recoded.step)?;
        let manifest = rows.write(&unfinished, &mut draw, &sealer, observer)?;
        let raw = RawRows {
            schema,
            job,
            values: &values,
            codes: &codes,
        };
        let verification = raw.verify(&unfinished, &manifest, memory, observer)?;
        std::fs::rename(&unfinished, output).map_err(|it| ScaleError::file(output, it))?;
        let of_values = counts.iter().filter_map(|column| column.warning());
        let warnings = run.warnings(&found).into_iter().chain(of_values);
        let warnings = warnings.chain(verification.warnings.iter().cloned());
        Ok(ScaledRelease {
            manifest,
            warnings: by_code(warnings),
            steps: found
                .steps()
                .iter()
                .map(|record| record.item.clone())
                .collect(),
            cut: recoded.cut,
            verification,
            statements,
            resubmissions: *locked(self.resubmissions),
        })
    }
}

/// A counter with the number of its statements. One that is asked for again at once, though it was
/// answered, contradicted the table.
struct Numbered<'a> {
    counter: Box<dyn RowCounter + 'a>,
    statements: AtomicUsize,
    /// The last statement, if it was answered.
    last: Mutex<Option<Vec<ColumnParts>>>,
    resubmissions: &'a Mutex<Resubmissions>,
}

impl RowCounter for Numbered<'_> {
    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        if locked(&self.last).take().as_deref() == Some(columns) {
            locked(self.resubmissions).guard += 1;
        }
        let counts = self.counter.count(columns, most, observer)?;
        *locked(&self.last) = Some(columns.to_vec());
        Ok(counts)
    }
}

/// Refuses a job whose release could not be verified while it is read.
fn can_verify(schema: &Schema, job: &Job, memory: u64) -> Result<(), ScaleError> {
    let verification = StreamedVerification::new(schema, job, memory);
    match verification.and_then(|it| it.can_compare()) {
        Ok(()) => Ok(()),
        Err(ReleaseError::NeedsAllRows(what)) => {
            let detail = format!("{what} cannot be run by an executor; leave `executor` out");
            Err(JobError::at(JobErrorKind::Unfit, "/executor", detail).into())
        }
        Err(error) => Err(ScaleError::NotVerified(error.to_string())),
    }
}

/// Bytes of a record of a search, with a partition of its own: codes, slots, rows and order, as an answer
/// and as it is searched; and the names, sizes and links of the partition.
fn record_bytes(schema: &Schema) -> u64 {
    let attributes = schema.stored().count() as u64;
    80 + 12 * attributes
}

/// Refuses a directory that has something in it: nothing is overwritten.
fn refuse_full(output: &Path) -> Result<(), ScaleError> {
    let refuse = |detail: &str| {
        let error = io::Error::new(io::ErrorKind::AlreadyExists, detail.to_owned());
        Err(ScaleError::file(output, error))
    };
    match std::fs::read_dir(output).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => refuse("the directory is not empty"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            refuse("it is a file; several files are written into a directory")
        }
        Err(error) => Err(ScaleError::file(output, error)),
    }
}
