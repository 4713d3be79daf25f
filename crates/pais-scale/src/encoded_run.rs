//! A run over rows that are spooled as numbers of values: searched, released and verified.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pais_anonymize::{
    ColumnParts, CountError, CountedRun, DistinctValues, Observer, PartCounts, RecodedValues,
    RowCounter, SearchOutcome,
};
use pais_core::definition::{ColumnRole, Job};
use pais_core::schema::Schema;
use pais_core::table::ColumnValueCounts;
use pais_core::warning::{Warning, by_code};
use pais_measure::Report;
use pais_seal::SecretKey;
use pais_verify::{DistinctRelease, ReleaseVerification};

use crate::codes::CodeFile;
use crate::datafusion_counter::DataFusionCounter;
use crate::engine::locked;
use crate::error::ScaleError;
use crate::files::RawRows;
use crate::release::{Manifest, ReleaseRows, ReleaseTarget, stored_columns};
use crate::remote_counter::{Executors, RemoteCounter, Resubmissions};
use crate::sealed::Sealer;
use crate::spool::RunDirectory;
use crate::values::{EncodedRows, RowSource, encode};

/// Minimum memory, in bytes, that a run is given.
pub(crate) const LEAST_MEMORY: u64 = 32 << 20;

/// A job over a table that does not fit into memory, and what counts its rows.
#[derive(Clone, Debug)]
pub struct ScaledJob {
    /// The declared columns.
    pub schema: Arc<Schema>,
    /// The job.
    pub job: Job,
    /// Bytes of memory: a quarter for the engine, the rest for the records of the search. The distinct values
    /// of the columns, and later the distinct rows of the release, may take this amount again.
    pub memory: u64,
    /// The executors that count the rows; `None` for the engine in this process.
    pub executors: Option<Arc<Executors>>,
    /// The directory of the temporary files, which have no names.
    pub spool: PathBuf,
}

/// What a search found.
pub struct CountedSearch {
    /// Its steps.
    pub outcome: SearchOutcome,
    /// Number of statements that the engine received: one for each attribute if there is a class, and one or
    /// more for each round of the search.
    pub statements: usize,
    /// How many of them repeat a statement whose answer was discarded.
    pub resubmissions: Resubmissions,
}

/// The written files of a release, as they were verified.
#[derive(Debug)]
pub struct VerifiedFiles {
    /// The files.
    pub manifest: Manifest,
    /// The released form of the distinct values.
    pub recoded: RecodedValues,
    /// What the verifier found in the files.
    pub verification: ReleaseVerification,
    /// Their distinct rows.
    pub distinct: DistinctRelease,
}

/// Makes a counter of rows that uses at most a number of bytes.
pub(crate) type MakeCounter<'a> =
    dyn Fn(Arc<CodeFile>, usize, Sealer) -> Result<Box<dyn RowCounter + 'a>, ScaleError> + 'a;

/// How the rows of a run are counted.
#[derive(Default)]
pub(crate) struct Engine<'a> {
    /// Makes the counter of the rows; `None` for the counter of the job.
    pub(crate) counter: Option<&'a MakeCounter<'a>>,
    /// Maximum number of records of a frequency set; `None` for as many as fit into the memory.
    pub(crate) budget: Option<usize>,
}

/// Rows that are spooled as numbers of values, and the values. The spooled data is removed when this is
/// dropped.
pub struct EncodedRun {
    task: ScaledJob,
    sealer: Sealer,
    /// Where executors find the rows.
    directory: Option<RunDirectory>,
    values: DistinctValues,
    codes: Arc<CodeFile>,
    counts: Vec<ColumnValueCounts>,
    run: CountedRun,
}

impl ScaledJob {
    /// Reads the rows once, and spools them as numbers of their values.
    ///
    /// # Errors
    /// Those of the rows; for a job that an executor does not take, rows that do not fit it, and more distinct
    /// values than fit into the memory; when files cannot be spooled; on cancellation.
    pub fn encode<S: RowSource>(
        self,
        source: S,
        observer: &dyn Observer,
    ) -> Result<EncodedRun, S::Error> {
        CountedRun::check(&self.schema, &self.job).map_err(ScaleError::from)?;
        let task = Self {
            memory: LEAST_MEMORY.max(self.memory),
            ..self
        };
        let sealer = Sealer::new(task.spool.clone()).map_err(ScaleError::Spool)?;
        let shared = task.executors.as_ref().map(|executors| {
            let spool: &Path = &executors.spool;
            RunDirectory::new(spool).map_err(|error| ScaleError::file(spool, error))
        });
        let directory = shared.transpose()?;
        let spool = match &directory {
            Some(directory) => directory.codes(),
            None => sealer.file(),
        };
        let EncodedRows {
            values,
            codes,
            counts,
        } = encode(
            source,
            &task.schema,
            &task.job,
            task.memory,
            spool.map_err(ScaleError::Spool)?,
            observer,
        )?;
        let run = CountedRun::new(task.schema.clone(), task.job.clone(), &values, observer);
        Ok(EncodedRun {
            run: run.map_err(ScaleError::from)?,
            task,
            sealer,
            directory,
            values,
            codes: Arc::new(codes),
            counts,
        })
    }
}

impl EncodedRun {
    /// The same run with the secret of its dataset; see
    /// [`pais_anonymize::AnonymizationRun::with_order_key`].
    pub fn with_order_key(mut self, key: SecretKey) -> Self {
        self.run = self.run.with_order_key(key);
        self
    }

    /// The schema under the job's roles.
    pub fn schema(&self) -> &Schema {
        self.run.schema()
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.values.rows
    }

