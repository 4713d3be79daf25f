//! `pais schema`: proposes the schema of a table.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pais_io::draft::{Draft, DraftOptions};

use super::output::{Failure, note, print_json, write_json};
use super::table_file::{FormatName, TableFile, TextFlags};

/// Works with schemas.
#[derive(Subcommand)]
pub(crate) enum SchemaCommand {
    /// Propose a schema for a table, with the reasons for each column; how its text is written is
    /// found in the file where no flag says it
    Draft(DraftArgs),
}

/// The arguments of `pais schema draft`.
#[derive(Args)]
pub(crate) struct DraftArgs {
    /// The table, by its ending: .csv, .tsv, .ndjson (also .gz, .zst) or .parquet; `-` is standard
    /// input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The schema; standard output when omitted.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Prints the schema, the format of the text and the reasons as one document.
    #[arg(long)]
    pub(super) json: bool,
    /// The name of the dataset.
    #[arg(long, default_value = "draft")]
    name: String,
    /// The format of the table where its ending does not say it; csv for standard input.
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
    #[command(flatten)]
    text: TextFlags,
}

impl DraftArgs {
    /// Proposes the schema and writes it.
    ///
    /// # Errors
    /// A problem where the table is refused, an unreadable file otherwise.
    pub(super) fn run(&self) -> Result<(), Failure> {
        let table = TableFile::input(&self.file, self.format)?;
        let options = DraftOptions {
            name: &self.name,
            ..DraftOptions::default()
        };
        let draft = table.draft(self.text.parameters(), options)?;
        if !self.json {
            print_reasons(&draft);
        }
        match (&self.output, self.json) {
            (Some(path), true) => write_json(path, &draft),
            (Some(path), false) => write_json(path, &draft.dataset),
            (None, true) => print_json(&draft),
            (None, false) => print_json(&draft.dataset),
        }
    }
}

/// Writes the reasons to standard error, one line each.
fn print_reasons(draft: &Draft) {
    let format = &draft.format;
    let thousands = format
        .thousands()
        .map_or(String::new(), |mark| format!(", thousands `{mark}`"));
    note(format_args!(
        "text: delimiter `{}`, decimal `{}`{thousands}, encoding {}",
        format.delimiter(),
        format.decimal(),
        format.encoding()
    ));
    for (column, sentences) in &draft.reasons {
        note(format_args!("{column}: {}", sentences.join("; ")));
    }
}
