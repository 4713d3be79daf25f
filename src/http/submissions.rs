//! `/v1/datasets/{id}/submissions`: rows come in, all or nothing.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use time::OffsetDateTime;
use tokio::sync::mpsc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::problem::ProblemDocument;
use crate::domain::{Caller, Code, DatasetId, Problem, SubmissionId};
use crate::jobs::{Failure, on_thread, source};
use crate::store::datasets::{self, StoredDataset};
use crate::store::idempotency::{self, Answer, Begun, Reservation};
use crate::store::seal::DataKey;
use crate::store::submissions::{Accepted, Intake, SealedChunk, Submission, Totals};
use crate::store::{Store, StoreError};
use crate::table::{ReadFailure, Schema, Table, chunk, csv, ndjson, parquet};

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

/// What a submission is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Ndjson,
    Parquet,
}

impl Format {
    const ALL: [Self; 3] = [Self::Csv, Self::Ndjson, Self::Parquet];

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
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
                    format!("send rows in UTF-8 with `Content-Type: {known}`"),
                )
            })
    }

    /// `limit` bounds the text that a compressed format unfolds to.
    fn read<E>(
        self,
        schema: &Schema,
        mut source: impl Read,
        limit: u64,
        chunk: impl FnMut(Table) -> Result<(), E>,
    ) -> Result<u64, ReadFailure<E>> {
        match self {
            Self::Csv => csv::read(schema, source, chunk),
            Self::Ndjson => ndjson::read(schema, source, chunk),
            Self::Parquet => {
                // Its directory stands at its end. The file has no name, and is gone with it.
                let mut file = tempfile::tempfile().map_err(ReadFailure::Source)?;
                std::io::copy(&mut source, &mut file).map_err(ReadFailure::Source)?;
                parquet::read(schema, file, limit, chunk)
            }
        }
    }
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
        (status = 400, description = "`malformed_body`: no UTF-8, no gzip, an unclosed quote, NUL",
         body = ProblemDocument, content_type = "application/problem+json"),
        (status = 401, description = "`unauthenticated`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "`forbidden`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "`not_found`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 408, description = "`request_timeout`: the client fell silent", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "`too_large`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 415, description = "`unsupported_media_type`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "`invalid_header`, `invalid_cells`, `empty_submission`", body = ProblemDocument, content_type = "application/problem+json"),
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
    let key = source::open_key(&state.keys, &dataset)?;
    match take_in(&state.store, &dataset, key, format, encoding, incoming).await {
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
    store: &Store,
    dataset: &StoredDataset,
    key: DataKey,
    format: Format,
    encoding: Encoding,
    incoming: &mut Incoming,
) -> Result<(Intake, Totals), ApiError> {
    let submission = SubmissionId::new();
    let (frames, source) = channel();
    let (sealed, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let schema = dataset.schema.clone();
    let limit = incoming.limit();
    let place = Place { key, submission };
    let reading =
        on_thread(move || read_and_seal((format, limit), &schema, source, &place, &sealed));
    let inserting = insert(store, dataset.id, submission, format, chunks);
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
            "the submission has a header and no rows",
        )),
    }
}

/// Where rows belong, and what seals them there.
struct Place {
    key: DataKey,
    submission: SubmissionId,
}

fn read_and_seal(
    (format, limit): (Format, u64),
    schema: &Arc<Schema>,
    source: FrameReader,
    &Place {
        ref key,
        submission,
    }: &Place,
    out: &mpsc::Sender<SealedChunk>,
) -> Result<u64, Failure> {
    let mut index = 0;
    let outcome = format.read(schema, source, limit, |table| {
        let encoded = chunk::encode(&table).map_err(|_| StoreError::Damaged {
            what: "a submission's chunk",
        })?;
        let sealed = key
            .seal_chunk(submission, index, &encoded)
            .map_err(StoreError::from)?;
        let chunk = SealedChunk {
            submission,
            index,
            rows: table.rows as u32,
            sealed,
        };
        index += 1;
        // The receiver goes only with an error of its own, which is the one told.
        out.blocking_send(chunk).map_err(|_| {
            Failure::Problem(Problem::new(Code::Internal, "the rows could not be stored"))
        })
    });
    match outcome {
        Ok(rows) => Ok(rows),
        Err(ReadFailure::Refused(problem)) => Err(problem.into()),
        // The fault of the source is told by whoever pumps it.
        Err(ReadFailure::Source(_)) => {
            Err(Problem::new(Code::MalformedBody, "the body could not be read to its end").into())
        }
        Err(ReadFailure::Sink(failure)) => Err(failure),
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
