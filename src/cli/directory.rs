//! An anatomized release in a directory: `qit.csv` and one `st_<column>.csv` a sensitive column,
//! names percent-encoded.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pais_core::table::ReleasedTable;

use super::failure::Failure;
use super::table_file::TableFile;

/// A directory that holds tables, or will.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The directory at a path; it need not be there yet.
    ///
    /// # Errors
    /// For a path that names a file.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let names_table = !path.exists() && TableFile::of(path).is_ok();
        if path.is_file() || names_table {
            return Err(Failure::Usage(format!(
                "{}: anatomized output is several tables, and this names a file; name a directory",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The file of a table.
    ///
    /// # Errors
    /// Never: the ending is that of CSV.
    pub fn file(&self, table: &str) -> Result<TableFile, Failure> {
        TableFile::of(&self.path.join(file_name(table)))
    }

    /// Writes tables, and makes the directory where it is not there.
    ///
    /// # Errors
    /// For what cannot be written.
    pub fn write(&self, tables: &[ReleasedTable]) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.path).map_err(|error| Failure::file(&self.path, &error))?;
        tables
            .iter()
            .try_for_each(|table| self.file(&table.name)?.write(table))
    }
}

/// The name of a table's file: bytes other than letters, digits, `-`, `.`, `_` and `~` as `%XX`
/// (RFC 3986, Section 2.3).
fn file_name(table: &str) -> String {
    let mut name = String::with_capacity(table.len() + 4);
    for byte in table.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name + ".csv"
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
