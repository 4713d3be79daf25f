//! `pais sample`: writes a table of fictitious persons, with its schema and a job.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pais_sample::Sample;

use super::output::{Failure, write_json};

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
        write_json(
            &folder.join(format!("{name}.schema.json")),
            &self.sample.schema(),
        )?;
        write_json(&folder.join(format!("{name}.job.json")), &self.sample.job())?;
        let path = folder.join(format!("{name}.csv"));
        self.table(&path)
            .map_err(|error| Failure::file(&path, error))
    }

    fn table(&self, path: &Path) -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let rows = self.rows.unwrap_or(self.sample.default_rows());
        self.sample.write_csv(rows, self.seed, &mut out)?;
        out.flush()
    }
}
