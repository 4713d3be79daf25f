//! `/v1/datasets/{id}/submissions`: rows are sent to a dataset, and stored completely or not at all.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{DatasetId, SubmissionId};
use pais_io::FileFormat;
use pais_io::read::{IdentifierRepeats, ReadLimits};
use serde::Deserialize;
use tokio::io::AsyncRead;
use utoipa::IntoParams;

use crate::db::datasets::{self, StoredDataset, SubmissionSummary};
use crate::db::deletion;
use crate::db::idempotency::{IdempotentAnswer, Reservation};
use crate::db::submissions::{
    self, Duplicates, NewSubmission, Submission, SubmissionRules, SubmissionWriter,
};
use crate::engine::ingest::body;
use crate::engine::ingest::pipeline::{BodyFile, IngestSettings, ingest};
use crate::problem::Code;

use super::datasets::{load, text_format};
use super::error::ApiError;
use super::extract::headers::received_format;
use super::extract::query::TextQuery;
use super::extract::{Holder, Parameters, Path};
use super::idempotency::{IdempotencyKey, KeyedRequest, abandon, replay};
use super::legal_holds::deleted;
use super::page::{Page, PageQuery};
use super::removal::after_deletion;
use super::state::CallerApp;
use super::stored_submissions::{committed, not_replaceable, stored};
use super::upload::incoming::{ContentEncoding, IncomingBody};

/// Memory for the digests of identifiers, in bytes: their hash table while it grows for the last time.
const IDENTIFIER_BYTES: u64 = 28 << 20;

/// The query of a submission.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubmissionQuery {
    /// Whether rows that the dataset has already, in whatever order and format, are stored again;
    /// `false` when omitted.
    pub allow_duplicate: Option<bool>,
    /// The submission of the dataset whose place the rows take. Where a job that read it has a release,
    /// the dataset needs a column of the role `subject`.
    pub replaces: Option<SubmissionId>,
}

impl SubmissionQuery {
    fn duplicates(&self) -> Duplicates {
        match self.allow_duplicate {
            Some(true) => Duplicates::Allowed,
            _ => Duplicates::Refused,
        }
    }
}

/// Send rows to a dataset
///
/// The body is a table whose header or keys name exactly the declared columns, in any order.
/// It is read as it streams, and stored whole or not at all. A refusal names the first 20
/// offending cells by line and column, and the number of all by column (`errors_by_column`). The
/// cells of a column of the role `subject` are stored only as keyed hashes.
///
/// With `replaces` the rows take the place of those of another submission: later jobs and editions,
/// profile, risk and numbers of rows are without the replaced ones. Releases stay, and no further one is
/// made of replaced rows. If the rows are refused, nothing is replaced.
///
/// Text is read as the query says, and where it does not, as the dataset's `format` does. Its numbers are stored as if they were written with a point and
/// without separators of thousands; `sha256` is that of the text as it came.
#[utoipa::path(
    post, path = "/v1/datasets/{id}/submissions", tag = "datasets",
    params(
        ("id" = DatasetId, Path, description = "The dataset"),
        SubmissionQuery,
        ("Content-Encoding" = Option<String>, Header, description = "`gzip` or `zstd`",
            pattern = "^(gzip|zstd)$"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a retry harmless for 24 h",
            min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]{0,253}[!-~])?$"),
        TextQuery,
    ),
    request_body(content((String = "text/csv"), (String = "text/tab-separated-values"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
        description = "CSV with a header row, one JSON object a line, or Parquet"),
    responses(
        (status = 201, description = "Stored", body = Submission,
         headers(("Location" = String, description = "The dataset"))),
        (status = 400, description = "`malformed_body`: undecodable text, no gzip, zstd or Parquet, bad JSON, an unclosed quote, NUL; `invalid_parameter`"),
        (status = 408, description = "`request_timeout`: the client was silent or slow for too long"),
        (status = 409, description = "`idempotency_key_reused`, `idempotency_key_in_use`; `duplicate_submission`: an earlier submission has the same rows; `located_dataset`: its rows are at a location; `conflict`: the columns of the dataset were changed meanwhile; `not_replaceable`: another submission has taken the place of the one to be replaced, or its rows were released without a `subject` column"),
        (status = 404, description = "`not_found`: the dataset, or the submission to be replaced"),
        (status = 422, description = "`invalid_header`, `invalid_cells`, `empty_submission`; `invalid_value`: text parameters that exclude each other, or are given for a body that is not text"),
    ),
)]
pub(super) async fn create(
    Holder(app): Holder,
    Path(id): Path<DatasetId>,
    Parameters(query): Parameters<SubmissionQuery>,
    Parameters(text): Parameters<TextQuery>,
    key: IdempotencyKey,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let mut incoming = IncomingBody::new(body, &headers, app.limits.upload_pace);
    let sent = Sent {
        dataset: id,
        text,
        duplicates: query.duplicates(),
        replaces: query.replaces,
        key,
        headers: &headers,
    };
    match submit(&app, sent, &mut incoming).await {
        Ok(answer) => {
            app.settle_editions().await;
            answer.into_response()
        }
        Err(error) => {
            incoming.drain(app.limits.upload_bytes).await;
            error.into_response()
        }
    }
}

