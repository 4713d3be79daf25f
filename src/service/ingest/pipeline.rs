//! The stages of an upload: pump, read and seal, insert. They run at the same time over bounded
//! channels, so that the slowest stage sets the pace.

use std::collections::BTreeMap;
use std::sync::Arc;

use pais_core::definition::{DatasetId, SubmissionId};
use pais_core::read::{IdentifierRepeats, ReadFailure, ReadLimits};
use pais_core::schema::Schema;
use pais_core::table::{Table, ValueCounters, chunk};
use pais_core::warning::{Warning, WarningCode};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use crate::problem::{Code, Problem};
use crate::service::error::ServiceError;
use crate::service::table_format::ReceivedFormat;
use crate::storage::Storage;
use crate::store::datasets::StoredDataset;
use crate::store::seal::{DataKey, Place};
use crate::store::submissions::{ColumnWarning, SealedChunk, SubmissionTotals, SubmissionWriter};
use crate::store::{Store, StoreError};
use crate::worker::{WorkError, on_thread};

use super::body::{FrameReader, frames, pump};
use super::reader;
use super::row_digest::RowDigest;

/// Number of sealed chunks that wait for the database.
const CHUNKS_AHEAD: usize = 2;

/// What the rows of a submission are read with.
pub struct IngestSettings {
    /// The format of the body.
    pub format: ReceivedFormat,
    /// The data key of the dataset.
    pub key: DataKey,
    /// Where temporary files are.
    pub storage: Arc<Storage>,
    /// Limits on the body. The size of the body itself is that of a decoded Parquet file, too.
    pub limits: ReadLimits,
}

