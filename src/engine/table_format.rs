//! The file formats of submissions and of released tables, and how a released table is rendered.

use std::sync::Arc;

use pais_core::read::{Delimiter, TextFormat};
use pais_core::write::BoundedColumn;

/// The format of a table in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    /// RFC 4180, with a header row.
    Csv,
    /// One JSON object per line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// All formats, the default first.
    pub(crate) const ALL: [Self; 3] = [Self::Csv, Self::Ndjson, Self::Parquet];

    /// The name, which is also the file extension.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }

    /// The media type.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// The media type of text whose cells are between tabulators.
pub(crate) const TSV_MEDIA_TYPE: &str = "text/tab-separated-values";

/// The format of a table that is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedFormat {
    /// CSV, as its text is written.
    Text(TextFormat),
    /// One JSON object per line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl ReceivedFormat {
    /// The media type.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Text(format) if format.delimiter() == Delimiter::TAB => TSV_MEDIA_TYPE,
            Self::Text(_) => TableFormat::Csv.media_type(),
            Self::Ndjson => TableFormat::Ndjson.media_type(),
            Self::Parquet => TableFormat::Parquet.media_type(),
        }
    }
}

/// How a released table is rendered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rendering {
    /// The format.
    pub(crate) format: TableFormat,
    /// Whether no text is a formula for a spreadsheet; for CSV only.
    pub(crate) is_safe: bool,
    /// The columns whose bounds are columns too; `None` for the table as it was released.
    pub(crate) bounds: Option<Arc<[BoundedColumn]>>,
}

impl Rendering {
    /// The released table in a format.
    pub(crate) fn exact(format: TableFormat) -> Self {
        Self {
            format,
            is_safe: false,
            bounds: None,
        }
    }

    /// Whether it is the CSV whose SHA-256 the release has.
    pub(crate) fn is_exact_csv(&self) -> bool {
        *self == Self::exact(TableFormat::Csv)
    }

    /// The ending of a file name: the format, and what is not exact.
    pub(crate) fn file_ending(&self) -> String {
        let bounds = if self.bounds.is_some() { "bounds." } else { "" };
        let safe = if self.is_safe { "safe." } else { "" };
        format!("{bounds}{safe}{}", self.format.as_str())
    }
}
