//! `/v1/releases/{id}/data` and `/tables/{table}`: released tables are fetched.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tower::ServiceExt;
use tower_http::services::ServeFile;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};
use crate::roles::{Caller, Role};
use crate::store::releases::{self, StoredTable};

use super::releases::viewer;
use super::spool::{self, TableFormat};
use super::{ApiError, AppState, HolderOrRecipient, Parameters, Path, accept};

/// `?format=`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FormatQuery {
    /// `csv`, `ndjson` or `parquet`; wins over `Accept`.
    pub format: Option<String>,
}

/// The tables' routes.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(data))
        .routes(routes!(table))
}

/// Fetch the table of a release.
///
/// An anatomized release has several tables and none of this name.
#[utoipa::path(
    get, path = "/v1/releases/{id}/data", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), FormatQuery),
    responses(
        (status = 200, description = "The table", content((String = "text/csv"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
         headers(("ETag" = String, description = "Changes never"))),
        (status = 206, description = "The part asked for by `Range`", content((String = "text/csv"), (String = "application/x-ndjson"), (Vec<u8> = "application/vnd.apache.parquet"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 400, description = "`invalid_parameter`: no such format"),
        (status = 406, description = "`not_acceptable`"),
        (status = 416, description = "`range_not_satisfiable`"),
    ),
)]
async fn data(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(id): Path<ReleaseId>,
    Parameters(query): Parameters<FormatQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    fetch(&state, caller, (id, "data"), &query, method, &headers).await
}

/// Fetch one table of a release: `data`; or `qit` and `st_<column>`.
#[utoipa::path(
    get, path = "/v1/releases/{id}/tables/{table}", tag = "releases",
    params(
        ("id" = ReleaseId, Path, description = "The release"),
        ("table" = String, Path, description = "One of the release's `tables`"),
        FormatQuery,
    ),
    responses(
        (status = 200, description = "The table", content((String = "text/csv"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
         headers(("ETag" = String, description = "Changes never"))),
        (status = 206, description = "The part asked for by `Range`", content((String = "text/csv"), (String = "application/x-ndjson"), (Vec<u8> = "application/vnd.apache.parquet"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 400, description = "`invalid_parameter`: no such format"),
        (status = 406, description = "`not_acceptable`"),
        (status = 416, description = "`range_not_satisfiable`"),
    ),
)]
async fn table(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path((id, name)): Path<(ReleaseId, String)>,
    Parameters(query): Parameters<FormatQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    fetch(&state, caller, (id, &name), &query, method, &headers).await
}

async fn fetch(
    state: &AppState,
    caller: Caller,
    (id, name): (ReleaseId, &str),
    query: &FormatQuery,
    method: Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // PostgreSQL refuses NUL in text; no table has one in its name.
    if name.contains('\0') {
        return Err(ApiError::not_found());
    }
    let table = releases::table(&state.store, viewer(caller), id, name).await?;
    let table = Arc::new(table.ok_or_else(ApiError::not_found)?);
    let format = asked(query, headers)?;
    let etag = etag(&table, format);
    if names(headers, header::IF_NONE_MATCH, &etag) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(response.headers_mut(), &table, format, &etag);
        return Ok(response);
    }
    let is_fetched = method == Method::GET;
    // Ranges are defined for `GET` alone (RFC 9110, 14.2).
    let range = range(headers, &etag).filter(|_| is_fetched);
    let mut response = serve(state, &table, format, method, range).await?;
    if !response.status().is_success() {
        return Ok(response);
    }
    describe(response.headers_mut(), &table, format, &etag);
    if caller.role == Role::Recipient && is_fetched {
        releases::record_fetch(&state.store, caller, table.organization, id, name).await?;
    }
    Ok(response)
}

/// `?format=`, or what `Accept` prefers.
fn asked(query: &FormatQuery, headers: &HeaderMap) -> Result<TableFormat, Problem> {
    let Some(word) = query.format.as_deref() else {
        let media = TableFormat::ALL.map(TableFormat::media_type);
        return accept::best(headers, &media).map(|place| TableFormat::ALL[place]);
    };
    let format = TableFormat::ALL.into_iter().find(|f| f.as_str() == word);
    format.ok_or_else(|| {
        let words = TableFormat::ALL.map(TableFormat::as_str).join(", ");
        Problem::new(
            Code::InvalidParameter,
            format!("`format` is one of {words}"),
        )
    })
}

/// Names the bytes: those of the CSV by their digest, which says all of the table; those of
/// other formats also by the version that wrote them.
fn etag(table: &StoredTable, format: TableFormat) -> String {
    match format {
        TableFormat::Csv => format!("\"{}\"", table.sha256),
        TableFormat::Ndjson | TableFormat::Parquet => format!(
            "\"{}-{}-{}\"",
            table.sha256,
            format.as_str(),
            env!("CARGO_PKG_VERSION")
        ),
    }
}

/// Whether a list of entity tags names this one, compared weakly (RFC 9110, 13.1.2).
fn names(headers: &HeaderMap, name: header::HeaderName, etag: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(|tag| tag.trim())
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// `Range`, unless `If-Range` names other bytes. What is no single range of bytes is ignored, as
/// RFC 9110 has it: the whole table is an answer to it too.
fn range(headers: &HeaderMap, etag: &str) -> Option<HeaderValue> {
    let stale = headers
        .get(header::IF_RANGE)
        .is_some_and(|tag| tag.as_bytes() != etag.as_bytes());
    headers
        .get(header::RANGE)
        .filter(|range| !stale && is_byte_range(range))
        .cloned()
}

fn is_byte_range(range: &HeaderValue) -> bool {
    let text = range.to_str().unwrap_or_default();
    let Some((unit, range)) = text.split_once('=') else {
        return false;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return false;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let is_range = match (first, last) {
        ("", last) => number(last).is_some(),
        (first, "") => number(first).is_some(),
        (first, last) => number(first).zip(number(last)).is_some_and(|(a, b)| a <= b),
    };
    unit.trim().eq_ignore_ascii_case("bytes") && is_range
}

async fn serve(
    state: &AppState,
    table: &Arc<StoredTable>,
    format: TableFormat,
    method: Method,
    range: Option<HeaderValue>,
) -> Result<Response, ApiError> {
    // A rendered file may be swept away before it is opened; it is then rendered anew.
    for _ in 0..3 {
        let path = spool::rendered(state, table, format).await?;
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method.clone();
        if let Some(range) = &range {
            request.headers_mut().insert(header::RANGE, range.clone());
        }
        // Its error is `Infallible`.
        let Ok(response) = ServeFile::new(path).oneshot(request).await;
        match response.status() {
            StatusCode::NOT_FOUND => {}
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let refusal = ApiError::new(
                    Code::RangeNotSatisfiable,
                    "`Range` lies outside the table; `Content-Range` tells its size",
                );
                let mut refusal = refusal.into_response();
                if let Some(size) = response.headers().get(header::CONTENT_RANGE) {
                    let headers = refusal.headers_mut();
                    headers.insert(header::CONTENT_RANGE, size.clone());
                }
                return Ok(refusal);
            }
            status if status.is_success() => return Ok(response.map(Body::new)),
            status => {
                tracing::error!(%status, "a rendered table could not be served");
                break;
            }
        }
    }
    Err(ApiError::new(
        Code::Unavailable,
        "the table could not be served; try again",
    ))
}

fn describe(headers: &mut HeaderMap, table: &StoredTable, format: TableFormat, etag: &str) {
    let content_type = match format {
        TableFormat::Csv => "text/csv; charset=utf-8",
        TableFormat::Ndjson | TableFormat::Parquet => format.media_type(),
    };
    let disposition = format!("attachment; filename=\"{}\"", file_name(table, format));
    // When a copy was rendered says nothing of the table.
    headers.remove(header::LAST_MODIFIED);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    for (name, text) in [
        (header::ETAG, etag),
        (header::CONTENT_DISPOSITION, disposition.as_str()),
    ] {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    }
}

/// A name that is safe on every disk and in every header.
fn file_name(table: &StoredTable, format: TableFormat) -> String {
    let id = table.release.to_string();
    let stem = table.release_name.as_deref().unwrap_or(&id);
    let stem = match table.name.as_str() {
        "data" => stem.to_owned(),
        name => format!("{stem}-{name}"),
    };
    let safe = |char: char| match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => char,
        _ => '_',
    };
    let stem: String = stem.chars().take(100).map(safe).collect();
    format!("{stem}.{}", format.as_str())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::{names, range};

    #[test]
    fn tags_are_compared_weakly_and_ranges_strongly() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::IF_NONE_MATCH,
            HeaderValue::from_static("\"x\", W/\"y\""),
        );
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        assert!(names(&headers, header::IF_NONE_MATCH, "\"y\""));
        assert!(!names(&headers, header::IF_NONE_MATCH, "\"z\""));
        assert!(range(&headers, "\"y\"").is_some());
        headers.insert(header::IF_RANGE, HeaderValue::from_static("W/\"y\""));
        assert!(range(&headers, "\"y\"").is_none());
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"y\""));
        assert!(range(&headers, "\"y\"").is_some());
        for ignored in [
            "bytes=0-1,3-4",
            "bytes=2-1",
            "lines=0-1",
            "bytes=x-",
            "bytes",
        ] {
            headers.insert(header::RANGE, HeaderValue::from_static(ignored));
            assert!(range(&headers, "\"y\"").is_none(), "{ignored}");
        }
        for taken in ["bytes=0-0", "bytes=7-", "bytes=-5"] {
            headers.insert(header::RANGE, HeaderValue::from_static(taken));
            assert!(range(&headers, "\"y\"").is_some(), "{taken}");
        }
    }
}
