//! The reader of each format of a submission.

use std::io::Read;

use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_io::FileFormat;
use pais_io::read::{IdentifierRepeats, ReadFailure, ReadLimits, csv, ndjson, parquet};

use crate::engine::WorkError;
use crate::storage::spool::Spool;

use super::spool_file::SpoolFile;

/// Reads the rows of a decoded body and passes them to `chunk`. Returns their number. A Parquet
/// file is copied to an encrypted temporary file in `spool`. Identifiers that repeat are counted in
/// `repeats`, other than those of a Parquet file, which are not decoded.
///
/// # Errors
/// Those of the reader of the format and of `chunk`.
pub(super) fn read(
    format: FileFormat,
    schema: &Schema,
    source: impl Read + Send,
    spool: &Spool,
    limits: ReadLimits,
    repeats: Option<&mut IdentifierRepeats>,
    chunk: impl FnMut(Table) -> Result<(), WorkError>,
) -> Result<u64, ReadFailure<WorkError>> {
    match format {
        FileFormat::Text(format) => csv::read_as(schema, source, format, limits, repeats, chunk),
        FileFormat::Ndjson => ndjson::read_counting(schema, source, limits, repeats, chunk),
        FileFormat::Parquet => {
            let file = SpoolFile::copy(source, spool)?;
            parquet::read(schema, file, limits, chunk)
        }
    }
}
