//! A whole run on the command line: from Parquet files to a verified release in a directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pais_anonymize::{CountedRun, Observer, StepItem};
use pais_core::definition::Job;
use pais_core::schema::Schema;
use pais_core::warning::{Warning, by_code};
use pais_verify::ReleaseVerification;

use crate::encoded_run::{CountedSearch, Engine, ScaledJob, VerifiedFiles};
use crate::error::ScaleError;
use crate::release::{Manifest, ReleaseDirectory};
use crate::remote_counter::{Executors, Resubmissions};
use crate::values::{ParquetRows, input_files};

/// A table to anonymize, and where its release goes.
#[derive(Clone, Debug)]
pub struct ScaleTask {
    /// A Parquet file, or a directory of them.
    pub input: PathBuf,
    /// The directory of the release, which does not exist yet or is empty. Temporary files are next to it.
    pub output: PathBuf,
    /// The declared columns.
    pub schema: Arc<Schema>,
    /// The job.
    pub job: Job,
    /// Bytes of memory; see [`ScaledJob::memory`].
    pub memory: u64,
    /// The executors that count the rows; `None` for the engine in this process.
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
    /// See [`CountedSearch::statements`].
    pub statements: usize,
    /// How many of them repeat a statement whose answer was discarded.
    pub resubmissions: Resubmissions,
}

/// Anonymizes a table whose rows are counted by DataFusion, in this process or by executors.
///
/// # Errors
/// [`ScaleError`]. A failed run leaves nothing behind, except an output directory that already existed.
pub fn anonymize(task: &ScaleTask, observer: &dyn Observer) -> Result<ScaledRelease, ScaleError> {
    Engine::default().anonymize(task, observer)
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
            executors,
        } = task;
        CountedRun::check(schema, job)?;
        refuse_full(output)?;
        let parent = match output.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let of_parent = |error| ScaleError::file(parent, error);
        let job = ScaledJob {
            schema: Arc::clone(schema),
            job: job.clone(),
            memory: *memory,
            executors: executors.clone(),
            spool: parent.to_owned(),
        };
        let files = input_files(input)?;
        let run = job.encode(ParquetRows { files, schema }, observer)?;
        let CountedSearch {
            outcome,
            statements,
            resubmissions,
        } = run.search_by(self, observer)?;
        // Nobody else reads files that are not verified: the directory around them is private.
        let private = tempfile::Builder::new()
            .prefix(".unfinished-")
            .tempdir_in(parent)
            .map_err(of_parent)?;
        let unfinished = private.path().join("release");
        std::fs::create_dir(&unfinished).map_err(of_parent)?;
        let mut directory = ReleaseDirectory(&unfinished);
        let VerifiedFiles {
            manifest,
            recoded,
            verification,
            ..
        } = run.release(&outcome, &mut directory, observer)?;
        directory.list(&manifest)?;
        std::fs::rename(&unfinished, output).map_err(|it| ScaleError::file(output, it))?;
        let warnings = run.warnings().into_iter();
        let warnings = warnings.chain(run.warnings_after(&outcome));
        let warnings = warnings.chain(verification.warnings.iter().cloned());
        Ok(ScaledRelease {
            manifest,
            warnings: by_code(warnings),
            steps: outcome
                .steps()
                .iter()
                .map(|record| record.item.clone())
                .collect(),
            cut: recoded.cut,
            verification,
            statements,
            resubmissions,
        })
    }
}

/// Refuses a directory that is not empty: nothing is overwritten.
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
