//! `pais transform`: maps new raw rows through the cut of a release.

use std::path::PathBuf;

use clap::Args;
use pais::problem::{Code, Problem};
use pais_core::codebook::{input_schema, transform};

use super::definitions::OptionalSchemaArgs;
use super::files::Files;
use super::output::{Failure, in_file, print};
use super::sources::{DocumentSource, load_release};
use super::table_file::{InputFormat, TableFile};

/// Arguments of `pais transform`.
#[derive(Debug, Args)]
pub(crate) struct Transform {
    /// The release: the answer of `GET /v1/releases/{id}`; a file, or the address of the release in
    /// a service, with a token in PAIS_TOKEN.
    #[arg(long, value_name = "R.json")]
    release: DocumentSource,
    #[command(flatten)]
    schema: OptionalSchemaArgs,
    /// New raw rows, by its ending: .csv, .tsv, .ndjson (also .gz, .zst) or .parquet.
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    #[command(flatten)]
    format: InputFormat,
    /// Where the mapped rows are written, by its ending: .csv, .ndjson (also .gz, .zst) or .parquet;
    /// CSV on standard output by default.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Transform {
    /// The files that it reads and writes.
    pub(super) fn files(&self) -> Files {
        let files = self.schema.files().documents("--release", [&self.release]);
        let files = files.raw_table("INPUT", &self.input);
        files.main_output(self.output.as_deref())
    }

    /// Maps the rows, and writes them.
    ///
    /// # Errors
    /// For what cannot be read, for a release without one cut, and for cells that have no label.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let output = self.output.as_deref().map(TableFile::output).transpose()?;
        let schema = self.schema.given().map(|schema| schema.load());
        let dataset = schema.transpose()?;
        let declared = dataset.as_ref().map_or_else(Default::default, |it| it.text);
        let input = self.format.table(&self.input, &declared)?;
        if input.is_standard_input() {
            let detail = "the header of the rows is read before the rows; name a file";
            return Err(Failure::file(&self.input, detail));
        }
        let release = load_release(&self.release)?;
        let Some(cut) = &release.terms.cut else {
            let detail = "the release has no cut, because its rows are recoded in groups or not at \
                          all; only a release with global recoding maps new rows";
            let problem = Problem::new(Code::InvalidValue, detail);
            return Err(in_file(&self.release, problem).into());
        };
        let raw = match dataset {
            Some(dataset) => dataset.schema,
            None => release
                .codebook
                .raw_schema()
                .map_err(|error| in_file(&self.release, error))?,
        };
        let codebook = &release.codebook;
        let known = |name: &str| raw.columns.iter().any(|column| column.name() == name);
        if let Some(column) = cut.keys().find(|name| !known(name)) {
            return Err(Failure::Usage(format!(
                "--schema: it does not declare the column `{column}` of the release; give the schema of the \
                 dataset that the release is of"
            )));
        }
        let read_by = input_schema(codebook, &raw, &input.names()?);
        let table = input.read(&read_by)?;
        let mapped = transform(codebook, cut, &raw, &read_by, table, input.first_line());
        let mapped = mapped.map_err(|error| in_file(self.input.display(), error))?;
        match output {
            Some(output) => output.write(&mapped)?.complete(),
            None => print(|out| pais_io::write::csv(&mapped, out)),
        }
    }
}
