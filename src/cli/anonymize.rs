//! `pais anonymize`: a whole run on files, without server or database.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use pais::domain::{Code, DatasetDefinition, JobDefinition, Problem, json};
use pais::engine::{FinishedRelease, Observer, Phase, Prepared, StepItem, StepRecord};
use pais::table::chunk::Assembler;
use pais::table::csv::ReadFailure;
use pais::table::{Schema, Table, csv};
use pais::taxonomy::TreeLimits;

use super::failure::Failure;

/// Bounds of taxonomies on the command line, where the user's own memory is at stake.
const LIMITS: TreeLimits = TreeLimits {
    leaves: 10_000_000,
    depth: 60,
};

/// Arguments of `pais anonymize`.
#[derive(Debug, Args)]
pub struct Anonymize {
    /// The dataset: the body of `POST /v1/datasets`, with inline taxonomies.
    #[arg(long, value_name = "S.json")]
    schema: PathBuf,
    /// The job: the body of `POST /v1/jobs` without `dataset_id`.
    #[arg(long, value_name = "J.json")]
    job: PathBuf,
    /// The raw table, by its ending: .csv or .csv.gz.
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The released table, by its ending; standard output as CSV when omitted.
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
        let format = TableFile::of(&self.input)?;
        let out = self.output.as_deref().map(TableFile::of).transpose()?;
        let bar = Bar::new();
        let definition: DatasetDefinition = parse(&self.schema)?;
        let schema = Schema::resolve(&definition, LIMITS, |_| None).map_err(|problem| {
            in_file(
                &self.schema,
                if problem.code == Code::NotFound {
                    let detail = "on the command line a taxonomy stands inline, not by id";
                    Problem::with(Code::InvalidSchema, detail, problem.errors)
                } else {
                    problem
                },
            )
        })?;
        let schema = Arc::new(schema);
        let mut job: JobDefinition = parse(&self.job)?;
        for (given, field) in [
            (job.dataset_id.is_some(), "dataset_id"),
            (job.submissions.is_some(), "submissions"),
        ] {
            if given {
                let detail =
                    format!("on the command line a job has no `{field}`; INPUT is the table");
                return Err(in_file(
                    &self.job,
                    Problem::at(Code::InvalidShape, format!("/{field}"), detail),
                )
                .into());
            }
        }
        job.seed = self.seed.or(job.seed);
        Prepared::check(&schema, &job).map_err(|problem| in_file(&self.job, problem))?;
        bar.progress(Phase::Reading, 0.0);
        let table = format.read(&self.input, &schema)?;
        let prepared = Prepared::new(schema, job, table, &bar)?;
        let steps = prepared.run(&bar)?;
        let release = prepared.release(&steps, None, &bar)?;
        bar.progress(Phase::Writing, 0.5);
        self.write(out, &release, &steps)?;
        bar.bar.finish_and_clear();
        Ok(())
    }

    fn write(
        &self,
        out: Option<TableFile>,
        release: &FinishedRelease,
        steps: &[StepRecord],
    ) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Steps<'a> {
            items: Vec<&'a StepItem>,
        }
        if let Some(path) = &self.report {
            write_json(path, &release.report)?;
        }
        if let Some(path) = &self.steps {
            write_json(
                path,
                &Steps {
                    items: steps.iter().map(|record| &record.item).collect(),
                },
            )?;
        }
        let Some(table) = release.tables.first() else {
            return Ok(());
        };
        match (&self.output, out) {
            (Some(path), Some(file)) => file.write(path, table),
            _ => {
                let mut out = std::io::stdout().lock();
                let written = table.write_csv(&mut out).and_then(|()| out.flush());
                written.map_err(|error| Failure::file(Path::new("standard output"), &error))
            }
        }
    }
}

/// A table in a file, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableFile {
    Csv,
    CsvGz,
}

impl TableFile {
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase());
        let name = name.unwrap_or_default();
        if name.ends_with(".csv") {
            Ok(Self::Csv)
        } else if name.ends_with(".csv.gz") {
            Ok(Self::CsvGz)
        } else {
            Err(Failure::Usage(format!(
                "{}: the format is told by the ending, which is .csv or .csv.gz",
                path.display()
            )))
        }
    }

    fn read(self, path: &Path, schema: &Schema) -> Result<Table, Failure> {
        let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
        let source: Box<dyn Read> = match self {
            Self::Csv => Box::new(file),
            Self::CsvGz => Box::new(flate2::read::MultiGzDecoder::new(file)),
        };
        let mut assembler = Assembler::default();
        match csv::read(schema, source, |chunk| assembler.push(chunk)) {
            Ok(_) => Ok(assembler.finish()),
            Err(ReadFailure::Refused(problem)) => Err(problem.into()),
            Err(ReadFailure::Source(error)) => Err(Failure::file(path, &error)),
            Err(ReadFailure::Sink(error)) => {
                Err(Problem::new(Code::Internal, error.to_string()).into())
            }
        }
    }

    fn write(self, path: &Path, table: &pais::table::ReleasedTable) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::file(path, &error);
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        match self {
            Self::Csv => table.write_csv(&mut out).map_err(failed)?,
            Self::CsvGz => {
                let level = flate2::Compression::default();
                let mut packed = flate2::write::GzEncoder::new(&mut out, level);
                table.write_csv(&mut packed).map_err(failed)?;
                packed.finish().map_err(failed)?;
            }
        }
        out.flush().map_err(failed)
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let body = std::fs::read(path).map_err(|error| Failure::file(path, &error))?;
    json::parse(&body).map_err(|problem| in_file(path, problem).into())
}

/// The same problem, told of which file it is.
fn in_file(path: &Path, problem: Problem) -> Problem {
    Problem {
        detail: format!("{}: {}", path.display(), problem.detail),
        ..problem
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
    out.write_all(b"\n")
        .and_then(|()| out.flush())
        .map_err(failed)
}

/// A progress bar on a terminal, nothing elsewhere.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self {
                bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
            };
        }
        let bar = ProgressBar::new(1000);
        if let Ok(style) = ProgressStyle::with_template("{msg:>10} [{bar:40}] {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }
}

impl Observer for Bar {
    fn progress(&self, phase: Phase, fraction: f64) {
        self.bar.set_message(phase.as_str());
        self.bar
            .set_position((fraction.clamp(0.0, 1.0) * 1000.0) as u64);
    }

    fn must_stop(&self) -> bool {
        false
    }
}
