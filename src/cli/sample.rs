//! `pais sample`: writes a table of fictitious persons, with its schema and a job.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pais_sample::Sample;

use super::new_file::NewFile;
use super::output::Failure;

/// Arguments of `pais sample`.
#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// Which table to write.
    #[arg(value_name = "NAME", value_parser = names())]
    sample: Sample,
    /// Number of rows; each table has its own default.
    #[arg(long, value_name = "N")]
    rows: Option<u64>,
    /// The same seed gives the same rows.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Directory for NAME.csv, NAME.schema.json and NAME.job.json.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

fn names() -> impl TypedValueParser<Value = Sample> {
    PossibleValuesParser::new(Sample::ALL.map(Sample::name)).try_map(|name| {
        let mut samples = Sample::ALL.into_iter();
        samples
            .find(|sample| sample.name() == name)
            .ok_or("unknown sample")
    })
}

impl SampleArgs {
    /// Writes the three files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let folder = &self.output;
        std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
        let name = self.sample.name();
        let place = |ending| folder.join(format!("{name}.{ending}"));
        let rows = self.rows.unwrap_or(self.sample.default_rows());
        let files = [
            NewFile::json(&place("schema.json"), &self.sample.schema())?,
            NewFile::json(&place("job.json"), &self.sample.job())?,
            NewFile::write(&place("csv"), |out| {
                self.sample.write_csv(rows, self.seed, out)
            })?,
        ];
        files.into_iter().try_for_each(NewFile::complete)
    }
}
