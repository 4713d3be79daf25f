//! `/v1/datasets/{id}/submissions`: rows are sent to a dataset, and stored completely or not at all.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{DatasetId, SubmissionId};
use pais_io::read::{IdentifierRepeats, ReadLimits};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::datasets::{self, SubmissionSummary};
use crate::db::deletion;
use crate::db::idempotency::IdempotentAnswer;
use crate::db::submissions::{
    Duplicates, Submission, SubmissionResult, SubmissionRules, SubmissionTotals,
};
use crate::engine::ingest::body;
use crate::engine::ingest::pipeline::{IngestSettings, ingest};
use crate::engine::load_rows;
use crate::problem::Code;
use crate::roles::Caller;

use super::datasets::load;
use super::error::ApiError;
use super::extract::headers::received_format;
use super::extract::query::TextQuery;
use super::extract::{Holder, Parameters, Path};
use super::idempotency::{
    IdempotencyKey, KeyedRequest, RequestKey, abandon, idempotent_answer, key_in_use, replay,
};
use super::legal_holds::deleted;
use super::page::{Page, PageQuery};
use super::state::{App, AppState};
use super::upload::incoming::{ContentEncoding, IncomingBody};

/// Memory for the digests of identifiers, in bytes: their hash table while it grows for the last time.
const IDENTIFIER_BYTES: u64 = 28 << 20;

/// A batch of rows that was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SubmissionDocument {
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

/// The query of a submission.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubmissionQuery {
    /// Whether rows that the dataset has already, in whatever order and format, are stored again;
    /// `false` when omitted.
    pub allow_duplicate: Option<bool>,
}

impl SubmissionQuery {
    fn duplicates(&self) -> Duplicates {
        match self.allow_duplicate {
            Some(true) => Duplicates::Allowed,
            _ => Duplicates::Refused,
        }
    }
}

/// The routes of submissions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(create))
}

/// The routes that do not stream.
pub(super) fn list_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(delete))
}

