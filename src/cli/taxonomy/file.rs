//! A hierarchy in a file: read in each of its forms, and written as JSON or as rows.

use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use pais::problem::{Code, Problem};
use pais_core::definition::{TaxonomyNode, json};
use pais_core::taxonomy::Tree;
use pais_io::hierarchy;
use serde::Deserialize;
use serde_json::json;

use crate::cli::definitions::LIMITS;
use crate::cli::new_file::NewFile;
use crate::cli::output::{self, Failure, in_file};

/// A form in which a hierarchy is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HierarchyFormat {
    /// The body of `POST /v1/taxonomies`
    Json,
    /// Rows `leaf;level1;…;top`
    Csv,
}

impl HierarchyFormat {
    /// The form that the ending of an output says: rows for .csv, else JSON.
    pub(super) fn of_output(path: Option<&Path>) -> Self {
        let extension = path.and_then(Path::extension);
        if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            Self::Csv
        } else {
            Self::Json
        }
    }
}

/// A hierarchy that was read from a file.
pub(super) struct HierarchyFile {
    /// Its name: the one in the document, else that of the file without its ending.
    pub(super) name: String,
    /// The checked tree.
    pub(super) tree: Tree,
    /// Whether the file is JSON.
    pub(super) is_json: bool,
}

/// The body or an answer of `/v1/taxonomies`, or a tree alone.
#[derive(Deserialize)]
struct TaxonomyFile {
    name: Option<String>,
    root: Option<TaxonomyNode>,
    label: Option<String>,
    #[serde(default)]
    children: Vec<TaxonomyNode>,
}

impl HierarchyFile {
    /// Reads and checks a hierarchy.
    ///
    /// # Errors
    /// If the file cannot be read, or what is in it is no hierarchy.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let body = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
        let refused =
            |problem: Problem| Failure::from(in_file(path.display(), problem)).unreadable();
        let is_json = body.trim_ascii_start().first() == Some(&b'{');
        let (name, root, below) = if is_json {
            of_json(&body).map_err(refused)?
        } else {
            let root = hierarchy::parse(&body, LIMITS).map_err(|it| refused(it.into()))?;
            (None, root, "")
        };
        let tree = Tree::new(&root, LIMITS).map_err(|error| {
            let detail = error.to_string();
            refused(if is_json {
                let pointer = format!("{below}{}", error.pointer());
                Problem::at(Code::InvalidTaxonomy, pointer, detail)
            } else {
                Problem::new(Code::InvalidTaxonomy, detail)
            })
        })?;
        let of_file = || path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name.unwrap_or_else(|| of_file().into_owned()),
            tree,
            is_json,
        })
    }
}

/// The name and the tree of a document, and the pointer to the tree.
fn of_json(body: &[u8]) -> Result<(Option<String>, TaxonomyNode, &'static str), Problem> {
    let document: TaxonomyFile = json::parse(body)?;
    match (document.root, document.label) {
        (Some(root), _) => Ok((document.name, root, "/root")),
        (None, Some(label)) => {
            let children = document.children;
            Ok((document.name, TaxonomyNode { label, children }, ""))
        }
        (None, None) => {
            let detail = "the document has no tree; write {\"name\": …, \"root\": {\"label\": …, \
                          \"children\": […]}}";
            Err(Problem::at(Code::InvalidShape, "/root", detail))
        }
    }
}

/// Writes a tree to a file, or to standard output.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(
    tree: &Tree,
    name: &str,
    format: HierarchyFormat,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let root = tree.definition();
    let write = |out: &mut dyn Write| match format {
        HierarchyFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &json!({"name": name, "root": root}))?;
            out.write_all(b"\n")
        }
        HierarchyFormat::Csv => {
            let rows = hierarchy::write(&root).map_err(io::Error::from)?;
            out.write_all(rows.as_bytes())
        }
    };
    let Some(path) = output else {
        return output::print(|out| write(out));
    };
    NewFile::write(path, |out| write(out))?.complete()
}
