//! `pais schema`: proposes the schema of a table.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pais_io::draft::{Draft, DraftOptions};

use super::files::Files;
use super::interview;
use super::new_file::NewFile;
use super::output::{Failure, note, print_json};
use super::table_file::{FormatName, TableFile, TextFlags};

/// Works with schemas.
#[derive(Subcommand)]
pub(crate) enum SchemaCommand {
    /// Propose a schema for a table, with the reasons for each column and the questions that the table
    /// leaves open; the text format is detected from the file unless flags give it
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
    /// Asks the open questions on standard error and reads the answers from standard input. An empty
    /// line takes the proposed answer, the first choice.
    #[arg(long)]
    interactive: bool,
    /// Prints the schema, the format of the text, the reasons and the open questions as one document.
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
    /// The files that it reads and writes.
    pub(super) fn files(&self) -> Files {
        let files = Files::default().raw_table("FILE", &self.file);
        files.main_output(self.output.as_deref())
    }

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
        if self.interactive && self.file == Path::new("-") {
            let detail = "standard input is the table, so it has no answers; name a file";
            return Err(Failure::Usage(detail.to_owned()));
        }
        let mut draft = table.draft(self.text.parameters(), options)?;
        if self.interactive {
            let answers = interview::ask(&draft.doubts, io::stdin().lock(), io::stderr().lock());
            let answers =
                answers.map_err(|error| Failure::file(Path::new("standard input"), error))?;
            let answered = draft.answered(&answers);
            draft = answered.map_err(|error| table.refused(error))?;
        }
        if !self.json {
            print_reasons(&draft);
            print_doubts(&draft, self.interactive);
        }
        match (&self.output, self.json) {
            (Some(path), true) => NewFile::json(path, &draft)?.complete(),
            (Some(path), false) => NewFile::json(path, &draft.dataset)?.complete(),
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

/// Writes the open questions to standard error, one line each.
fn print_doubts(draft: &Draft, is_interactive: bool) {
    for doubt in &draft.doubts {
        let choices = doubt.choices.join(", ");
        note(format_args!(
            "open: {} ({choices}; the first is proposed)",
            doubt.question
        ));
    }
    if !draft.doubts.is_empty() && !is_interactive {
        note("`--interactive` asks these questions and takes the answers");
    }
}
