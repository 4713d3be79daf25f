//! An anatomized release in a directory: `qit.csv`, and `st_<column>.csv` for each sensitive
//! column. The file names are percent-encoded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pais_core::definition::ColumnRole;
use pais_core::reimport::anatomized;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::ReleasedTable;
use pais_verify::ReleaseTables;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::files::is_table;
use super::new_file::NewFile;
use super::output::{Failure, refuse_read_only};
use super::table_file::TableFile;

/// A directory of tables. It may not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The directory at a path, which need not exist yet.
    ///
    /// # Errors
    /// If the path is an existing file, or does not exist and has the file extension of a table.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let names_table = !path.exists() && TableFile::of(path).is_ok();
        if path.is_file() || names_table {
            let detail =
                "expected a directory, not a file, because anatomized output is several tables";
            return Err(Failure::file(path, detail));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Checks that the tables of a release under the schema can be written here, and that no other table is here:
    /// one of an earlier release could be passed on with them.
    ///
    /// # Errors
    /// If they cannot, or there is one.
    pub(crate) fn check_output(&self, schema: &Schema) -> Result<(), Failure> {
        let known: Vec<String> = table_names(schema).map(|name| file_name(&name)).collect();
        let mut names = table_names(schema).zip(&known);
        if let Some((name, file)) = names.find(|(_, file)| file.len() > FILE_NAME_BYTES) {
            let bytes = file.len();
            let detail = format!(
                "the file name of the table `{name}` has {bytes} bytes, and {FILE_NAME_BYTES} are possible; give its \
                 column a shorter name"
            );
            return Err(Failure::file(&self.path, detail));
        }
        let existing = self.path.ancestors().find(|path| path.exists());
        let existing = existing.unwrap_or(Path::new("."));
        if !existing.is_dir() {
            let detail = format!("{} is no directory", existing.display());
            return Err(Failure::file(&self.path, detail));
        }
        refuse_read_only(existing)?;
        for entry in self.path.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            if is_table(&name) && !known.iter().any(|known| **known == *name) {
                let detail = "this table is not one of the release, which would be passed on with it; remove it, or \
                              name another directory";
                return Err(Failure::file(&entry.path(), detail));
            }
        }
        Ok(())
    }

    /// The CSV file of a table.
    ///
    /// # Errors
    /// Never, because the file extension is `.csv`.
    pub(crate) fn file(&self, table: &str) -> Result<TableFile, Failure> {
        TableFile::of(&self.path.join(file_name(table)))
    }

    /// Checks that the directory has files of these tables only.
    ///
    /// # Errors
    /// If it has another file, or cannot be read.
    fn check_files(&self, tables: impl Iterator<Item = String>) -> Result<(), Failure> {
        let known: Vec<OsString> = tables.map(|table| file_name(&table).into()).collect();
        let unread = |error| Failure::file(&self.path, error);
        for entry in std::fs::read_dir(&self.path).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            if !known.contains(&entry.file_name()) {
                let detail = "this file is no table of the release, so it was not verified; an \
                              anatomized release has `qit.csv` and an `st_….csv` for each sensitive \
                              column, and nothing else";
                return Err(Failure::file(&entry.path(), detail));
            }
        }
        Ok(())
    }

    /// Writes tables to files that are still to be completed. Creates the directory if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be created or a file cannot be written.
    pub(crate) fn write(&self, tables: &[ReleasedTable]) -> Result<Vec<NewFile>, Failure> {
        std::fs::create_dir_all(&self.path).map_err(|error| Failure::file(&self.path, error))?;
        let files = tables.iter();
        files
            .map(|table| self.file(&table.name)?.write(table))
            .collect()
    }
}

/// Maximum number of bytes of a file name.
const FILE_NAME_BYTES: usize = 255;

/// The names of the tables of an anatomized release.
fn table_names(schema: &Schema) -> impl Iterator<Item = String> {
    let sensitive = schema.names(ColumnRole::Sensitive).into_iter();
    std::iter::once("qit".to_owned()).chain(sensitive.map(|name| format!("st_{name}")))
}

/// Bytes of a file name that are percent-encoded: all but the unreserved characters of RFC 3986,
/// Section 2.3.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The name of a table's file.
fn file_name(table: &str) -> String {
    format!("{}.csv", utf8_percent_encode(table, ENCODED))
}

/// Reads the tables of an anatomized release.
///
/// # Errors
/// For tables that are missing, or do not fit the schema, and for other files: a release that is
/// passed on has nothing that was not verified.
pub(crate) fn read_anatomized(
    schema: &Schema,
    directory: &Directory,
) -> Result<ReleaseTables, Failure> {
    let sensitive = schema.stored();
    let sensitive = sensitive.filter(|column| column.role() == ColumnRole::Sensitive);
    let sensitive: Vec<&SchemaColumn> = sensitive.collect();
    directory.check_files(table_names(schema))?;
    let file = directory.file("qit")?;
    let read_by = anatomized::quasi_identifier_columns(schema, &file.names()?);
    let qit = anatomized::released("qit", &read_by, file.read(&read_by)?);
    let counts = sensitive.iter().map(|column| {
        let name = format!("st_{}", column.name());
        let read_by = anatomized::sensitive_columns(column);
        let table = directory.file(&name)?.read(&read_by)?;
        Ok(anatomized::released(&name, &read_by, table))
    });
    Ok(ReleaseTables::Anatomized {
        qit,
        counts: counts.collect::<Result<_, Failure>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_are_percent_encoded() {
        assert_eq!(file_name("st_marital-status"), "st_marital-status.csv");
        assert_eq!(file_name("st_a/b c"), "st_a%2Fb%20c.csv");
        assert_eq!(file_name("st_größe"), "st_gr%C3%B6%C3%9Fe.csv");
    }
}
