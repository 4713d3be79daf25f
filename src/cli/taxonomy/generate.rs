//! `pais taxonomy generate`: the hierarchy that is made from the values of a column.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use pais::problem::{Code, Problem};
use pais_core::definition::{
    ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, GeneratedHierarchy,
    TaxonomyReference, json,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::Tree;

use crate::cli::definitions::{DeclaredDataset, LIMITS, declared_text};
use crate::cli::files::Files;
use crate::cli::output::{Failure, in_file};
use crate::cli::sources::{DocumentSource, parse_dataset};
use crate::cli::table_file::{FormatName, TableFile, TextFlags};

use super::file::{self, HierarchyFormat};

/// The arguments of `pais taxonomy generate`.
#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// The dataset: the body of `POST /v1/datasets`, or the answer of `GET /v1/datasets/{id}`; a
    /// file, or the address of the dataset in a service, with a token in PAIS_TOKEN.
    #[arg(long, value_name = "S.json")]
    schema: DocumentSource,
    /// The column whose hierarchy is generated.
    #[arg(long, value_name = "NAME")]
    column: String,
    /// How it is generated, such as `{"generate": "prefix"}`, instead of what the column declares.
    #[arg(long, value_name = "JSON")]
    generate: Option<String>,
    /// The raw table, by its ending: .csv, .tsv, .ndjson (also .gz, .zst) or .parquet; `-` for
    /// standard input.
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The hierarchy; standard output when omitted. It contains the values of the column.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The form of the hierarchy: csv if OUT ends with .csv, else json.
    #[arg(long, value_name = "FORMAT")]
    format: Option<HierarchyFormat>,
    /// The name of the taxonomy in JSON; that of the column when omitted.
    #[arg(long)]
    name: Option<String>,
    /// The format of the raw table if its file extension does not show it; csv for standard input.
    #[arg(long, value_name = "FORMAT")]
    input_format: Option<FormatName>,
    #[command(flatten)]
    text: TextFlags,
}

impl GenerateArgs {
    /// The files that it reads and writes.
    pub(super) fn files(&self) -> Files {
        let files = Files::default().documents("--schema", [&self.schema]);
        let files = files.raw_table("INPUT", &self.input);
        files.main_output(self.output.as_deref())
    }

    /// Makes the hierarchy and writes it.
    ///
    /// # Errors
    /// A problem where the schema or the table is refused; otherwise what is wrong with the
    /// arguments.
    pub(super) fn run(&self) -> Result<(), Failure> {
        let input = TableFile::input(&self.input, self.input_format)?;
        let dataset = self.dataset()?;
        let input = input.written_as(&self.text.parameters(), &dataset.text)?;
        let table = input.read(&dataset.schema)?;
        let made = dataset.schema.with_made_hierarchies(&table);
        let made = made.map_err(|detail| Problem::new(Code::InvalidTaxonomy, detail))?;
        let tree = self.tree(&made).ok_or_else(|| {
            Failure::Usage(format!(
                "the column `{}` has no value in this table, so there is no hierarchy",
                self.column
            ))
        })?;
        let output = self.output.as_deref();
        let format = self.format;
        let format = format.unwrap_or_else(|| HierarchyFormat::of_output(output));
        let name = self.name.as_deref().unwrap_or(&self.column);
        file::write(&tree, name, format, output)
    }

    fn tree(&self, schema: &Schema) -> Option<Arc<Tree>> {
        let mut columns = schema.columns.iter();
        let column = columns.find(|column| *column.name() == *self.column)?;
        column.tree().cloned()
    }

    /// A dataset that reads the column as it is declared, and of the others the text only: their
    /// taxonomies and domains do not matter here.
    fn dataset(&self) -> Result<DeclaredDataset, Failure> {
        let source = &self.schema;
        let definition = parse_dataset(&source.read()?);
        let mut definition: DatasetDefinition =
            definition.map_err(|error| in_file(source, error))?;
        let mut is_there = false;
        for column in &mut definition.columns {
            if column.name == self.column {
                self.declare(column)?;
                is_there = true;
            } else {
                make_text(column);
            }
        }
        if !is_there {
            return Err(Failure::Usage(format!(
                "{source}: there is no column `{}`",
                self.column
            )));
        }
        let schema = Schema::resolve(&definition, LIMITS, |_| None);
        let schema = schema.map_err(|error| in_file(source, error))?;
        if !schema.has_made_hierarchies() && self.tree(&schema).is_none() {
            return Err(Failure::Usage(format!(
                "the intervals of the column `{}` are grown during a run; name another hierarchy \
                 with --generate",
                self.column
            )));
        }
        let text = declared_text(&definition, source)?;
        Ok(DeclaredDataset { schema, text })
    }

    /// Gives the column the hierarchy of `--generate`, and checks that it has one.
    fn declare(&self, column: &mut ColumnDefinition) -> Result<(), Failure> {
        if matches!(column.role, ColumnRole::Identifier | ColumnRole::Subject) {
            return Err(Failure::Usage(format!(
                "the column `{}` names persons and has no hierarchy",
                self.column
            )));
        }
        column.role = ColumnRole::QuasiIdentifier;
        if let Some(text) = &self.generate {
            let reference: TaxonomyReference = json::parse(text.as_bytes())
                .map_err(|error| Failure::Usage(format!("--generate: {}", error.detail)))?;
            // What belongs to intervals that are grown, or to another tree.
            (column.domain, column.round, column.round_range) = (None, None, false);
            if !matches!(
                reference,
                TaxonomyReference::Generated(GeneratedHierarchy::Ordered { .. })
            ) {
                column.order = None;
            }
            column.taxonomy = Some(reference);
        }
        let is_made = matches!(column.taxonomy, Some(TaxonomyReference::Generated(_)));
        if !is_made && (column.taxonomy.is_some() || column.order.is_none()) {
            return Err(Failure::Usage(format!(
                "the column `{}` does not say how its hierarchy is made; name it with \
                 --generate '{{\"generate\": …}}'",
                self.column
            )));
        }
        Ok(())
    }
}

/// Makes the column text that is released as it is. A set keeps how its items are written.
fn make_text(column: &mut ColumnDefinition) {
    if column.role != ColumnRole::Identifier {
        column.role = ColumnRole::Insensitive;
    }
    if column.kind != ColumnKind::Set {
        column.kind = ColumnKind::Categorical;
        column.separator = None;
    }
    (column.taxonomy, column.domain, column.order) = (None, None, None);
    (column.missing, column.format) = (None, None);
    (column.round, column.round_range) = (None, false);
}
