//! `pais verify`: checks a finished table, from any source, against a privacy model.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use pais::problem::{Code, Problem};
use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_verify::{ReleaseError, ReleaseTables, verify_release};

use super::directory::Directory;
use super::documents::in_file;
use super::failure::Failure;
use super::input_format::InputFormat;
use super::table_file::TableFile;
use super::{anatomized, documents, verify_text};

/// Arguments of `pais verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The dataset: the body of `POST /v1/datasets`, with inline taxonomies.
    #[arg(long, value_name = "S.json")]
    schema: PathBuf,
    /// The job: the body of `POST /v1/jobs` without `dataset_id`.
    #[arg(long, value_name = "J.json")]
    job: PathBuf,
    /// The finished table, by its ending: .csv, .tsv, .ndjson (also .gz, .zst) or .parquet; or the
    /// directory of an anatomized release.
    #[arg(value_name = "RELEASE")]
    release: PathBuf,
    /// The raw table: truthfulness and lost records are checked too. An anatomized release
    /// cannot be checked without, nor K over the persons of a subject column. `-` for standard
    /// input.
    #[arg(long, value_name = "INPUT")]
    raw: Option<PathBuf>,
    #[command(flatten)]
    format: InputFormat,
}

impl Verify {
    /// Checks, and prints what was found to standard output; exit status 1 where something does
    /// not hold, else 0.
    ///
    /// # Errors
    /// For what cannot be read.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        self.check().map_err(Failure::unreadable)
    }

    fn check(&self) -> Result<ExitCode, Failure> {
        let is_anatomized = self.release.is_dir();
        if is_anatomized && self.raw.is_none() {
            return Err(Failure::Usage(format!(
                "{}: an anatomized release is checked against the raw table; give it with --raw",
                self.release.display()
            )));
        }
        if self.raw.is_none() && !self.format.is_empty() {
            return Err(Failure::Usage(
                "--format, --delimiter, --decimal, --thousands and --encoding are for the raw \
                 table; give it with --raw, or leave them out"
                    .to_owned(),
            ));
        }
        let raw = self.raw.as_deref().map(|path| self.format.table(path));
        let raw = raw.transpose()?;
        let schema = documents::schema(&self.schema)?;
        let job = documents::single_job(&self.job)?;
        let schema = documents::schema_of_job(schema, &job, &self.job)?;
        let release = match is_anatomized {
            true => anatomized::read(&schema, &Directory::of(&self.release)?)?,
            false => {
                let table = TableFile::of(&self.release)?.read_finished(&schema)?;
                ReleaseTables::Generalized(table)
            }
        };
        let raw = raw.map(|raw| raw.read(&schema)).transpose()?;
        let found = verify_release(&schema, &job, &release, raw, &Cancellation::new())
            .map_err(|error| self.failure(error))?;
        let width = schema.stored_with(ColumnRole::QuasiIdentifier).len();
        Ok(verify_text::print(&found, width))
    }

    fn failure(&self, error: ReleaseError) -> Failure {
        match error {
            ReleaseError::Job(error) => in_file(&self.job, error).into(),
            error => {
                let problem = Problem::new(Code::InvalidHeader, error.to_string());
                in_file(&self.release, problem).into()
            }
        }
    }
}
