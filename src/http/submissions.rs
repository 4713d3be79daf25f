//! `/v1/datasets/{id}/submissions`: rows come in, all or nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use time::OffsetDateTime;
use tokio::sync::mpsc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::store::datasets::{self, StoredDataset};
use crate::store::idempotency::{self, Answer, Begun, Reservation};
use crate::store::seal::DataKey;
use crate::store::submissions::{Accepted, Intake, SealedChunk, Submission, Totals};
use crate::store::{Store, StoreError};
use crate::worker::{WorkError, load_rows, on_thread};
use pais_core::definition::{DatasetId, SubmissionId};
use pais_core::read::ReadFailure;
use pais_core::schema::Schema;
use pais_core::table::chunk;

use super::submission_format::{Format, Room};
use super::upload::{Encoding, FrameReader, IDLE, Incoming, channel};
use super::{ApiError, AppState, Holder, IdempotencyKey, Path};

/// Sealed chunks waiting for the database.
const CHUNKS_AHEAD: usize = 2;

/// A batch of rows that was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SubmissionDocument {
    /// Its id.
    pub id: SubmissionId,
    /// The dataset it was sent to.
    pub dataset_id: DatasetId,
    /// Number of records.
    pub rows: u64,
    /// Length of the decoded body.
    pub bytes: u64,
    /// Of the decoded body, hexadecimal.
    pub sha256: String,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The submissions' routes.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Sends rows to a dataset
