//! `pais anonymize`: a whole run on files, without server or database.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use pais_anonymize::plan::Plan;
use pais_anonymize::{AnonymizationRun, Observer, Phase, StepItem, StepRecord, VerifiedRelease};
use pais_core::definition::Output;
use pais_core::table::ReleasedTable;

use super::bar::Bar;
use super::directory::Directory;
use super::documents;
use super::failure::Failure;
use super::table_file::TableFile;

/// Arguments of `pais anonymize`.
#[derive(Debug, Args)]
pub struct Anonymize {
    /// The dataset: the body of `POST /v1/datasets`, with inline taxonomies.
    #[arg(long, value_name = "S.json")]
    schema: PathBuf,
    /// The job: the body of `POST /v1/jobs` without `dataset_id`.
    #[arg(long, value_name = "J.json")]
    job: PathBuf,
    /// The raw table, by its ending: .csv, .ndjson (also .gz, .zst) or .parquet.
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The released table, by its ending; standard output as CSV when omitted. A directory where
    /// the output is anatomized.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Writes the utility and risk report.
    #[arg(long, value_name = "R.json")]
    report: Option<PathBuf>,
    /// Writes the steps of the run.
    #[arg(long, value_name = "T.json")]
    steps: Option<PathBuf>,
    /// Makes the order of rows repeatable; random when omitted.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Anonymize {
    /// Runs, and writes what was asked for; nothing is written unless all went well.
    ///
    /// # Errors
    /// A problem where the run fails, an unreadable file otherwise.
    pub fn run(&self) -> Result<(), Failure> {
        let input = TableFile::of(&self.input)?;
        let bar = Bar::new();
        let schema = Arc::new(documents::schema(&self.schema)?);
        let mut job = documents::job(&self.job)?;
        job.seed = self.seed.or(job.seed);
        let misfit = |problem| documents::in_file(&self.job, problem);
        let output = Plan::new(&schema, &job).map_err(misfit)?.output();
        let out = Destination::of(self.output.as_deref(), output)?;
        bar.progress(Phase::Reading, 0.0);
        let table = input.read_observed(&schema, &bar)?;
        let prepared = AnonymizationRun::new(schema, job, table, &bar)?;
        let steps = prepared.run(&bar)?;
        let release = prepared.release(&steps, None, &bar)?;
        bar.progress(Phase::Writing, 0.0);
        self.write(out, &release, &steps)?;
        bar.clear();
        Ok(())
    }

    fn write(
        &self,
        out: Destination,
        release: &VerifiedRelease,
        steps: &[StepRecord],
    ) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Steps<'a> {
            items: Vec<&'a StepItem>,
        }
        if let Some(path) = &self.report {
            documents::write(path, &release.report)?;
        }
        if let Some(path) = &self.steps {
            documents::write(
                path,
                &Steps {
                    items: steps.iter().map(|record| &record.item).collect(),
                },
            )?;
        }
        out.write(&release.tables)
    }
}

/// Where the released tables go.
enum Destination {
    StandardOutput,
    File(TableFile),
    Directory(Directory),
}

impl Destination {
    fn of(path: Option<&Path>, output: Output) -> Result<Self, Failure> {
        match (path, output) {
            (None, Output::Generalized) => Ok(Self::StandardOutput),
            (Some(path), Output::Generalized) => TableFile::of(path).map(Self::File),
            (Some(path), Output::Anatomized) => Directory::of(path).map(Self::Directory),
            (None, Output::Anatomized) => Err(Failure::Usage(
                "anatomized output is several tables; name a directory for them with -o".to_owned(),
            )),
        }
    }

    fn write(&self, tables: &[ReleasedTable]) -> Result<(), Failure> {
        let table = match self {
            Self::Directory(directory) => return directory.write(tables),
            Self::File(_) | Self::StandardOutput => tables.first(),
        };
        let Some(table) = table else { return Ok(()) };
        if let Self::File(file) = self {
            return file.write(table);
        }
        let mut out = std::io::stdout().lock();
        let written = table.write_csv(&mut out).and_then(|()| out.flush());
        written.map_err(|error| Failure::file(Path::new("standard output"), &error))
    }
}
