//! `pais anonymize`: a whole run on files, without server or database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pais_anonymize::{
    AnonymizationRun, CountedRun, JobPlan, Observer, Phase, RecodingComparison, StepItem,
    StepRecord, VerifiedRelease, run_sweep,
};
use pais_core::definition::{JobDefinition, JobError, JobErrorKind, Output, Sweep, first_list};
use pais_core::schema::Schema;
use pais_core::table::ReleasedTable;
use pais_core::warning::by_code;
use pais_io::read::IdentifierRepeats;
use serde_json::json;

use super::bar::Bar;
use super::definitions::{self, SchemaArgs};
use super::directory::Directory;
use super::files::Files;
use super::new_file::NewFile;
use super::output::{self, Failure, Style, in_file, refuse_unwritable};
use super::scale::{self, ExecutorArgs, ScaledRun};
use super::sources::DocumentSource;
use super::summary::{self, Summary, SweepFile};
use super::table_file::{InputFormat, TableFile};

/// Arguments of `pais anonymize`.
#[derive(Debug, Args)]
pub(crate) struct Anonymize {
    #[command(flatten)]
    schema: SchemaArgs,
    /// The job: the body of `POST /v1/jobs` without `dataset_id`, or the answer of
    /// `GET /v1/jobs/{id}`; a file, or the address of the job in a service.
    #[arg(long, value_name = "J.json")]
    job: DocumentSource,
    /// The raw table, by its ending: .csv, .tsv, .ndjson (also .gz, .zst) or .parquet; `-` for
    /// standard input.
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    #[command(flatten)]
    format: InputFormat,
    /// The released table, by its ending; standard output as CSV when omitted. A directory where
    /// the output is anatomized, and with an executor.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Writes the utility and risk report.
    #[arg(long, value_name = "R.json")]
    report: Option<PathBuf>,
    /// Writes the steps of the run.
    #[arg(long, value_name = "T.json")]
    steps: Option<PathBuf>,
    /// Makes the order of rows repeatable; random when omitted. For tests only: anyone who guesses the seed
    /// and has the rows knows the order.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    executors: ExecutorArgs,
    /// Prints the summary and errors as JSON, as it does if standard error is not a terminal.
    #[arg(long)]
    pub(super) json: bool,
}

impl Anonymize {
    /// The files that it reads and writes.
    pub(super) fn files(&self) -> Files {
        let files = self.executors.files(self.schema.files());
        let files = files.documents("--job", [&self.job]);
        let files = files.raw_table("INPUT", &self.input);
        let files = files.main_output(self.output.as_deref());
        let files = files.output("--report", self.report.as_deref());
        files.output("--steps", self.steps.as_deref())
    }

