//! Proposes the definition of a dataset from a file with its rows.
//!
//! The rows are read once, in chunks, up to [`MOST_ROWS`]; memory does not grow with the file. The
//! proposal says for each column why, in sentences that contain no value of a cell.

mod codes;
mod dates;
mod delimiter;
mod encoding;
mod hierarchy;
mod items;
mod json_types;
mod kind;
mod missing;
mod names;
mod numbers;
mod observed;
mod proposal;
mod role;
mod scan;
#[cfg(test)]
mod tests;

use std::io::Read;

use pais_core::definition::DatasetDefinition;
use pais_core::table::{ReadError, ReadErrorKind};
use serde::{Serialize, Serializer};

use crate::read::parquet::ChunkReader;
use crate::read::{ReadFailure, ReadLimits, TextFormat, TextParameters};

pub(crate) use observed::ColumnType;

/// Rows after which no further chunk is looked at.
pub(crate) const MOST_ROWS: u64 = 200_000;

/// A proposed definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Draft {
    /// A body for `POST /v1/datasets`.
    pub dataset: DatasetDefinition,
    /// How the text of the file is written, as the parameters of a submission.
    pub format: TextFormat,
    /// Column to the reasons for its proposal, in the order of the file.
    #[serde(serialize_with = "as_map")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = std::collections::BTreeMap<String, Vec<String>>)
    )]
    pub reasons: Vec<(String, Vec<String>)>,
}

fn as_map<S: Serializer>(
    reasons: &[(String, Vec<String>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        reasons
            .iter()
            .map(|(column, sentences)| (column, sentences)),
    )
}

/// How a file is read for a draft.
#[derive(Clone, Copy, Debug)]
pub struct DraftOptions<'n> {
    /// The name of the proposed dataset.
    pub name: &'n str,
    /// Limits on the file.
    pub limits: ReadLimits,
    /// Most columns of a dataset.
    pub columns: usize,
}

impl Default for DraftOptions<'_> {
    /// The name `draft`, and any number of columns.
    fn default() -> Self {
        Self {
            name: "draft",
            limits: ReadLimits::default(),
            columns: usize::MAX,
        }
    }
}

/// Proposes a definition for the rows of a CSV file. What `given` does not say of its format is
/// found in its text.
///
/// ```
/// use pais_io::draft::{self, DraftOptions};
/// use pais_io::read::TextParameters;
///
/// let rows = "ID;Geburtsdatum;Gewicht\n1;03.09.1987;71,5\n2;31.12.1990;80,25\n";
/// let draft = draft::csv(rows.as_bytes(), TextParameters::default(), DraftOptions::default());
/// let draft = serde_json::to_value(draft.unwrap())?;
/// assert_eq!(draft["format"]["delimiter"], ";");
/// assert_eq!(draft["format"]["decimal"], ",");
/// assert_eq!(draft["dataset"]["columns"][0]["role"], "identifier");
/// assert_eq!(draft["dataset"]["columns"][1]["format"], "%d.%m.%Y");
/// assert_eq!(draft["dataset"]["columns"][2]["kind"], "numeric");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// As [`crate::read::csv::read_as`]. [`ReadErrorKind::Header`] for names that make no dataset.
pub fn csv(
    source: impl Read,
    given: TextParameters,
    options: DraftOptions<'_>,
) -> Result<Draft, DraftFailure> {
    scan::csv(source, given, options)
}

/// Proposes a definition for the records of an NDJSON file.
///
/// # Errors
/// As [`crate::read::ndjson::read`]. [`ReadErrorKind::Header`] for keys that make no dataset.
pub fn ndjson(source: impl Read, options: DraftOptions<'_>) -> Result<Draft, DraftFailure> {
    scan::ndjson(source, options)
}

/// Proposes a definition for the rows of a Parquet file.
///
/// # Errors
/// As [`crate::read::parquet::read`]. [`ReadErrorKind::Header`] for names that make no dataset.
pub fn parquet<R: ChunkReader + 'static>(
    source: R,
    options: DraftOptions<'_>,
) -> Result<Draft, DraftFailure> {
    scan::parquet(source, options)
}

/// Why there is no draft.
#[derive(Debug)]
pub enum DraftFailure {
    /// The file is refused.
    Refused(ReadError),
    /// The source failed.
    Source(std::io::Error),
}

impl From<ReadError> for DraftFailure {
    fn from(error: ReadError) -> Self {
        Self::Refused(error)
    }
}

impl DraftFailure {
    /// The failure of a reader, whose receiver of chunks fails only to stop it.
    fn of<E>(failure: ReadFailure<E>) -> Option<Self> {
        match failure {
            ReadFailure::Refused(error) => Some(Self::Refused(error)),
            ReadFailure::Source(error) => Some(Self::Source(error)),
            ReadFailure::Sink(_) => None,
        }
    }
}

fn refused(kind: ReadErrorKind, detail: impl Into<String>) -> DraftFailure {
    DraftFailure::Refused(ReadError::new(kind, detail))
}
