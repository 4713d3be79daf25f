//! `/v1/datasets/draft`: a dataset is proposed from its rows.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use pais_io::FileFormat;
use pais_io::draft::{self, Draft, DraftFailure, DraftOptions};
use pais_io::read::{Delimiter, ReadFailure, ReadLimits, TextParameters};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::engine::ingest::body::{FrameReader, frames, pump};
use crate::engine::ingest::spool_file::SpoolFile;
use crate::engine::{WorkError, on_thread};
use crate::problem::{Code, Problem};
use crate::storage::Storage;

use super::error::ApiError;
use super::extract::headers::received_format;
use super::extract::query::TextQuery;
use super::extract::{Holder, Parameters};
use super::state::CallerApp;
use super::text::name;
use super::upload::incoming::{ContentEncoding, IncomingBody};

/// The name of a proposed dataset.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DraftQuery {
    /// Name of the proposed dataset; `draft` when omitted.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    name: Option<String>,
}

/// Propose a dataset from its rows
///
/// The body is as for a submission; none of it is stored. The response has a body for
/// `POST /v1/datasets`, how the text of the file is written, for each column the reasons for its
/// proposal, and the questions that the rows leave open; reasons and questions contain no value of a
/// cell but well-known ones for missing cells. `safe_harbor` names the likely HIPAA identifier category
/// of a column. Query parameters override detected values.
#[utoipa::path(
    post, path = "/v1/datasets/draft", tag = "datasets",
    params(
        DraftQuery,
        TextQuery,
        ("Content-Encoding" = Option<String>, Header, description = "`gzip` or `zstd`",
            pattern = "^(gzip|zstd)$"),
    ),
    request_body(content((String = "text/csv"), (String = "text/tab-separated-values"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
        description = "CSV with a header row, one JSON object a line, or Parquet"),
    responses(
        (status = 200, description = "The proposal", body = Draft),
        (status = 400, description = "`malformed_body`: undecodable text, no gzip, zstd or Parquet, bad JSON, an unclosed quote, NUL; `invalid_parameter`"),
        (status = 408, description = "`request_timeout`: the client was silent or slow for too long"),
        (status = 422, description = "`invalid_header`, `invalid_cells`, `empty_submission`, `invalid_name`; `invalid_value`: text parameters that exclude each other, or are given for a body that is not text"),
    ),
)]
pub(super) async fn propose(
    Holder(app): Holder,
    Parameters(query): Parameters<DraftQuery>,
    Parameters(text): Parameters<TextQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let mut incoming = IncomingBody::new(body, &headers, app.limits.upload_pace);
    let answer = draft(&app, query, text, &headers, &mut incoming).await;
    // The rows after those that were read, and the rest of a refused body.
    incoming.drain(app.limits.upload_bytes).await;
    match answer {
        Ok(draft) => Json(draft).into_response(),
        Err(error) => error.into_response(),
    }
}

async fn draft(
    app: &CallerApp,
    query: DraftQuery,
    text: TextQuery,
    headers: &HeaderMap,
    incoming: &mut IncomingBody,
) -> Result<Draft, ApiError> {
    let mut given = text.parse()?;
    let format = format(headers, &mut given)?;
    let encoding = ContentEncoding::from_headers(headers)?;
    incoming.receive_first().await?;
    let name = name(query.name.as_deref().unwrap_or("draft"))?;
    let admission = app.uploads.admit(app.caller.organization, &app.memory, 0);
    let _admission = admission.await?;
    let limits = ReadLimits {
        cell_bytes: app.limits.cell_bytes,
        total_bytes: app.limits.upload_bytes,
    };
    let (columns, storage) = (app.limits.columns, Arc::clone(&app.storage));
    let (sender, source) = frames();
    let reading = on_thread(move || {
        let options = DraftOptions {
            name: &name,
            limits,
            columns,
        };
        read(format, given, options, source, &storage)
    });
    let body = &mut *incoming.decoded(encoding);
    let pumping = pump(body, limits.total_bytes, Some(sender));
    let (pumped, draft) = tokio::join!(pumping, reading);
    // What is wrong with the body is the cause of what is wrong with its rows.
    pumped?;
    Ok(draft?)
}

fn read(
    format: FileFormat,
    given: TextParameters,
    options: DraftOptions<'_>,
    source: FrameReader,
    storage: &Storage,
) -> Result<Draft, WorkError> {
    let draft = match format {
        FileFormat::Text(_) => draft::csv(source, given, options),
        FileFormat::Ndjson => draft::ndjson(source, options),
        FileFormat::Parquet => match SpoolFile::copy(source, &storage.spool) {
            Ok(file) => draft::parquet(file, options),
            Err(ReadFailure::Refused(error)) => Err(DraftFailure::Refused(error)),
            Err(ReadFailure::Source(error)) => Err(DraftFailure::Source(error)),
            Err(ReadFailure::Sink(error)) => return Err(error),
        },
    };
    draft.map_err(|failure| match failure {
        DraftFailure::Refused(error) => error.into(),
        DraftFailure::Sink(never) => match never {},
        // The error of the body is the one reported.
        DraftFailure::Source(_) => {
            let detail = "the body could not be read to its end";
            Problem::new(Code::MalformedBody, detail).into()
        }
    })
}

/// The format of the body. The media type of tab-separated values determines the delimiter.
fn format(headers: &HeaderMap, text: &mut TextParameters) -> Result<FileFormat, Problem> {
    let checked = match (text.delimiter, text.decimal) {
        (Some(_), Some(_)) => *text,
        // Marks of numbers need not fit the defaults, which are not the file's.
        _ => TextParameters {
            decimal: None,
            thousands: None,
            ..*text
        },
    };
    let declared = TextParameters::default();
    match received_format(headers, &checked, &declared)? {
        FileFormat::Text(format) => {
            if format.delimiter() == Delimiter::TAB {
                text.delimiter = Some(Delimiter::TAB);
            }
            Ok(FileFormat::Text(format))
        }
        _ => received_format(headers, text, &declared),
    }
}
