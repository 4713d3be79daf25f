//! The stages of an upload: pump, read, seal, insert. They run at the same time over bounded
//! channels, so that the slowest stage sets the pace.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use pais_core::definition::SubmissionId;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{ReadErrorKind, Table, ValueCounters};
use pais_core::warning::{Warning, WarningCode};
use pais_io::FileFormat;
use pais_io::read::{IdentifierRepeats, ReadFailure, ReadLimits};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use crate::db::seal::DataKey;
use crate::db::submissions::{
    ColumnWarning, RowTotals, SealedChunk, SubmissionTotals, SubmissionWriter,
};
use crate::engine::{WorkError, on_thread};
use crate::problem::{Code, Problem};
use crate::storage::Storage;

use super::body::{FrameReader, frames, pump};
use super::reader;
use super::sealing::{self, Sealing};

/// Number of chunks that are read and wait to be sealed.
const TABLES_AHEAD: usize = 1;

/// Number of sealed chunks that wait for the database.
const CHUNKS_AHEAD: usize = 2;

/// A file of a body, which is one file, or several one after the other.
pub(crate) struct BodyFile {
    /// Its name; `None` for a body that is one file.
    pub(crate) name: Option<String>,
    /// Its size, in bytes.
    pub(crate) bytes: u64,
}

impl BodyFile {
    /// The whole body.
    pub(crate) fn whole() -> Self {
        Self {
            name: None,
            bytes: u64::MAX,
        }
    }
}

/// The parameters for reading the rows of a submission.
pub(crate) struct IngestSettings {
    /// The format of the body.
    pub(crate) format: FileFormat,
    /// The files of the body.
    pub(crate) files: Vec<BodyFile>,
    /// The data key of the dataset.
    pub(crate) key: DataKey,
    /// Where temporary files are.
    pub(crate) storage: Arc<Storage>,
    /// Limits on the body. The size of the body itself is that of a decoded Parquet file, too.
    pub(crate) limits: ReadLimits,
}