/// List the submissions of a dataset, oldest first.
#[utoipa::path(get, path = "/v1/datasets/{id}/submissions", tag = "datasets",
    params(("id" = DatasetId, Path, description = "The dataset"), PageQuery),
    responses((status = 200, description = "A page", body = Page<SubmissionSummary>)))]
pub(super) async fn list(
    Holder(app): Holder,
    Path(id): Path<DatasetId>,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<SubmissionSummary>>, ApiError> {
    let page = query.parse()?;
    let rows = datasets::list_submissions(
        &app.db,
        &app.keys,
        app.caller.organization,
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
pub(super) async fn delete(
    Holder(app): Holder,
    Path((dataset, submission)): Path<(DatasetId, SubmissionId)>,
) -> Result<StatusCode, ApiError> {
    // As with a dataset.
    app.storage.make_room();
    deleted(deletion::delete_submission(&app.db, app.caller, dataset, submission).await?)?;
    after_deletion(&app).await;
    Ok(StatusCode::NO_CONTENT)
}

/// What a request declares about its body.
struct Sent<'r> {
    dataset: DatasetId,
    text: TextQuery,
    duplicates: Duplicates,
    replaces: Option<SubmissionId>,
    key: IdempotencyKey,
    headers: &'r HeaderMap,
}

/// Stores the rows of a submission. A repeated request gets the stored answer.
async fn submit(
    app: &CallerApp,
    sent: Sent<'_>,
    incoming: &mut IncomingBody,
) -> Result<IdempotentAnswer, ApiError> {
    let dataset = load(app, sent.dataset).await?;
    if dataset.definition.location.is_some() {
        let detail = "the rows of the dataset are at its `location`, so none are sent to it; declare \
                      another dataset";
        return Err(ApiError::new(Code::LocatedDataset, detail));
    }
    let declared = text_format(&dataset.definition)?;
    let format = received_format(sent.headers, &sent.text.clone().parse()?, &declared)?;
    let encoding = ContentEncoding::from_headers(sent.headers)?;
    incoming.receive_first().await?;
    let body = &mut *incoming.decoded(encoding);
    app.storage.check()?;
    let identifiers = IdentifierRepeats::new(&dataset.schema).is_some();
    let extra_bytes = if identifiers { IDENTIFIER_BYTES } else { 0 };
    let admission = app
        .uploads
        .admit(app.caller.organization, &app.memory, extra_bytes);
    let _admission = admission.await?;
    let endpoint = format!("POST /v1/datasets/{}/submissions", sent.dataset);
    let mut reservation = match app.reserve(&endpoint, &sent.key).await? {
        KeyedRequest::New(reservation) => reservation,
        KeyedRequest::Repeated(stored) => {
            let digest = body::digest(body, app.limits.upload_bytes).await?;
            let sent = submissions::sent_digest(&digest.sha256, sent.replaces);
            return replay(stored, &sent);
        }
    };
    let stored = sent.store(app, &dataset, format, body, &mut reservation);
    let stored = stored.await;
    abandon(reservation).await?;
    stored
}

impl Sent<'_> {
    /// Reads the rows and stores them. The reservation is taken by the commit.
    async fn store(
        &self,
        app: &CallerApp,
        dataset: &StoredDataset,
        format: FileFormat,
        body: &mut (dyn AsyncRead + Send + Unpin),
        reservation: &mut Option<Reservation>,
    ) -> Result<IdempotentAnswer, ApiError> {
        check_before(app, dataset.id, self.replaces).await?;
        let settings = IngestSettings {
            format,
            files: vec![BodyFile::whole()],
            key: dataset.open_key(&app.keys)?,
            storage: Arc::clone(&app.storage),
            limits: ReadLimits {
                cell_bytes: app.limits.cell_bytes,
                total_bytes: app.limits.upload_bytes,
            },
        };
        let begin = async |id, sealed_key: &[u8]| {
            let new = NewSubmission {
                id,
                sealed_key,
                media_type: format.media_type(),
            };
            Ok(SubmissionWriter::begin(&app.db, dataset.id, new).await?)
        };
        let (writer, totals) = ingest(dataset.schema.clone(), settings, body, begin).await?;
        let key = dataset.open_key(&app.keys)?;
        let rules = SubmissionRules {
            columns_revision: dataset.columns_revision,
            duplicates: self.duplicates,
            replaces: self.replaces,
            quotas: &app.limits.quotas,
        };
        let commit = writer.commit(&key, app.caller, &totals, rules, reservation, stored);
        committed(&totals, commit.await?)
    }
}

/// Checks what can be checked before the rows are read; it is checked again when they are stored.
async fn check_before(
    app: &CallerApp,
    dataset: DatasetId,
    replaces: Option<SubmissionId>,
) -> Result<(), ApiError> {
    let quotas = &app.limits.quotas;
    quotas.check_space(&app.db, app.caller.organization).await?;
    let Some(replaced) = replaces else {
        return Ok(());
    };
    let mut connection = app.db.connection().await?;
    let found = submissions::lock_replaceable(&mut connection, dataset, replaced).await?;
    found.map_err(|reason| not_replaceable(replaced, reason))
}
