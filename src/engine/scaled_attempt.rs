//! The attempt at a job whose rows an executor counts: they are read once, chunk by chunk, and spooled as
//! numbers; the files of the release are written, read back and verified. No table is in memory.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;
use pais_anonymize::{Count, Observer, Phase, RunError, SearchOutcome};
use pais_core::cancellation::Cancellation;
use pais_core::definition::JobDefinition;
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Table};
use pais_core::warning::{Warning, by_code};
use pais_measure::Report;
use pais_scale::{
    CountedSearch, EncodedRun, ManifestFile, ReleaseTarget, RowSource, ScaleError, ScaledJob,
    VerifiedFiles,
};
use tokio::sync::oneshot;

use crate::db::datasets::StoredDataset;
use crate::db::releases::{NewRelease, NewReleaseFile, NewTable};
use crate::db::seal::DataKey;
use crate::executors::NamedExecutor;
use crate::problem::{Code, NOT_VERIFIED, Problem};
use crate::storage::Storage;
use crate::storage::object_stores::LocationError;

use super::WorkError;
use super::attempt::{PACKED, RunResults, seal};
use super::load_rows::{Chunks, deleted};
use super::locations::NewReleaseFolder;
use super::release_packing::{ReleaseFacts, ReleaseOrigin, stored_columns};

/// An attempt whose rows an executor counts.
pub(crate) struct ScaledAttempt {
    /// The job without its executor.
    pub(crate) definition: JobDefinition,
    /// Its dataset.
    pub(crate) dataset: StoredDataset,
    /// The data key of the dataset.
    pub(crate) key: DataKey,
    /// The executor that counts the rows.
    pub(crate) executor: NamedExecutor,
    /// Where rows are spooled.
    pub(crate) storage: Arc<Storage>,
    /// Number of rows of its submissions.
    pub(crate) rows: u64,
}

impl ScaledAttempt {
    /// Reads the rows, searches, and writes and verifies the files of the release if the job asks for one.
    /// `warnings` gets the warnings that are known before the search.
    ///
    /// # Errors
    /// Those of the rows and of the run; `executor_unavailable`; when files cannot be written.
    pub(crate) fn run(
        self,
        chunks: Chunks,
        origin: ReleaseOrigin,
        warnings: oneshot::Sender<Vec<Warning>>,
        observer: &dyn Observer,
    ) -> Result<RunResults, WorkError> {
        let Self {
            definition,
            dataset,
            key,
            executor,
            storage,
            rows,
        } = self;
        let job = ScaledJob {
            schema: dataset.schema.clone(),
            job: definition.parse()?,
            // Distinct values take as much again as the search, and so do distinct rows after it.
            memory: executor.memory / 2,
            executors: executor.processes,
            spool: storage.spool.directory().to_owned(),
        };
        let source = SubmittedRows {
            chunks,
            rows,
            observer,
        };
        let run = job.encode(source, observer)?;
        let run = run.with_order_key(key.order_key());
        // The receiver is dropped only when the worker stops.
        let _ = warnings.send(run.warnings());
        let CountedSearch {
            outcome,
            statements,
            resubmissions,
        } = run.search(observer)?;
        tracing::info!(statements, %resubmissions, "an executor has counted the rows of a search");
        let after = run.warnings_after(&outcome);
        let id = origin.job;
        let release = match origin.folder.clone() {
            None => None,
            Some(folder) => {
                let files = LocatedFiles {
                    folder,
                    files: Vec::new(),
                    observer,
                };
                let (verified, files) = files.release(&run, &outcome, observer)?;
                let of_release = verified.verification.warnings.iter().chain(&after);
                let warnings = by_code(of_release.cloned());
                let report = run.measure(&verified, observer)?;
                let facts = facts(&verified, &report, &warnings, run.schema())?;
                Some(NewRelease {
                    files,
                    tables: vec![table_in_files(&verified)?],
                    ..facts.pack(origin, &definition, &key)?
                })
            }
        };
        // No spooled data is left when the job ends.
        drop(run);
        observer.progress(Phase::Writing, PACKED);
        observer.check().map_err(RunError::from)?;
        Ok(RunResults {
            steps: seal(&key, id, 0, outcome.into_steps(), observer)?,
            release,
            warnings: after,
            ..RunResults::default()
        })
    }
}

/// The rows of a job's submissions.
struct SubmittedRows<'a> {
    chunks: Chunks,
    rows: u64,
    observer: &'a dyn Observer,
}

impl RowSource for SubmittedRows<'_> {
    type Error = WorkError;

    fn rows(&self) -> Result<u64, WorkError> {
        Ok(self.rows)
    }

    fn read(
        mut self,
        found: &mut dyn FnMut(Table) -> Result<(), ScaleError>,
    ) -> Result<(), WorkError> {
        let mut rows = 0;
        while let Some(chunk) = self.chunks.next(self.observer)? {
            rows += chunk.rows as u64;
            found(chunk)?;
        }
        if rows == self.rows {
            Ok(())
        } else {
            Err(deleted().into())
        }
    }
}