/// Reads, seals and inserts the rows of a submission. They are visible only after the commit of the writer,
/// which `begin` makes of the id and the sealed key of the submission when there is something to write.
///
/// # Errors
/// The error of the body first, then that of the database, then that of the rows: the later ones
/// follow from the earlier ones.
pub(crate) async fn ingest(
    schema: Arc<Schema>,
    settings: IngestSettings,
    body: &mut (dyn AsyncRead + Send + Unpin),
    begin: impl AsyncFnOnce(SubmissionId, &[u8]) -> Result<SubmissionWriter, WorkError>,
) -> Result<(SubmissionWriter, SubmissionTotals), WorkError> {
    let submission = SubmissionId::new();
    let (key, sealed_key) = settings.key.new_submission_key(submission)?;
    let (frame_sender, source) = frames();
    let (chunk_sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let limit = settings.limits.total_bytes;
    let storage = settings.storage.clone();
    let reading = on_thread(move || {
        let sealing = |out| Sealing::new(&settings.key, &key, &schema, submission, out);
        read_and_seal(&settings, &schema, source, sealing(&chunk_sender))
    });
    let begin = async || begin(submission, &sealed_key).await;
    let inserting = insert(begin, &storage, chunks);
    let pumping = pump(body, limit, Some(frame_sender));
    let (digest, rows, writer) = tokio::join!(pumping, reading, inserting);
    let digest = digest?;
    let writer = writer?;
    let rows = rows?;
    match (digest, writer) {
        (Some(digest), Some(writer)) if rows.number > 0 => {
            let totals = SubmissionTotals {
                bytes: digest.bytes,
                sha256: digest.sha256,
                rows,
            };
            Ok((writer, totals))
        }
        _ => Err(Problem::new(Code::EmptySubmission, "the submission has no rows").into()),
    }
}

/// Reads the frames of a body on this thread, and seals its rows in chunks on another.
fn read_and_seal(
    settings: &IngestSettings,
    schema: &Schema,
    source: FrameReader,
    mut sealing: Sealing<'_>,
) -> Result<RowTotals, WorkError> {
    // The identifiers of a Parquet file are not decoded.
    let mut repeats = match settings.format {
        FileFormat::Text(_) | FileFormat::Ndjson => IdentifierRepeats::new(schema),
        FileFormat::Parquet => None,
    };
    let (tables, to_seal) = sync_channel::<Table>(TABLES_AHEAD);
    let (read, sealed) = thread::scope(|scope| {
        let sealing = scope.spawn(move || {
            for table in to_seal {
                sealing.push(table)?;
            }
            Ok::<_, WorkError>(sealing)
        });
        // The receiver is dropped only after an error of the sealing, which is the one reported.
        let send = |table| tables.send(table).map_err(|_| sealing::not_stored());
        let read = read_files(settings, schema, source, repeats.as_mut(), send);
        drop(tables);
        (read, sealing.join().map_err(|_| WorkError::Panicked))
    });
    let sealed = sealed??;
    match read {
        Ok(number) => {
            let mut warnings = warnings(&sealed.values);
            warnings.extend(repeats.iter().flat_map(|repeats| repeated(repeats, number)));
            warnings.extend(sealed.similar_subjects().map(similar));
            let counts = |repeats: IdentifierRepeats| {
                let counts = repeats.counts()?;
                let counts = counts.map(|(name, rows)| (name.to_owned(), rows));
                Some(counts.collect())
            };
            Ok(RowTotals {
                number,
                text_bytes: sealed.text_bytes,
                digest: sealed.digest(),
                identifier_repeats: repeats.and_then(counts),
                warnings,
            })
        }
        Err(error) => Err(error),
    }
}

/// Reads the files of a body, and passes their rows to `chunk`. Returns the number of rows.
fn read_files(
    settings: &IngestSettings,
    schema: &Schema,
    mut source: FrameReader,
    mut repeats: Option<&mut IdentifierRepeats>,
    mut chunk: impl FnMut(Table) -> Result<(), WorkError>,
) -> Result<u64, WorkError> {
    let mut rows = 0;
    for file in &settings.files {
        let read = reader::read(
            settings.format,
            schema,
            (&mut source).take(file.bytes),
            &settings.storage.spool,
            settings.limits,
            repeats.as_deref_mut(),
            &mut chunk,
        );
        rows += match read {
            Ok(rows) => rows,
            // Programs that write several files leave some of them without rows.
            Err(ReadFailure::Refused(error))
                if error.kind == ReadErrorKind::Empty && settings.files.len() > 1 =>
            {
                0
            }
            Err(ReadFailure::Refused(error)) => {
                let mut problem = Problem::from(error);
                if let Some(name) = &file.name {
                    problem.detail = format!("{name}: {}", problem.detail);
                }
                return Err(problem.into());
            }
            // The error of the body is the one reported.
            Err(ReadFailure::Source(_)) => {
                let detail = "the body could not be read to its end";
                return Err(Problem::new(Code::MalformedBody, detail).into());
            }
            Err(ReadFailure::Sink(error)) => return Err(error),
        };
    }
    Ok(rows)
}

fn warnings(values: &ValueCounters) -> Vec<ColumnWarning> {
    let columns = values.counts().into_iter();
    let warned = columns.filter_map(|counted| {
        let warning = counted.warning()?;
        let column = counted.column;
        Some(ColumnWarning { column, warning })
    });
    warned.collect()
}

/// The warnings about identifiers by which persons may have several of `rows` rows.
fn repeated(repeats: &IdentifierRepeats, rows: u64) -> impl Iterator<Item = ColumnWarning> {
    repeats.warnings(rows).map(|warning| ColumnWarning {
        column: warning.columns.first().cloned().unwrap_or_default(),
        warning,
    })
}

/// The warning about a subject column with ids that may be one person.
fn similar(subject: &SchemaColumn) -> ColumnWarning {
    let column = subject.name();
    let detail = format!(
        "ids in `{column}` differ only in upper and lower case, in leading zeros or in characters \
         that are not shown, and count as different persons; where they are one person, write them \
         alike"
    );
    ColumnWarning {
        column: column.to_owned(),
        warning: Warning::new(WarningCode::SimilarSubjects, detail).of_columns([column]),
    }
}

/// Inserts the chunks of a submission, while the disk has space. `None` if there are none.
async fn insert(
    begin: impl AsyncFnOnce() -> Result<SubmissionWriter, WorkError>,
    storage: &Storage,
    mut chunks: mpsc::Receiver<SealedChunk>,
) -> Result<Option<SubmissionWriter>, WorkError> {
    // A connection is taken only when there is something to write.
    let Some(first) = chunks.recv().await else {
        return Ok(None);
    };
    let mut writer = begin().await?;
    writer.add(&first).await?;
    while let Some(chunk) = chunks.recv().await {
        storage.check()?;
        writer.add(&chunk).await?;
    }
    Ok(Some(writer))
}
