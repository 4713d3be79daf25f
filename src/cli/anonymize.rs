//! `pais anonymize`: a whole run on files, without server or database.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use pais::engine::{FinishedRelease, Observer, Phase, Prepared, StepItem, StepRecord};

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
        let input = TableFile::of(&self.input)?;
        let out = self.output.as_deref().map(TableFile::of).transpose()?;
        let bar = Bar::new();
        let schema = Arc::new(documents::schema(&self.schema)?);
        let mut job = documents::job(&self.job)?;
        job.seed = self.seed.or(job.seed);
        let misfit = |problem| documents::in_file(&self.job, problem);
        Prepared::check(&schema, &job).map_err(misfit)?;
        bar.progress(Phase::Reading, 0.0);
        let table = input.read(&schema)?;
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
        let Some(table) = release.tables.first() else {
            return Ok(());
        };
        match out {
            Some(file) => file.write(table),
            None => {
                let mut out = std::io::stdout().lock();
                let written = table.write_csv(&mut out).and_then(|()| out.flush());
                written.map_err(|error| Failure::file(Path::new("standard output"), &error))
            }
        }
    }
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
