//! What a submission may be written in, and the reader of each format.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use axum::http::{HeaderMap, header};

use crate::problem::{Code, Problem};
use crate::worker::WorkError;
use pais_core::read::{ReadFailure, csv, ndjson, parquet};
use pais_core::schema::Schema;
use pais_core::table::Table;

/// Bytes that go into the temporary file at once.
const COPIED_BYTES: usize = 128 << 10;

/// What a submission is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A header, then one line a record.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

/// Beside the rows: where a body may rest on disk, and how large it may decode.
pub(super) struct Room<'a> {
    /// The directory of temporary files.
    pub(super) directory: &'a Path,
    /// Bytes that a file may decode to.
    pub(super) limit: u64,
}

impl Format {
    const ALL: [Self; 3] = [Self::Csv, Self::Ndjson, Self::Parquet];

    /// The media type of the contract.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// The format that a request declares.
    ///
    /// # Errors
    /// `unsupported_media_type` for any other, and for text in another charset.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let media = headers.get(header::CONTENT_TYPE);
        let media = media
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let mut parts = media.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        let foreign = parts.any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = value.trim_matches('"');
            name.eq_ignore_ascii_case("charset")
                && !["utf-8", "utf8", "us-ascii"]
                    .iter()
                    .any(|charset| value.eq_ignore_ascii_case(charset))
        });
        Self::ALL
            .into_iter()
            .find(|format| essence.eq_ignore_ascii_case(format.media_type()) && !foreign)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::media_type).join(", ");
                Problem::new(
                    Code::UnsupportedMediaType,
                    format!("send rows with a `Content-Type` of {known}; text in UTF-8"),
                )
            })
    }

    /// Reads a decoded body and hands its rows on in chunks.
    ///
    /// # Errors
    /// As the reader of the format.
    pub(super) fn read(
        self,
        schema: &Schema,
        source: impl Read,
        room: &Room,
        chunk: impl FnMut(Table) -> Result<(), WorkError>,
    ) -> Result<u64, ReadFailure<WorkError>> {
        match self {
            Self::Csv => csv::read(schema, source, chunk),
            Self::Ndjson => ndjson::read(schema, source, chunk),
            Self::Parquet => {
                let file = at_rest(source, room.directory)?;
                parquet::read(schema, file, room.limit, chunk)
            }
        }
    }
}

/// A Parquet file is read from its end, so its bytes come to rest in a file first: one without a
/// name, whose blocks are free again as soon as it is closed, however the process ends.
fn at_rest(mut source: impl Read, directory: &Path) -> Result<File, ReadFailure<WorkError>> {
    let mut file = std::fs::create_dir_all(directory)
        .and_then(|()| tempfile::tempfile_in(directory))
        .map_err(|error| no_room(&error))?;
    let mut buffer = vec![0; COPIED_BYTES];
    loop {
        let read = source.read(&mut buffer).map_err(ReadFailure::Source)?;
        if read == 0 {
            break;
        }
        file.write_all(&buffer[..read])
            .map_err(|error| no_room(&error))?;
    }
    file.rewind().map_err(|error| no_room(&error))?;
    Ok(file)
}

fn no_room(error: &std::io::Error) -> ReadFailure<WorkError> {
    tracing::error!(%error, "a submission could not be written into a temporary file");
    let problem = Problem::new(
        Code::Unavailable,
        "the file could not be kept while it is read; the service's disk may be full",
    );
    ReadFailure::Sink(problem.into())
}