/// Sends rows to a dataset
///
/// The body is a table whose header or keys name exactly the declared columns, in any order.
/// It is read as it streams, and stored whole or not at all. A refusal names the first 20
/// offending cells by line and column, and the number of all by column (`errors_by_column`). The
/// cells of a column of the role `subject` are stored only as keyed hashes.
///
/// Text is read as the query says. Its numbers are stored as if they were written with a point and
/// without separators of thousands; `sha256` is that of the text as it came.
#[utoipa::path(
    post, path = "/v1/datasets/{id}/submissions", tag = "datasets",
    params(
        ("id" = DatasetId, Path, description = "The dataset"),
        SubmissionQuery,
        ("Content-Encoding" = Option<String>, Header, description = "`gzip` or `zstd`",
            pattern = "^(gzip|zstd)$"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a retry harmless for 24 h",
            min_length = 1, max_length = 255, pattern = "^[!-~]{1,255}$"),
        TextQuery,
    ),
    request_body(content((String = "text/csv"), (String = "text/tab-separated-values"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
        description = "CSV with a header row, one JSON object a line, or Parquet"),
    responses(
        (status = 201, description = "Stored", body = SubmissionDocument,
         headers(("Location" = String, description = "The dataset"))),
        (status = 400, description = "`malformed_body`: undecodable text, no gzip, zstd or Parquet, bad JSON, an unclosed quote, NUL; `invalid_parameter`"),
        (status = 408, description = "`request_timeout`: the client was silent or slow for too long"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`; `duplicate_submission`: an earlier submission has the same rows"),
        (status = 422, description = "`invalid_header`, `invalid_cells`, `empty_submission`; `invalid_value`: parameters of text that exclude each other, or for a body that is no text"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
    queries: (Parameters<SubmissionQuery>, Parameters<TextQuery>),
    key: IdempotencyKey,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (Parameters(query), Parameters(text)) = queries;
    let mut incoming = IncomingBody::new(body, &headers, state.upload_pace);
    let key = key.at(format!("POST /v1/datasets/{id}/submissions"));
    let sent = Sent {
        dataset: id,
        text,
        duplicates: query.duplicates(),
        key,
        headers: &headers,
    };
    match submit(&state.of(caller), caller, sent, &mut incoming).await {
        Ok(answer) => answer.into_response(),
        Err(error) => {
            incoming.drain(state.unscoped().limits.upload_bytes).await;
            error.into_response()
        }
    }
}

/// List the submissions of a dataset, oldest first.
#[utoipa::path(get, path = "/v1/datasets/{id}/submissions", tag = "datasets",
    params(("id" = DatasetId, Path, description = "The dataset"), PageQuery),
    responses((status = 200, description = "A page", body = Page<SubmissionSummary>)))]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<SubmissionSummary>>, ApiError> {
    let page = query.parse()?;
    let app = state.of(caller);
    let rows = datasets::list_submissions(
        &app.db,
        &app.keys,
        caller.organization,
        id,
        page.after,
        page.rows_to_query(),
    )
    .await?;
    let rows = rows.ok_or_else(ApiError::not_found)?;
    Ok(Json(Page::new(rows, page, |submission| submission.id.0)))
}

/// Delete a submission
///
/// Its rows cannot be recovered: their key is destroyed. Queued and running jobs that read
/// it are cancelled, and no further release is made of earlier ones. Releases stay.
#[utoipa::path(delete, path = "/v1/datasets/{id}/submissions/{submission}", tag = "datasets",
    params(
        ("id" = DatasetId, Path, description = "The dataset"),
        ("submission" = SubmissionId, Path, description = "The submission"),
    ),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "`legal_hold`: nothing of the dataset is deleted for now")))]
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path((dataset, submission)): Path<(DatasetId, SubmissionId)>,
) -> Result<StatusCode, ApiError> {
    let app = state.of(caller);
    deleted(deletion::delete_submission(&app.db, caller, dataset, submission).await?)?;
    app.wake.notify_waiters();
    Ok(StatusCode::NO_CONTENT)
}

/// What a request says of its body.
struct Sent<'r> {
    dataset: DatasetId,
    text: TextQuery,
    duplicates: Duplicates,
    key: Option<RequestKey>,
    headers: &'r HeaderMap,
}

/// Stores the rows of a submission. A repeated request gets the stored answer.
async fn submit(
    app: &App,
    caller: Caller,
    sent: Sent<'_>,
    incoming: &mut IncomingBody,
) -> Result<IdempotentAnswer, ApiError> {
    let dataset = load(app, caller, sent.dataset).await?;
    let format = received_format(sent.headers, &sent.text.parse()?)?;
    let encoding = ContentEncoding::from_headers(sent.headers)?;
    incoming.receive_first().await?;
    let body = &mut *incoming.decoded(encoding);
    app.storage.check()?;
    let limit = app.limits.upload_bytes;
    let identifiers = IdentifierRepeats::new(&dataset.schema).is_some();
    let extra_bytes = if identifiers { IDENTIFIER_BYTES } else { 0 };
    let admission = app
        .uploads
        .admit(caller.organization, &app.memory, extra_bytes);
    let _admission = admission.await?;
    let reservation = match app.reserve(caller, sent.key.as_ref()).await? {
        KeyedRequest::New(reservation) => reservation,
        KeyedRequest::Repeated(stored) => {
            let digest = body::digest(body, limit).await?;
            return replay(stored, &digest.sha256);
        }
    };
    let space = app.limits.quotas.check_space(&app.db, caller.organization);
    if let Err(error) = space.await {
        abandon(reservation).await?;
        return Err(error.into());
    }
    let settings = IngestSettings {
        format,
        key: load_rows::open_key(&app.keys, &dataset)?,
        storage: Arc::clone(&app.storage),
        limits: ReadLimits {
            cell_bytes: app.limits.cell_bytes,
            total_bytes: limit,
        },
    };
    match ingest(&app.db, &dataset, settings, body).await {
        Ok((writer, totals)) => {
            let key = load_rows::open_key(&app.keys, &dataset)?;
            let rules = SubmissionRules {
                duplicates: sent.duplicates,
                quotas: &app.limits.quotas,
            };
            let commit = writer.commit(&key, caller, &totals, rules, reservation, stored);
            committed(&totals, commit.await?)
        }
        Err(error) => {
            abandon(reservation).await?;
            Err(error.into())
        }
    }
}

fn committed(
    totals: &SubmissionTotals,
    result: SubmissionResult,
) -> Result<IdempotentAnswer, ApiError> {
    match result {
        SubmissionResult::Stored(answer) => {
            metrics::counter!("pais_submitted_rows_total").increment(totals.rows.number);
            Ok(answer)
        }
        SubmissionResult::TokenEnded => Err(ApiError::unauthenticated()),
        SubmissionResult::NoDataset => Err(ApiError::not_found()),
        SubmissionResult::KeyTaken => Err(key_in_use()),
        SubmissionResult::Duplicate(earlier) => Err(ApiError::new(
            Code::DuplicateSubmission,
            format!(
                "the rows are those of submission {earlier}, in whatever order, and nothing was \
                 stored; if they are further rows, send them with `?allow_duplicate=true`"
            ),
        )),
    }
}

fn stored(submission: &Submission) -> Result<IdempotentAnswer, serde_json::Error> {
    let document = SubmissionDocument {
        id: submission.id,
        dataset_id: submission.dataset,
        rows: submission.rows,
        bytes: submission.bytes,
        sha256: hex::encode(&submission.sha256),
        created_at: submission.created_at,
    };
    let path = format!("/v1/datasets/{}", submission.dataset);
    idempotent_answer(StatusCode::CREATED, path, &document)
}