///
/// The body is a table whose header or keys name exactly the declared columns, in any order.
/// It is read as it streams, and stored whole or not at all. A refusal names the first 20
/// offending cells by line and column.
#[utoipa::path(
    post, path = "/v1/datasets/{id}/submissions", tag = "datasets",
    params(
        ("id" = DatasetId, Path, description = "The dataset"),
        ("Content-Encoding" = Option<String>, Header, description = "`gzip` or `zstd`"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a retry harmless for 24 h"),
    ),
    request_body(content((String = "text/csv"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
        description = "CSV with a header row, one JSON object a line, or Parquet"),
    responses(
        (status = 201, description = "Stored", body = SubmissionDocument,
         headers(("Location" = String, description = "The dataset"))),
        (status = 400, description = "`malformed_body`: no UTF-8, no gzip, zstd or Parquet, bad JSON, an unclosed quote, NUL"),
        (status = 408, description = "`request_timeout`: the client fell silent"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`"),
        (status = 422, description = "`invalid_header`, `invalid_cells`, `empty_submission`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
    IdempotencyKey(key): IdempotencyKey,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let mut incoming = Incoming::new(body, &headers, state.limits.upload_bytes, IDLE);
    match answer(&state, caller, id, key, &headers, &mut incoming).await {
        Ok(answer) => answer.into_response(),
        Err(error) => {
            incoming.drain().await;
            error.into_response()
        }
    }
}

async fn answer(
    state: &AppState,
    caller: Caller,
    id: DatasetId,
    key: Option<String>,
    headers: &HeaderMap,
    incoming: &mut Incoming,
) -> Result<Answer, ApiError> {
    let dataset = datasets::load(&state.store, caller.organization, id).await?;
    let dataset = dataset.ok_or_else(ApiError::not_found)?;
    let format = Format::of(headers)?;
    let encoding = Encoding::of(headers)?;
    // The semaphore is never closed; were it, the service would be stopping.
    let _place = state
        .uploads
        .acquire()
        .await
        .map_err(|_| ApiError::new(Code::Unavailable, "the service is stopping"))?;
    let reservation = match key {
        None => None,
        Some(key) => {
            let endpoint = format!("POST /v1/datasets/{id}/submissions");
            match idempotency::begin(&state.store, caller.organization, &endpoint, &key).await? {
                Begun::Fresh(reservation) => Some(reservation),
                Begun::InUse => return Err(ApiError::key_in_use()),
                Begun::Kept(kept) => {
                    let measure = incoming.pump(encoding, None).await?;
                    let sha256 = measure.map(|measure| measure.sha256).unwrap_or_default();
                    return Ok(kept.replay(&sha256)?);
                }
            }
        }
    };
    let key = load_rows::open_key(&state.keys, &dataset)?;
    match take_in(state, &dataset, key, format, encoding, incoming).await {
        Ok((intake, totals)) => finish(caller, intake, &totals, reservation).await,
        Err(error) => {
            if let Some(reservation) = reservation {
                reservation.abandon().await?;
            }
            Err(error)
        }
    }
}

/// Reads, seals and inserts, each as fast as the slowest; nothing is visible yet.
async fn take_in(
    state: &AppState,
    dataset: &StoredDataset,
    key: DataKey,
    format: Format,
    encoding: Encoding,
    incoming: &mut Incoming,
) -> Result<(Intake, Totals), ApiError> {
    let submission = SubmissionId::new();
    let (frames, source) = channel();
    let (sealed, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let reading = Reading {
        format,
        schema: dataset.schema.clone(),
        directory: state.spool.clone(),
        limit: incoming.limit(),
        key,
        submission,
    };
    let reading = on_thread(move || reading.read_and_seal(source, &sealed));
    let inserting = insert(&state.store, dataset.id, submission, format, chunks);
    let pumping = incoming.pump(encoding, Some(frames));
    let (measure, rows, intake) = tokio::join!(pumping, reading, inserting);
    let measure = measure?;
    let intake = intake?;
    let rows = rows?;
    match (measure, intake) {
        (Some(measure), Some(intake)) if rows > 0 => {
            let totals = Totals {
                rows,
                bytes: measure.bytes,
                sha256: measure.sha256,
            };
            Ok((intake, totals))
        }
        _ => Err(ApiError::new(
            Code::EmptySubmission,
            "the submission has no rows",
        )),
    }
}

/// What the reading thread works with.
struct Reading {
    format: Format,
    schema: Arc<Schema>,
    directory: Arc<PathBuf>,
    limit: u64,
    key: DataKey,
    submission: SubmissionId,
}

impl Reading {
    fn read_and_seal(
        &self,
        source: FrameReader,
        out: &mpsc::Sender<SealedChunk>,
    ) -> Result<u64, WorkError> {
        let room = Room {
            directory: &self.directory,
            limit: self.limit,
        };
        let mut index = 0;
        let outcome = self.format.read(&self.schema, source, &room, |table| {
            let encoded = chunk::encode(&table).map_err(|_| StoreError::Damaged {
                what: "a submission's chunk",
            })?;
            let sealed = self
                .key
                .seal_chunk(self.submission, index, &encoded)
                .map_err(StoreError::from)?;
            let chunk = SealedChunk {
                submission: self.submission,
                index,
                rows: table.rows as u32,
                sealed,
            };
            index += 1;
            // The receiver goes only with an error of its own, which is the one told.
            out.blocking_send(chunk).map_err(|_| {
                WorkError::Problem(Problem::new(Code::Internal, "the rows could not be stored"))
            })
        });
        match outcome {
            Ok(rows) => Ok(rows),
            Err(ReadFailure::Refused(problem)) => Err(problem.into()),
            // The fault of the source is told by whoever pumps it.
            Err(ReadFailure::Source(_)) => {
                let detail = "the body could not be read to its end";
                Err(Problem::new(Code::MalformedBody, detail).into())
            }
            Err(ReadFailure::Sink(failure)) => Err(failure),
        }
    }
}

/// `None` when no chunk came.
async fn insert(
    store: &Store,
    dataset: DatasetId,
    submission: SubmissionId,
    format: Format,
    mut chunks: mpsc::Receiver<SealedChunk>,
) -> Result<Option<Intake>, StoreError> {
    // A connection is taken only once there is something to write.
    let Some(first) = chunks.recv().await else {
        return Ok(None);
    };
    let mut intake = Intake::begin(store, dataset, submission, format.media_type()).await?;
    intake.add(&first).await?;
    while let Some(chunk) = chunks.recv().await {
        intake.add(&chunk).await?;
    }
    Ok(Some(intake))
}

async fn finish(
    caller: Caller,
    intake: Intake,
    totals: &Totals,
    reservation: Option<Reservation>,
) -> Result<Answer, ApiError> {
    match intake.commit(caller, totals, reservation, created).await? {
        Accepted::Stored(answer) => {
            metrics::counter!("pais_submitted_rows_total").increment(totals.rows);
            Ok(answer)
        }
        Accepted::NoDataset => Err(ApiError::not_found()),
        Accepted::KeyTaken => Err(ApiError::key_in_use()),
    }
}

fn created(submission: &Submission) -> Answer {
    let document = SubmissionDocument {
        id: submission.id,
        dataset_id: submission.dataset,
        rows: submission.rows,
        bytes: submission.bytes,
        sha256: submission
            .sha256
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        created_at: submission.created_at,
    };
    Answer {
        status: 201,
        headers: BTreeMap::from([
            ("content-type".to_owned(), "application/json".to_owned()),
            (
                "location".to_owned(),
                format!("/v1/datasets/{}", submission.dataset),
            ),
        ]),
        // Ids, numbers and times, which are always JSON.
        body: serde_json::to_vec(&document).unwrap_or_default(),
    }
}