    /// What the holder should know about the job and its rows.
    pub fn warnings(&self) -> Vec<Warning> {
        let of_values = self.counts.iter().filter_map(|column| column.warning());
        by_code(self.run.warnings().into_iter().chain(of_values))
    }

    /// What the holder should know about the steps of a search.
    pub fn warnings_after(&self, outcome: &SearchOutcome) -> Vec<Warning> {
        self.run.warnings_after(outcome)
    }

    /// Searches for an anonymous table by counts.
    ///
    /// # Errors
    /// As [`CountedRun::search`]; when the engine cannot be started.
    pub fn search(&self, observer: &dyn Observer) -> Result<CountedSearch, ScaleError> {
        self.search_by(&Engine::default(), observer)
    }

    pub(crate) fn search_by(
        &self,
        engine: &Engine<'_>,
        observer: &dyn Observer,
    ) -> Result<CountedSearch, ScaleError> {
        let ScaledJob { schema, memory, .. } = &self.task;
        let resubmissions = Mutex::default();
        let of_engine = (*memory / 4) as usize;
        let (codes, sealer) = (Arc::clone(&self.codes), self.sealer.clone());
        let counter: Box<dyn RowCounter + '_> = match (engine.counter, self.shared_rows()) {
            (Some(make), _) => make(codes, of_engine, sealer)?,
            (None, None) => Box::new(DataFusionCounter::new(codes, of_engine, sealer)?),
            (None, Some((executors, directory))) => {
                let published = directory.publish(&codes, &executors.key);
                let counter = published.and_then(|()| {
                    RemoteCounter::new(Arc::clone(executors), directory.id, codes, &resubmissions)
                });
                Box::new(counter.map_err(ScaleError::Spool)?)
            }
        };
        let counter = Numbered {
            counter,
            statements: AtomicUsize::new(0),
            last: Mutex::default(),
            resubmissions: &resubmissions,
        };
        let of_memory = (*memory / 4 * 3 / record_bytes(schema)) as usize;
        let budget = engine.budget.unwrap_or(of_memory);
        let outcome = self.run.search(&counter, budget, observer)?;
        let statements = counter.statements.into_inner();
        drop(counter.counter);
        Ok(CountedSearch {
            outcome,
            statements,
            resubmissions: *locked(&resubmissions),
        })
    }

    /// The report of verified files, as far as it follows from their distinct rows.
    ///
    /// # Errors
    /// As [`CountedRun::measure`].
    pub fn measure(
        &self,
        files: &VerifiedFiles,
        observer: &dyn Observer,
    ) -> Result<Report, ScaleError> {
        let report = self.run.measure(
            &files.recoded,
            &files.distinct,
            &files.verification,
            &self.singled_out(),
            observer,
        );
        Ok(report?)
    }

    /// The insensitive columns that have a value in one row only.
    fn singled_out(&self) -> Vec<String> {
        let schema = self.run.schema();
        let counts = self.counts.iter().filter(|it| {
            let mut insensitive = schema.with_role(ColumnRole::Insensitive);
            it.counts.single > 0 && insensitive.any(|spec| spec.name() == it.column)
        });
        counts.map(|it| it.column.clone()).collect()
    }

    /// The executors, and where they find the rows.
    fn shared_rows(&self) -> Option<(&Arc<Executors>, &RunDirectory)> {
        self.task.executors.as_ref().zip(self.directory.as_ref())
    }

    /// Writes the rows after the last step in a random order, reads the files back, and verifies them.
    ///
    /// # Errors
    /// [`ScaleError::NotVerified`] for files that must not be released; those of the target; on
    /// cancellation.
    pub fn release<T: ReleaseTarget>(
        &self,
        outcome: &SearchOutcome,
        target: &mut T,
        observer: &dyn Observer,
    ) -> Result<VerifiedFiles, T::Error> {
        let ScaledJob {
            schema,
            job,
            memory,
            ..
        } = &self.task;
        let recoded = self.run.recode(outcome, observer);
        let recoded = recoded.map_err(ScaleError::from)?;
        let columns = stored_columns(self.run.schema(), &recoded.table)
            .ok_or_else(|| ScaleError::NotVerified("a released column is not declared".into()))?;
        let rows = ReleaseRows {
            codes: &self.codes,
            recoded: &recoded,
            columns: &columns,
        };
        let draw = self.run.order(recoded.step);
        let mut draw = draw.map_err(ScaleError::from)?;
        let manifest = rows.write(target, &mut draw, &self.sealer, observer)?;
        let raw = RawRows {
            schema,
            job,
            values: &self.values,
            codes: &self.codes,
        };
        let (verification, distinct) = raw.verify(target, &manifest, *memory, observer)?;
        Ok(VerifiedFiles {
            manifest,
            recoded,
            verification,
            distinct,
        })
    }
}

/// A counter with the number of its statements. A statement that is repeated immediately, although it was
/// answered, contradicted the table.
struct Numbered<'a> {
    counter: Box<dyn RowCounter + 'a>,
    statements: AtomicUsize,
    /// The last statement, if it was answered.
    last: Mutex<Option<Vec<ColumnParts>>>,
    resubmissions: &'a Mutex<Resubmissions>,
}

impl RowCounter for Numbered<'_> {
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        self.counter.expected_combinations(columns, observer)
    }

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

/// Bytes of a record of a search, with a partition of its own: codes, slots, rows and order, both as an answer
/// and during the search; and the names, sizes and links of the partition.
fn record_bytes(schema: &Schema) -> u64 {
    let attributes = schema.stored().count() as u64;
    80 + 12 * attributes
}
