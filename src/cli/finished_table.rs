//! The finished table of a release: in one file, or in the parts that a job writes to a location. It need
//! not come from pais.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pais_core::reimport::{self, Spellings};
use pais_core::schema::Schema;
use pais_core::table::ReleasedTable;
use pais_io::chunk::Assembler;

use super::output::{Failure, in_file};
use super::table_file::{TableFile, push};

/// The list of the parts that `pais anonymize` writes beside them. It has no values of rows.
const MANIFEST: &str = "manifest.json";

/// A finished table.
#[derive(Clone, Debug)]
pub(crate) struct FinishedTable {
    path: PathBuf,
    /// In their order; the only one has the path of the table.
    parts: Vec<TableFile>,
}

impl FinishedTable {
    /// The table in the file at a path, by its ending, or in the directory: `data-00000.parquet`,
    /// `data-00001.parquet` and so on.
    ///
    /// # Errors
    /// For an unknown ending; for a directory that cannot be read, or lacks a part, or has another file:
    /// a release that is passed on has nothing that was not verified.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let parts = if path.is_dir() {
            parts(path)?
        } else {
            vec![TableFile::of(path)?]
        };
        Ok(Self {
            path: path.to_owned(),
            parts,
        })
    }

    /// Whether a path is a directory of parts.
    pub(crate) fn is_in_parts(path: &Path) -> bool {
        path.is_dir() && path.join(part_name(0)).exists()
    }

    /// Reads the table and passes its rows to `take`, a bounded number at a time, with the line of the first one.
    ///
    /// # Errors
    /// If a file cannot be read, or a value is not a generalization under the schema; those of `take`.
    pub(crate) fn read_chunks(
        &self,
        schema: &Schema,
        mut take: impl FnMut(&ReleasedTable, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let read_by = self.read_by(schema)?;
        let mut spellings = Spellings::default();
        for part in &self.parts {
            let mut line = part.first_line();
            part.read_chunks(&read_by, |chunk| {
                let released =
                    reimport::released_part(schema, &read_by, chunk, line, &mut spellings);
                let released = released.map_err(|error| part.refused(error))?;
                take(&released, line)?;
                line += released.rows as u64;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The line of the first row.
    pub(crate) fn first_line(&self) -> u64 {
        self.parts.first().map_or(1, TableFile::first_line)
    }

    /// Reads the whole table.
    ///
    /// # Errors
    /// As [`Self::read_chunks`].
    pub(crate) fn read(&self, schema: &Schema) -> Result<ReleasedTable, Failure> {
        let read_by = self.read_by(schema)?;
        let mut assembler = Assembler::default();
        for part in &self.parts {
            part.read_chunks(&read_by, |chunk| push(&mut assembler, chunk))?;
        }
        let released = reimport::released(schema, &read_by, assembler.finish(), self.first_line());
        released.map_err(|error| in_file(self.path.display(), error).into())
    }

    /// The schema for reading the parts, which must have the same columns.
    fn read_by(&self, schema: &Schema) -> Result<Schema, Failure> {
        let mut names = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let of_part = part.names()?;
            if number == 0 {
                names = of_part;
            } else if of_part != names {
                let detail = format!(
                    "{} has other columns than {}",
                    part_name(number),
                    part_name(0)
                );
                return Err(Failure::file(&self.path, detail));
            }
        }
        Ok(reimport::columns(schema, &names))
    }
}

/// The name of the file with a part.
fn part_name(number: usize) -> String {
    format!("data-{number:05}.parquet")
}

/// The parts in a directory.
fn parts(directory: &Path) -> Result<Vec<TableFile>, Failure> {
    let unread = |error| Failure::file(directory, error);
    let entries = std::fs::read_dir(directory).map_err(unread)?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let mut names: Vec<OsString> = names.collect::<std::io::Result<_>>().map_err(unread)?;
    names.retain(|name| name != MANIFEST);
    names.sort_unstable_by_key(|name| (name.len(), name.clone()));
    for (number, name) in names.iter().enumerate() {
        let expected = part_name(number);
        if *name != *expected {
            let detail = format!(
                "expected `{expected}` here; a release in parts has files named so, without a gap, \
                 and nothing else but `{MANIFEST}`"
            );
            return Err(Failure::file(&directory.join(name), detail));
        }
    }
    let names = names.iter();
    names
        .map(|name| TableFile::of(&directory.join(name)))
        .collect()
}
