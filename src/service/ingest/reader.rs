//! The reader of each format of a submission.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

use pais_core::read::{ReadFailure, csv, ndjson, parquet};
use pais_core::schema::Schema;
use pais_core::table::Table;

use crate::problem::Problem;
use crate::service::table_format::TableFormat;
use crate::storage::{Spool, SpoolLease, StorageError};
use crate::worker::WorkError;

/// Bytes copied to the temporary file at once.
const COPY_BYTES: usize = 128 << 10;

/// Reads the rows of a decoded body and passes them to `chunk`. Returns their number. A Parquet
/// file may decode to at most `limit` bytes, and is copied to a temporary file in the spool directory.
///
/// # Errors
/// Those of the reader of the format and of `chunk`.
pub(super) fn read(
    format: TableFormat,
    schema: &Schema,
    source: impl Read,
    spool: &Arc<Spool>,
    limit: u64,
    chunk: impl FnMut(Table) -> Result<(), WorkError>,
) -> Result<u64, ReadFailure<WorkError>> {
    match format {
        TableFormat::Csv => csv::read(schema, source, chunk),
        TableFormat::Ndjson => ndjson::read(schema, source, chunk),
        TableFormat::Parquet => {
            // The file is closed before its share in the quota ends.
            let mut lease = spool.lease();
            let file = copy_to_file(source, spool, &mut lease)?;
            parquet::read(schema, file, limit, chunk)
        }
    }
}

/// Copies a body to a temporary file, because a Parquet file is read from its end. The file has no
/// name, so its blocks are freed when it is closed, even if the process is killed.
fn copy_to_file(
    mut source: impl Read,
    spool: &Spool,
    lease: &mut SpoolLease,
) -> Result<File, ReadFailure<WorkError>> {
    let mut file = std::fs::create_dir_all(spool.dir())
        .and_then(|()| tempfile::tempfile_in(spool.dir()))
        .map_err(|error| unwritable(error.into()))?;
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = source.read(&mut buffer).map_err(ReadFailure::Source)?;
        if read == 0 {
            break;
        }
        lease.grow(read as u64).map_err(unwritable)?;
        file.write_all(&buffer[..read])
            .map_err(|error| unwritable(error.into()))?;
    }
    file.rewind().map_err(|error| unwritable(error.into()))?;
    Ok(file)
}

fn unwritable(error: StorageError) -> ReadFailure<WorkError> {
    tracing::error!(
        error = &error as &dyn std::error::Error,
        "a submission could not be written to a temporary file"
    );
    ReadFailure::Sink(Problem::from(error).into())
}
