//! The reader of each format of a submission.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};

use pais_core::read::{ReadFailure, csv, ndjson, parquet};
use pais_core::schema::Schema;
use pais_core::table::Table;

use crate::problem::{Code, Problem};
use crate::service::table_format::TableFormat;
use crate::storage::spool::{Spool, SpoolSpace};
use crate::worker::WorkError;

/// Bytes copied to the temporary file at once.
const COPY_BYTES: usize = 128 << 10;

/// Reads the rows of a decoded body and passes them to `chunk`. Returns their number. A Parquet
/// file may decode to at most `limit` bytes, and is copied to a temporary file in `spool`.
///
/// # Errors
/// Those of the reader of the format and of `chunk`.
pub(super) fn read(
    format: TableFormat,
    schema: &Schema,
    source: impl Read,
    spool: &Spool,
    limit: u64,
    chunk: impl FnMut(Table) -> Result<(), WorkError>,
) -> Result<u64, ReadFailure<WorkError>> {
    match format {
        TableFormat::Csv => csv::read(schema, source, chunk),
        TableFormat::Ndjson => ndjson::read(schema, source, chunk),
        TableFormat::Parquet => {
            let (file, _space) = copy_to_file(source, spool)?;
            parquet::read(schema, file, limit, chunk)
        }
    }
}

/// Copies a body to a temporary file, because a Parquet file is read from its end. The file has no
/// name, so its blocks are freed when it is closed, even if the process is killed.
fn copy_to_file(
    mut source: impl Read,
    spool: &Spool,
) -> Result<(File, SpoolSpace), ReadFailure<WorkError>> {
    let directory = spool.directory();
    let mut space = spool.temporary_space();
    let mut file = std::fs::create_dir_all(directory)
        .and_then(|()| tempfile::tempfile_in(directory))
        .map_err(|error| unwritable(&error))?;
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = source.read(&mut buffer).map_err(ReadFailure::Source)?;
        if read == 0 {
            break;
        }
        space
            .grow(read as u64)
            .map_err(|problem| ReadFailure::Sink(problem.into()))?;
        file.write_all(&buffer[..read])
            .map_err(|error| unwritable(&error))?;
    }
    file.rewind().map_err(|error| unwritable(&error))?;
    Ok((file, space))
}

fn unwritable(error: &std::io::Error) -> ReadFailure<WorkError> {
    tracing::error!(%error, "a submission could not be written to a temporary file");
    let problem = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Problem::new(
            Code::StorageFull,
            "the disk of the spool directory (storage.spool_dir) is full",
        ),
        _ => Problem::new(
            Code::Unavailable,
            "the file could not be stored while it is read; the service's log has the reason",
        ),
    };
    ReadFailure::Sink(problem.into())
}
