//! `pais anonymize --executor`: a table that does not fit the memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pais::memory::MemorySize;
use pais_core::definition::Job;
use pais_core::schema::Schema;

use super::files::Files;
use super::output::{Failure, Style};

/// Who counts the rows, and what they need.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecutorArgs {
    /// Counts the rows with an engine, for a table that does not fit in memory: `in-process`, or
    /// the addresses of executors, such as http://127.0.0.1:5051, each of which counts a share of the rows. INPUT is a
    /// Parquet file or a directory of them, OUT a new directory of Parquet files. Needs a program that
    /// is built with the feature `scale`.
    #[arg(long = "executor", value_name = "NAME", value_delimiter = ',')]
    pub(crate) executors: Vec<String>,
    /// Memory of the search, and of the engine in this program, such as 256MiB.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1GiB",
        requires = "executors"
    )]
    memory: MemorySize,
    /// The directory that this program and the executors see. The rows are there as numbers, encrypted,
    /// until the run ends.
    #[arg(long, value_name = "DIR", requires = "executors")]
    spool: Option<PathBuf>,
    /// The key shared with the executors: a file made by `pais keys generate`.
    #[arg(long, value_name = "FILE", requires = "executors")]
    executor_key: Option<PathBuf>,
    /// The client certificate for executors with https:// (PEM).
    #[arg(long, value_name = "FILE", requires = "executors")]
    executor_tls_certificate: Option<PathBuf>,
    /// The private key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "executors")]
    executor_tls_key: Option<PathBuf>,
    /// The certificate authority of the executors (PEM).
    #[arg(long, value_name = "FILE", requires = "executors")]
    executor_tls_authority: Option<PathBuf>,
}

impl ExecutorArgs {
    /// With the files that it names.
    pub(super) fn files(&self, files: Files) -> Files {
        let named = [
            ("--executor-key", &self.executor_key),
            ("--executor-tls-certificate", &self.executor_tls_certificate),
            ("--executor-tls-key", &self.executor_tls_key),
            ("--executor-tls-authority", &self.executor_tls_authority),
        ];
        let named = named.into_iter();
        named.fold(files, |files, (option, path)| match path {
            Some(path) => files.input(option, path),
            None => files,
        })
    }
}

/// What a run with an executor reads and writes.
#[cfg_attr(
    not(feature = "scale"),
    expect(dead_code, reason = "only the engine reads it")
)]
pub(crate) struct ScaledRun<'a> {
    /// A Parquet file, or a directory of them.
    pub(crate) input: &'a Path,
    /// The directory of the release.
    pub(crate) output: &'a Path,
    /// Where the report goes.
    pub(crate) report: Option<&'a Path>,
    /// Where the steps go.
    pub(crate) steps: Option<&'a Path>,
    /// The columns, with the roles of the job.
    pub(crate) schema: Arc<Schema>,
    /// The job.
    pub(crate) job: Job,
    /// Who counts the rows.
    pub(crate) executors: &'a ExecutorArgs,
    /// How the summary is written.
    pub(crate) style: Style,
}

/// Says that the program has no engine.
///
/// # Errors
/// Always.
#[cfg(not(feature = "scale"))]
pub(crate) fn run(_: &ScaledRun<'_>) -> Result<(), Failure> {
    Err(Failure::Usage(
        "this program was built without `scale`, so it has no executor; build it with `cargo build \
         --release --features scale`, or leave --executor out"
            .to_owned(),
    ))
}

#[cfg(feature = "scale")]
pub(crate) use with_engine::run;

#[cfg(feature = "scale")]
mod with_engine {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use pais::executors::ExecutorOptions;
    use pais::memory::{MemorySize, forbid_dumps};
    use pais::problem::{Code, Problem};
    use pais_anonymize::StepItem;
    use pais_core::table::{UnchangedRisk, Verdict};
    use pais_core::warning::Warning;
    use pais_scale::{Executors, Manifest, Resubmissions, ScaleError, ScaleTask, ScaledRelease};
    use pais_verify::PrivacyFinding;
    use serde::Serialize;

    use super::{ExecutorArgs, Failure, ScaledRun, Style};
    use crate::cli::bar::Bar;
    use crate::cli::new_file::NewFile;
    use crate::cli::output::{self, in_file};
    use crate::cli::process;