/// Reads, seals and inserts the rows of a submission. They are visible only after the writer's
/// commit.
///
/// # Errors
/// The error of the body first, then that of the database, then that of the rows: the later ones
/// follow from the earlier ones.
pub async fn ingest(
    store: &Store,
    dataset: &StoredDataset,
    settings: IngestSettings,
    body: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<(SubmissionWriter, SubmissionTotals), ServiceError> {
    let submission = SubmissionId::new();
    let (frame_sender, source) = frames();
    let (chunk_sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let (format, limit) = (settings.format, settings.limits.total_bytes);
    let schema = dataset.schema.clone();
    let storage = settings.storage.clone();
    let reading =
        on_thread(move || read_and_seal(&settings, &schema, submission, source, &chunk_sender));
    let inserting = insert(store, dataset.id, submission, format, &storage, chunks);
    let pumping = pump(body, limit, Some(frame_sender));
    let (digest, rows, writer) = tokio::join!(pumping, reading, inserting);
    let digest = digest?;
    let writer = writer?;
    let rows = rows?;
    match (digest, writer) {
        (Some(digest), Some(writer)) if rows.number > 0 => {
            let totals = SubmissionTotals {
                rows: rows.number,
                bytes: digest.bytes,
                text_bytes: rows.text_bytes,
                sha256: digest.sha256,
                rows_digest: rows.digest,
                identifier_repeats: rows.identifier_repeats,
                warnings: rows.warnings,
            };
            Ok((writer, totals))
        }
        _ => Err(ServiceError::new(
            Code::EmptySubmission,
            "the submission has no rows",
        )),
    }
}

/// What is known of the rows of a submission when all are read.
struct ReadRows {
    number: u64,
    text_bytes: u64,
    digest: Option<[u8; 32]>,
    identifier_repeats: Option<BTreeMap<String, u64>>,
    warnings: Vec<ColumnWarning>,
}

/// Reads the frames of a body, and seals its rows in chunks.
fn read_and_seal(
    settings: &IngestSettings,
    schema: &Schema,
    submission: SubmissionId,
    source: FrameReader,
    out: &mpsc::Sender<SealedChunk>,
) -> Result<ReadRows, WorkError> {
    let (mut index, mut text_bytes) = (0, 0);
    let mut values = ValueCounters::default();
    let mut digest = RowDigest::new(&settings.key.cells_key(), schema);
    // The identifiers of a Parquet file are not decoded.
    let mut repeats = match settings.format {
        ReceivedFormat::Text(_) | ReceivedFormat::Ndjson => IdentifierRepeats::new(schema),
        ReceivedFormat::Parquet => None,
    };
    let (spool, limits) = (&settings.storage.spool, settings.limits);
    let seal = |mut table: Table| {
        if let Some(subjects) = schema.subject().and_then(|it| table.columns.get_mut(it)) {
            for id in &mut subjects.dictionary {
                *id = settings.key.subject(id).into();
            }
        }
        digest.push(&table);
        values.push(schema.stored().zip(&table.columns));
        text_bytes += table.text_bytes();
        let encoded = chunk::encode(&table).map_err(|_| StoreError::Damaged {
            what: "a submission's chunk",
        })?;
        let sealed = settings
            .key
            .seal(Place::Chunk { submission, index }, &encoded)
            .map_err(StoreError::from)?;
        let chunk = SealedChunk {
            submission,
            index,
            rows: table.rows as u32,
            sealed,
        };
        index += 1;
        // The receiver is dropped only after an error of the database, which is the one reported.
        out.blocking_send(chunk).map_err(|_| {
            WorkError::Problem(Problem::new(Code::Internal, "the rows could not be stored"))
        })
    };
    let read = reader::read(
        settings.format,
        schema,
        source,
        spool,
        limits,
        repeats.as_mut(),
        seal,
    );
    match read {
        Ok(number) => {
            let mut warnings = warnings(&values);
            warnings.extend(repeats.iter().flat_map(|repeats| repeated(repeats, number)));
            let counts = |repeats: IdentifierRepeats| {
                let counts = repeats.counts();
                counts
                    .map(|(column, rows)| (column.to_owned(), rows))
                    .collect()
            };
            let digest = digest.finish();
            Ok(ReadRows {
                number,
                text_bytes,
                digest: digest.map(|(sum, rows)| settings.key.rows_digest(sum, rows)),
                identifier_repeats: repeats.map(counts),
                warnings,
            })
        }
        Err(ReadFailure::Refused(error)) => Err(error.into()),
        // The error of the body is the one reported.
        Err(ReadFailure::Source(_)) => {
            let detail = "the body could not be read to its end";
            Err(Problem::new(Code::MalformedBody, detail).into())
        }
        Err(ReadFailure::Sink(error)) => Err(error),
    }
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

/// The warnings about identifiers that repeat in `rows` rows.
fn repeated(repeats: &IdentifierRepeats, rows: u64) -> impl Iterator<Item = ColumnWarning> {
    let repeated = repeats.counts().filter(|(_, repeated)| *repeated > 0);
    repeated.map(move |(column, repeated)| {
        let detail = format!(
            "in {repeated} of {rows} rows the identifier `{column}` occurred before in the file; \
             if it names the person a row is about, declare it as `subject`: a person's rows then \
             count as one toward K"
        );
        ColumnWarning {
            column: column.to_owned(),
            warning: Warning::new(WarningCode::RepeatedIdentifier, detail),
        }
    })
}

/// Inserts the chunks of a submission, while the disk has space. `None` if there are none.
async fn insert(
    store: &Store,
    dataset: DatasetId,
    submission: SubmissionId,
    format: ReceivedFormat,
    storage: &Storage,
    mut chunks: mpsc::Receiver<SealedChunk>,
) -> Result<Option<SubmissionWriter>, ServiceError> {
    // A connection is taken only when there is something to write.
    let Some(first) = chunks.recv().await else {
        return Ok(None);
    };
    let mut writer =
        SubmissionWriter::begin(store, dataset, submission, format.media_type()).await?;
    writer.add(&first).await?;
    while let Some(chunk) = chunks.recv().await {
        storage.check()?;
        writer.add(&chunk).await?;
    }
    Ok(Some(writer))
}