/// The files of a release at its location.
struct LocatedFiles<'a> {
    folder: NewReleaseFolder,
    /// The written files.
    files: Vec<NewReleaseFile>,
    observer: &'a dyn Observer,
}

impl LocatedFiles<'_> {
    /// Writes and verifies the files of a release.
    fn release(
        mut self,
        run: &EncodedRun,
        outcome: &SearchOutcome,
        observer: &dyn Observer,
    ) -> Result<(VerifiedFiles, Vec<NewReleaseFile>), WorkError> {
        let verified = run.release(outcome, &mut self, &WritingFirst(observer))?;
        Ok((verified, self.files))
    }
}

impl ReleaseTarget for LocatedFiles<'_> {
    type Error = WorkError;
    type File = Bytes;

    fn write(&mut self, name: String, rows: &ReleasedTable) -> Result<ManifestFile, WorkError> {
        self.observer.check().map_err(RunError::from)?;
        let file = self.folder.write_file(name, rows)?;
        let listed = ManifestFile {
            name: file.name.clone(),
            rows: file.rows,
            bytes: file.bytes,
            sha256: hex::encode(file.sha256),
        };
        self.files.push(file);
        Ok(listed)
    }

    fn open(&mut self, file: &ManifestFile) -> Result<Bytes, WorkError> {
        let written = self.files.iter().find(|written| written.name == file.name);
        self.folder.read(written.ok_or(LocationError::FileChanged)?)
    }
}

/// Reports the files, which are written before they are verified, as parts of the verification: a job is
/// verified before it is written to the database.
struct WritingFirst<'a>(&'a dyn Observer);

impl Observer for WritingFirst<'_> {
    fn progress(&self, phase: Phase, fraction: f64) {
        match phase {
            Phase::Writing => self.0.progress(Phase::Verifying, fraction / 2.0),
            Phase::Verifying => self.0.progress(phase, (1.0 + fraction) / 2.0),
            Phase::Reading | Phase::Searching => self.0.progress(phase, fraction),
        }
    }

    fn counted(&self, count: Count) {
        self.0.counted(count);
    }

    fn cancellation(&self) -> &Cancellation {
        self.0.cancellation()
    }
}

/// The stored data of verified files.
fn facts<'a>(
    verified: &'a VerifiedFiles,
    report: &'a Report,
    warnings: &'a [Warning],
    schema: &'a Schema,
) -> Result<ReleaseFacts<'a>, Problem> {
    let privacy = verified.verification.privacy.as_ref();
    Ok(ReleaseFacts {
        step: Some(verified.recoded.step),
        rows: verified.manifest.rows,
        suppressed_rows: 0,
        cut: Some(&verified.recoded.cut),
        verification: privacy.ok_or_else(not_verified)?,
        report,
        schema,
        tables: std::slice::from_ref(&verified.recoded.table),
        warnings,
    })
}

/// The table of a release, whose rows are in its files.
fn table_in_files(verified: &VerifiedFiles) -> Result<NewTable, WorkError> {
    let table = &verified.recoded.table;
    Ok(NewTable {
        name: table.name.to_string(),
        rows: verified.manifest.rows,
        columns: stored_columns(table),
        content: None,
    })
}

impl From<ScaleError> for Problem {
    fn from(error: ScaleError) -> Self {
        match error {
            // Messages about executors contain their addresses.
            ScaleError::Run(error @ RunError::NotCounted { .. }) => unavailable(&error),
            error @ ScaleError::Engine(_) => unavailable(&error),
            ScaleError::Run(error) => error.into(),
            ScaleError::Spool(error) | ScaleError::File { error, .. } => unspooled(&error),
            ScaleError::NotVerified(_) => not_verified(),
            ScaleError::Refused { error, .. } => error.into(),
        }
    }
}

fn unavailable(error: &dyn Display) -> Problem {
    tracing::error!(%error, "an executor could not count the rows of a job");
    let detail = "the executor of the job does not answer, or could not count its rows; the service's \
                  log has the reason";
    Problem::new(Code::ExecutorUnavailable, detail)
}

/// Without the reason, which can quote labels that are raw values.
fn not_verified() -> Problem {
    Problem::new(Code::VerificationFailed, NOT_VERIFIED)
}

fn unspooled(error: &io::Error) -> Problem {
    tracing::error!(%error, "the rows of a job could not be spooled");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Problem::new(
            Code::StorageFull,
            "the disk of the spool directory is full, so the rows of the job could not be spooled; run it \
             again when there is space",
        ),
        _ => Problem::new(
            Code::ExecutorUnavailable,
            "the rows of the job could not be spooled for its executor; the service's log has the reason",
        ),
    }
}
