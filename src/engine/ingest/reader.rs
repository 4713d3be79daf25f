//! The reader of each format of a submission.

use std::io::{self, Read};

use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_io::FileFormat;
use pais_io::read::{IdentifierRepeats, ReadFailure, ReadLimits, csv, ndjson, parquet};

use crate::engine::WorkError;
use crate::problem::{Code, Problem};
use crate::storage::spool::Spool;

use super::spool_file::{SpoolError, SpoolFile};

/// Reads the rows of a decoded body and passes them to `chunk`. Returns their number. A Parquet
/// file is copied to an encrypted temporary file in `spool`. Identifiers that repeat are counted in
/// `repeats`, other than those of a Parquet file, which are not decoded.
///
/// # Errors
/// Those of the reader of the format and of `chunk`.
pub(super) fn read(
    format: FileFormat,
    schema: &Schema,
    source: impl Read,
    spool: &Spool,
    limits: ReadLimits,
    repeats: Option<&mut IdentifierRepeats>,
    chunk: impl FnMut(Table) -> Result<(), WorkError>,
) -> Result<u64, ReadFailure<WorkError>> {
    match format {
        FileFormat::Text(format) => csv::read_as(schema, source, format, limits, repeats, chunk),
        FileFormat::Ndjson => ndjson::read_counting(schema, source, limits, repeats, chunk),
        FileFormat::Parquet => {
            let file = copy_to_file(source, spool)?;
            parquet::read(schema, file, limits, chunk)
        }
    }
}

/// Copies a body to a temporary file, because a Parquet file is read from its end.
///
/// # Errors
/// Those of the source and of the spool directory.
pub(crate) fn copy_to_file(
    source: impl Read,
    spool: &Spool,
) -> Result<SpoolFile, ReadFailure<WorkError>> {
    SpoolFile::copy(source, spool).map_err(|error| match error {
        SpoolError::Source(error) => ReadFailure::Source(error),
        SpoolError::Full(problem) => ReadFailure::Sink(problem.into()),
        SpoolError::File(error) => ReadFailure::Sink(unwritable(&error).into()),
    })
}

fn unwritable(error: &io::Error) -> Problem {
    tracing::error!(%error, "a submission could not be written to a temporary file");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::new(
            Code::StorageFull,
            "the disk of the directory for uploads is full (storage.spool_dir); send the file again \
             when there is space, or send CSV or NDJSON, which need none there",
        ),
        _ => Problem::new(
            Code::Unavailable,
            "the file could not be stored while it is read (storage.spool_dir)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::unwritable;
    use crate::problem::Code;

    #[test]
    fn a_full_disk_is_refused_by_the_name_of_its_setting() {
        // ENOSPC
        let problem = unwritable(&io::Error::from_raw_os_error(28));
        assert_eq!(problem.code, Code::StorageFull);
        assert!(problem.detail.contains("storage.spool_dir"));
        let other = unwritable(&io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(other.code, Code::Unavailable);
    }
}
