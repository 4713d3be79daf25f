//! `pais taxonomy`: hierarchies in files, and those that are made from the values of a column.

mod file;
mod generate;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use file::{HierarchyFile, HierarchyFormat};
use serde_json::json;

use super::files::Files;
use super::output::{self, Failure};

/// Works with taxonomies.
#[derive(Subcommand)]
pub(crate) enum TaxonomyCommand {
    /// Write the hierarchy that a column's `generate` makes from the values of a table
    Generate(generate::GenerateArgs),
    /// Write hierarchy rows or a file of Amnesia as JSON, or JSON as hierarchy rows
    Convert(ConvertArgs),
    /// Check a hierarchy, and print its size
    Check(CheckArgs),
}

/// The arguments of `pais taxonomy convert`.
#[derive(Args)]
pub(crate) struct ConvertArgs {
    /// The hierarchy: JSON as for `POST /v1/taxonomies`, rows `leaf;level1;…;top`, or a file of
    /// Amnesia; its content shows which.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The hierarchy in the other form; standard output when omitted.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The form of OUT: rows for JSON and JSON for all others when omitted.
    #[arg(long, value_name = "FORMAT")]
    format: Option<HierarchyFormat>,
    /// The name of the taxonomy in JSON; that of the file when omitted.
    #[arg(long)]
    name: Option<String>,
}

/// The arguments of `pais taxonomy check`.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The hierarchy, as for `pais taxonomy convert`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Prints the size as a JSON document, and errors too.
    #[arg(long)]
    pub(super) json: bool,
}

impl TaxonomyCommand {
    /// The files that it reads and writes.
    pub(super) fn files(&self) -> Files {
        match self {
            Self::Generate(args) => args.files(),
            Self::Convert(ConvertArgs { file, output, .. }) => {
                let files = Files::default().input("FILE", file);
                files.main_output(output.as_deref())
            }
            Self::Check(_) => Files::default(),
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// An unreadable file where a hierarchy is refused; a problem where a schema or a table is.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Generate(args) => args.run(),
            Self::Convert(args) => args.run(),
            Self::Check(args) => args.run(),
        }
    }
}

impl ConvertArgs {
    fn run(&self) -> Result<(), Failure> {
        let file = HierarchyFile::read(&self.file)?;
        let format = self.format.unwrap_or(if file.is_json {
            HierarchyFormat::Csv
        } else {
            HierarchyFormat::Json
        });
        let name = self.name.as_deref().unwrap_or(&file.name);
        file::write(&file.tree, name, format, self.output.as_deref())
    }
}

impl CheckArgs {
    fn run(&self) -> Result<(), Failure> {
        let tree = HierarchyFile::read(&self.file)?.tree;
        let (leaves, nodes, depth) = (tree.leaf_count(), tree.nodes().len(), tree.depth());
        output::print(|out| {
            use std::io::Write;
            if self.json {
                writeln!(
                    out,
                    "{}",
                    json!({"leaves": leaves, "nodes": nodes, "depth": depth})
                )
            } else {
                writeln!(
                    out,
                    "leaves: {leaves}\nnodes: {nodes}\nheight: {depth} levels"
                )
            }
        })
    }
}