    /// Runs, and writes the requested files; nothing is written unless the run succeeds. A job
    /// with lists of parameters writes a table of its combinations in place of a release; the exit status is
    /// 1 if none of them has a result.
    ///
    /// # Errors
    /// A problem where the run fails, an unreadable file otherwise.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let documents = [&self.report, &self.steps].into_iter().flatten();
        documents
            .map(PathBuf::as_path)
            .try_for_each(refuse_unwritable)?;
        let dataset = self.schema.load()?;
        if !self.executors.executors.is_empty() {
            self.scaled(dataset.schema)?;
            return Ok(ExitCode::SUCCESS);
        }
        let input = self.format.table(&self.input, &dataset.text)?;
        let bar = Bar::new();
        let mut job = definitions::job_to_run(&self.job)?;
        let schema = Arc::new(definitions::schema_of_job(dataset.schema, &job, &self.job)?);
        job.seed = self.seed.or(job.seed);
        let sweep = Sweep::new(&job).map_err(|error| in_file(&self.job, error))?;
        let has_result = if sweep.is_sweep {
            self.sweep(&input, schema, &job, &sweep, &bar)?
        } else {
            self.anonymize(&input, schema, job, &bar)?;
            true
        };
        bar.clear();
        Ok(ExitCode::from(u8::from(!has_result)))
    }

    fn anonymize(
        &self,
        input: &TableFile,
        schema: Arc<Schema>,
        job: JobDefinition,
        bar: &Bar,
    ) -> Result<(), Failure> {
        let misfit = |error| in_file(&self.job, error);
        let job = job.parse().map_err(misfit)?;
        let output = JobPlan::new(&schema, &job).map_err(misfit)?.output();
        let out = Destination::of(self.output.as_deref(), output, &schema)?;
        bar.progress(Phase::Reading, 0.0);
        let mut repeats = IdentifierRepeats::new(&schema);
        let table = input.read_observed(&schema, repeats.as_mut(), bar)?;
        let rows = table.rows as u64;
        let declared = schema.warnings();
        let comparison = RecodingComparison::new(&schema, &job, &table);
        let run = AnonymizationRun::new(schema, job, table, bar)?;
        let found = run.search(bar)?;
        let verified = run.verify(&found, None, bar)?;
        // The tables are written while they are measured.
        let (report, (written, compared)) = rayon::join(
            || run.measure(&found, &verified, bar),
            || {
                rayon::join(
                    || out.write(verified.tables()),
                    || comparison.map(|it| it.warning(&run, &found, bar)),
                )
            },
        );
        let mut release = verified.with_report(report?);
        let of_rows = repeats.iter().flat_map(|repeats| repeats.warnings(rows));
        release.warnings = by_code(of_rows.chain(release.warnings));
        let mut files = written?;
        let compared = compared.transpose()?.flatten();
        bar.progress(Phase::Writing, 0.0);
        files.extend(self.documents(&release, found.steps())?);
        files.into_iter().try_for_each(NewFile::complete)?;
        bar.clear();
        let of_job = declared.into_iter().chain(run.warnings()).chain(compared);
        Summary::new(&release, of_job).write(Style::of_errors(self.json));
        Ok(())
    }

    /// Runs with an executor.
    fn scaled(&self, schema: Schema) -> Result<(), Failure> {
        if !self.format.is_empty() {
            return Err(Failure::Usage(
                "an executor reads Parquet; leave out --executor, or the flags of text".to_owned(),
            ));
        }
        let Some(output) = &self.output else {
            return Err(Failure::Usage(
                "an executor writes several files; name a directory for them with -o".to_owned(),
            ));
        };
        let mut job = definitions::job_to_run(&self.job)?;
        let schema = definitions::schema_of_job(schema, &job, &self.job)?;
        job.seed = self.seed.or(job.seed);
        let misfit = |error| in_file(&self.job, error);
        if Sweep::new(&job).map_err(misfit)?.is_sweep {
            let detail = "lists of values cannot be run by an executor; give one value, or leave \
                          `executor` out";
            let pointer = first_list(&job).unwrap_or_default();
            return Err(misfit(JobError::at(JobErrorKind::Unfit, pointer, detail)).into());
        }
        let job = job.parse().map_err(misfit)?;
        CountedRun::check(&schema, &job).map_err(misfit)?;
        scale::run(&ScaledRun {
            input: &self.input,
            output,
            report: self.report.as_deref(),
            steps: self.steps.as_deref(),
            schema: Arc::new(schema),
            job,
            executors: &self.executors,
            style: Style::of_errors(self.json),
        })
    }

    /// Whether a combination has a result.
    fn sweep(
        &self,
        input: &TableFile,
        schema: Arc<Schema>,
        job: &JobDefinition,
        sweep: &Sweep,
        bar: &Bar,
    ) -> Result<bool, Failure> {
        for (option, path) in [("--report", &self.report), ("--steps", &self.steps)] {
            if path.is_some() {
                return Err(Failure::Usage(format!(
                    "{option} is for one release; remove it, or give one value for each parameter"
                )));
            }
        }
        let out = SweepFile::of(self.output.as_deref())?;
        let misfit = |error| in_file(&self.job, error);
        let jobs = sweep.combinations.iter().map(|one| one.apply(job).parse());
        let jobs = jobs.collect::<Result<Vec<_>, _>>().map_err(misfit)?;
        for combination in &jobs {
            let plan = JobPlan::new(&schema, combination).map_err(misfit)?;
            if !plan.takes_sweeps() {
                let detail = "lists of values are for `lkc` and its special cases, and for \
                              groups that are generalized; give one value";
                let pointer = first_list(job).unwrap_or_default();
                return Err(misfit(JobError::at(JobErrorKind::Unfit, pointer, detail)).into());
            }
        }
        let Some(first) = jobs.into_iter().next() else {
            out.write(&[])?;
            return Ok(true);
        };
        bar.progress(Phase::Reading, 0.0);
        let table = input.read_observed(&schema, None, bar)?;
        let run = AnonymizationRun::new(schema, first, table, bar)?;
        let outcomes = run_sweep(&run, job, sweep, bar)?;
        bar.progress(Phase::Writing, 0.0);
        out.write(&outcomes)?;
        bar.clear();
        let succeeded = outcomes.iter().filter(|outcome| outcome.steps.is_ok());
        let succeeded = succeeded.count();
        summary::write_sweep(outcomes.len(), succeeded, Style::of_errors(self.json));
        Ok(succeeded > 0)
    }

    /// The report and the steps, as far as they are requested.
    fn documents(
        &self,
        release: &VerifiedRelease,
        steps: &[StepRecord],
    ) -> Result<Vec<NewFile>, Failure> {
        let mut files = Vec::new();
        if let Some(path) = &self.report {
            let mut report = json!(release.report());
            report["warnings"] = json!(release.warnings);
            files.push(NewFile::json(path, &report)?);
        }
        if let Some(path) = &self.steps {
            let items: Vec<&StepItem> = steps.iter().map(|record| &record.item).collect();
            let items = BTreeMap::from([("items", items)]);
            files.push(NewFile::json(path, &items)?);
        }
        Ok(files)
    }
}

/// Where the released tables go.
enum Destination {
    StandardOutput,
    File(TableFile),
    Directory(Directory),
}

impl Destination {
    fn of(path: Option<&Path>, output: Output, schema: &Schema) -> Result<Self, Failure> {
        match (path, output) {
            (None, Output::Generalized) => Ok(Self::StandardOutput),
            (Some(path), Output::Generalized) => TableFile::output(path).map(Self::File),
            (Some(path), Output::Anatomized) => {
                let directory = Directory::of(path)?;
                directory.check_output(schema)?;
                Ok(Self::Directory(directory))
            }
            (None, Output::Anatomized) => Err(Failure::Usage(
                "anatomized output is several tables; name a directory for them with -o".to_owned(),
            )),
        }
    }

    /// Writes the tables: those in files are to be completed.
    fn write(&self, tables: &[ReleasedTable]) -> Result<Vec<NewFile>, Failure> {
        let table = tables.first();
        match (self, table) {
            (Self::Directory(directory), _) => directory.write(tables),
            (Self::File(file), Some(table)) => Ok(vec![file.write(table)?]),
            (Self::StandardOutput, Some(table)) => {
                output::print(|out| pais_io::write::csv(table, out))?;
                Ok(Vec::new())
            }
            (_, None) => Ok(Vec::new()),
        }
    }
}
