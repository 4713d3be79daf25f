//! How the raw table is written: the flags that say what its ending does not.

use std::path::Path;

use clap::{Args, ValueEnum};
use pais_core::read::{DecimalMark, Delimiter, TextEncoding, TextParameters, ThousandsMark};

use super::failure::Failure;
use super::table_file::{FileFormat, TableFile};

/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// Flags of the raw table.
#[derive(Debug, Args)]
pub(crate) struct InputFormat {
    /// The format of the raw table where its ending does not say it; csv for standard input.
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// Between two cells of a raw table in text: one character or `tab`.
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<Delimiter>,
    /// Before the fraction of its numbers: `.` or `,`.
    #[arg(long, value_name = "CHARACTER")]
    decimal: Option<DecimalMark>,
    /// Between groups of three digits of its numbers: one character.
    #[arg(long, value_name = "CHARACTER")]
    thousands: Option<ThousandsMark>,
    /// Its encoding: utf-8, iso-8859-1, windows-1252 or utf-16.
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<TextEncoding>,
}

/// A format of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Cells between commas
    Csv,
    /// Cells between tabulators
    Tsv,
    /// One JSON object per line
    Ndjson,
}

impl From<FormatName> for FileFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Csv => Self::CSV,
            FormatName::Tsv => Self::TSV,
            FormatName::Ndjson => Self::Ndjson,
        }
    }
}

impl InputFormat {
    /// What the flags of another command say.
    pub(crate) fn of(format: Option<FormatName>, text: TextParameters) -> Self {
        Self {
            format,
            delimiter: text.delimiter,
            decimal: text.decimal,
            thousands: text.thousands,
            encoding: text.encoding,
        }
    }

    /// Whether no flag is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.format.is_none() && self.text().is_empty()
    }

    /// The raw table at a path; `-` is standard input.
    ///
    /// # Errors
    /// For an unknown ending without `--format`, and for flags that contradict each other or the
    /// format.
    pub(crate) fn table(&self, path: &Path) -> Result<TableFile, Failure> {
        let format = self.format.map(FileFormat::from);
        let table = if path == Path::new(STANDARD_INPUT) {
            TableFile::standard_input(format.unwrap_or(FileFormat::CSV))
        } else if let Some(format) = format {
            TableFile::in_format(path, format)
        } else {
            TableFile::of(path)?
        };
        table.written_as(&self.text())
    }

    fn text(&self) -> TextParameters {
        TextParameters {
            delimiter: self.delimiter,
            decimal: self.decimal,
            thousands: self.thousands,
            encoding: self.encoding,
        }
    }
}
