//! The formats of tables in files.

use std::io::{self, Write};

use pais_core::table::ReleasedTable;

use crate::read::{Delimiter, TextFormat};
use crate::write;

/// The format of a table in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Lines of cells after a header, in this text format.
    Text(TextFormat),
    /// One JSON object per line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl FileFormat {
    /// Cells separated by commas (RFC 4180).
    pub const CSV: Self = Self::Text(TextFormat::CSV);

    /// Cells separated by tabs.
    pub const TSV: Self = Self::Text(TextFormat::TSV);

    /// The formats of released tables, the default first.
    pub const RELEASED: [Self; 3] = [Self::CSV, Self::Ndjson, Self::Parquet];

    /// The name, which is also the file extension.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text(format) if format.delimiter() == Delimiter::TAB => "tsv",
            Self::Text(_) => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text(format) if format.delimiter() == Delimiter::TAB => {
                "text/tab-separated-values"
            }
            Self::Text(_) => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// The line of the first row of a file, as faults name it; its number if the file has no lines.
    pub fn first_line(self) -> u64 {
        match self {
            Self::Text(_) => 2,
            Self::Ndjson | Self::Parquet => 1,
        }
    }

    /// Writes a released table. Text is always [`Self::CSV`].
    ///
    /// # Errors
    /// Those of `out`, and for data that the format cannot store.
    pub fn write(self, table: &ReleasedTable, mut out: impl Write + Send) -> io::Result<()> {
        match self {
            Self::Text(_) => write::csv(table, &mut out),
            Self::Ndjson => write::ndjson(table, &mut out),
            Self::Parquet => write::parquet(table, out),
        }
    }
}