    /// Anonymizes, and writes the release, its report and its steps; nothing is written unless the
    /// verifier accepts the files.
    ///
    /// # Errors
    /// A problem where the run fails, an unreadable file otherwise.
    pub(crate) fn run(run: &ScaledRun<'_>) -> Result<(), Failure> {
        // The rows of a large release are put into their order in up to 1,024 files at once.
        process::raise_open_files();
        let MemorySize(memory) = run.executors.memory;
        let executors = executors(run.executors)?;
        let task = ScaleTask {
            input: run.input.to_owned(),
            output: run.output.to_owned(),
            schema: run.schema.clone(),
            job: run.job.clone(),
            memory,
            executors,
        };
        let bar = Bar::new();
        let done = pais_scale::anonymize(&task, &bar);
        bar.clear();
        let release = done.map_err(failure)?;
        let report = ScaledReport::of(&release);
        if let Some(path) = run.report {
            NewFile::json(path, &report)?.complete()?;
        }
        if let Some(path) = run.steps {
            let items = BTreeMap::from([("items", &release.steps)]);
            NewFile::json(path, &items)?.complete()?;
        }
        report.write(run.style);
        Ok(())
    }

    /// The executors that are named; `None` for the engine in this program.
    fn executors(args: &ExecutorArgs) -> Result<Option<Arc<Executors>>, Failure> {
        let options = ExecutorOptions {
            url: args.executors.join(","),
            memory: args.memory,
            spool: args.spool.clone(),
            key_file: args.executor_key.clone(),
            tls_certificate: args.executor_tls_certificate.clone(),
            tls_key: args.executor_tls_key.clone(),
            tls_authority: args.executor_tls_authority.clone(),
        };
        if options.key_file.is_some() {
            forbid_dumps();
        }
        options.processes().map_err(|reason| {
            Failure::Usage(format!(
                "--executor {reason}; the flags are --spool, --executor-key (`key_file`), \
                 --executor-tls-certificate, --executor-tls-key and --executor-tls-authority"
            ))
        })
    }

    fn failure(error: ScaleError) -> Failure {
        match error {
            ScaleError::Run(error) => error.into(),
            ScaleError::Refused { path, error } => in_file(path.display(), error).into(),
            ScaleError::File { path, error } => Failure::file(&path, error),
            ScaleError::NotVerified(_) => {
                let detail = pais::problem::NOT_VERIFIED;
                Problem::new(Code::VerificationFailed, detail).into()
            }
            error @ (ScaleError::Spool(_) | ScaleError::Engine(_)) => {
                Failure::Usage(error.to_string())
            }
        }
    }

    /// What counts say of a release. Measures that compare raw and released rows are not among it.
    #[derive(Serialize)]
    struct ScaledReport<'a> {
        /// The release at a glance.
        verdict: Verdict,
        /// Its rows.
        rows: u64,
        /// Always 0.
        suppressed_rows: u64,
        /// The table after the last step.
        utility: Option<&'a StepItem>,
        /// What the verifier found in the files.
        verification: Option<&'a PrivacyFinding>,
        /// What the columns that are released unchanged say of the rows.
        unchanged: &'a UnchangedRisk,
        /// Column to the labels of its cut.
        cut: &'a BTreeMap<String, Vec<String>>,
        /// Number of statements that the engine was given.
        statements: usize,
        /// How many of them were submitted again, by reason.
        resubmissions: Resubmissions,
        /// The files.
        files: &'a Manifest,
        /// What the holder should know.
        warnings: &'a [Warning],
    }

    impl<'a> ScaledReport<'a> {
        fn of(release: &'a ScaledRelease) -> Self {
            let found = &release.verification;
            Self {
                verdict: Verdict::of(found.holds(), &found.unchanged),
                rows: release.manifest.rows,
                suppressed_rows: 0,
                utility: release.steps.last(),
                verification: found.privacy.as_ref(),
                unchanged: &found.unchanged,
                cut: &release.cut,
                statements: release.statements,
                resubmissions: release.resubmissions,
                files: &release.manifest,
                warnings: &release.warnings,
            }
        }

        /// Writes the summary to standard error.
        fn write(&self, style: Style) {
            if style != Style::Lines {
                return output::note_json(self);
            }
            output::note(format_args!("{:<20} {}", "rows", self.rows));
            output::note(format_args!("{:<20} {}", "files", self.files.files.len()));
            if let Some(last) = self.utility {
                output::note(format_args!("{:<20} {}", "groups", last.groups));
                output::note(format_args!(
                    "{:<20} {}",
                    "smallest group", last.smallest_group
                ));
                output::note(format_args!("{:<20} {:.4}", "NCP", last.ncp));
                output::note(format_args!("{:<20} {:.4}", "DR", last.dr));
            }
            if self.resubmissions.total() > 0 {
                output::note(format_args!(
                    "{:<20} {}",
                    "submitted again", self.resubmissions
                ));
            }
            for warning in self.warnings {
                output::note(format_args!("{:<20} {}", "warning", warning.detail));
            }
        }
    }
}
