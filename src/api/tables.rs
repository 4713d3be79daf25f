//! `/v1/releases/{id}/data` and `/tables/{table}`: released tables are fetched.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headers::{ETag, HeaderMapExt, Range};
use pais_core::codebook::Codebook;
use pais_core::table::{BoundedColumn, taken_name};
use pais_io::FileFormat;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::StoreError;
use crate::db::releases::StoredTable;
use crate::engine::rendered_tables::Rendering;
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use crate::db::{releases, token_validity};

use super::error::{ApiError, internal_error};
use super::extract::headers::best;
use super::extract::{HolderOrRecipient, Parameters, Path};
use super::releases::{load_release, viewer};
use super::response::permitted_body::while_permitted;
use super::response::served_file::{is_cached, requested_range, serve_file, unservable};
use super::state::{App, AppState};

/// `?format=`, `?safe_csv=` and `?intervals=`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FormatQuery {
    /// `csv`, `ndjson` or `parquet`; wins over `Accept`.
    #[param(pattern = "^(csv|ndjson|parquet)$")]
    pub format: Option<String>,
    /// CSV only: whether cells that a spreadsheet takes for formulas, because they begin with `=`,
    /// `+`, `-`, `@`, a tab or a carriage return, get a `'` before them. Numbers stay as they are.
    pub safe_csv: Option<bool>,
    /// `bounds` adds the columns `<column>_lo` and `<column>_hi` behind each generalized column of
    /// numbers or dates: the ends of its intervals, null where a label has none.
    #[param(pattern = "^bounds$")]
    pub intervals: Option<String>,
}

/// The routes of released tables.
pub(super) fn routes() -> OpenApiRouter<AppState> {
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
        (status = 400, description = "`invalid_parameter`: no such format, or another word than `bounds`"),
        (status = 406, description = "`not_acceptable`"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`invalid_value`: `safe_csv` with another format than CSV, or bounds whose name another column has; `limit_exceeded`: the table needs more memory than there is"),
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
    let request = TableRequest {
        caller,
        release: id,
        table: "data",
        query: &query,
        method,
        headers: &headers,
    };
    request.answer(&state.of(caller)).await
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
        (status = 400, description = "`invalid_parameter`: no such format, or another word than `bounds`"),
        (status = 406, description = "`not_acceptable`"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`invalid_value`: `safe_csv` with another format than CSV, or bounds whose name another column has; `limit_exceeded`: the table needs more memory than there is"),
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
    let request = TableRequest {
        caller,
        release: id,
        table: &name,
        query: &query,
        method,
        headers: &headers,
    };
    request.answer(&state.of(caller)).await
}

/// A request for a table of a release.
struct TableRequest<'a> {
    caller: Caller,
    release: ReleaseId,
    table: &'a str,
    query: &'a FormatQuery,
    method: Method,
    headers: &'a HeaderMap,
}

impl TableRequest<'_> {
    async fn answer(self, service: &App) -> Result<Response, ApiError> {
        let (caller, id, headers) = (self.caller, self.release, self.headers);
        let table = get_table(service, caller, id, self.table).await?;
        let table = Arc::new(table);
        let mut rendering = requested_rendering(self.query, headers)?;
        if has_bounds(self.query)? {
            rendering.bounds = Some(bounded_columns(service, caller, &table).await?);
        }
        let rendering = &rendering;
        let etag = etag(&table, rendering)?;
        if is_cached(headers, &etag) {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            describe(response.headers_mut(), &table, rendering, etag);
            return Ok(response);
        }
        let is_get = self.method == Method::GET;
        // Ranges are defined for `GET` only (RFC 9110, 14.2).
        let range = requested_range(headers, &etag).filter(|_| is_get);
        let mut response = serve(service, &table, rendering, self.method, range).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        describe(response.headers_mut(), &table, rendering, etag);
        if is_get {
            let owner = table.organization;
            releases::record_fetch(&service.db, caller, owner, id, self.table).await?;
        }
        let (service, name) = (service.clone(), self.table.to_owned());
        Ok(response.map(|body| {
            while_permitted(body, move || {
                let (service, name) = (service.clone(), name.clone());
                async move { may_still_read(&service, caller, id, &name).await }
            })
        }))
    }
}

/// `?safe_csv=` with the requested format.
fn requested_rendering(query: &FormatQuery, headers: &HeaderMap) -> Result<Rendering, Problem> {
    let format = requested_format(query, headers)?;
    let is_safe = query.safe_csv.unwrap_or(false);
    if is_safe && format != FileFormat::CSV {
        return Err(Problem::new(
            Code::InvalidValue,
            "`safe_csv` is for CSV only; leave it out, or use `format=csv`",
        ));
    }
    Ok(Rendering {
        is_safe,
        ..Rendering::exact(format)
    })
}

/// Whether `?intervals=` asks for columns of bounds.
fn has_bounds(query: &FormatQuery) -> Result<bool, Problem> {
    match query.intervals.as_deref() {
        None => Ok(false),
        Some("bounds") => Ok(true),
        Some(_) => Err(Problem::new(
            Code::InvalidParameter,
            "`intervals` must be bounds; leave it out for the labels alone",
        )),
    }
}

/// `?format=`, or what `Accept` prefers.
fn requested_format(query: &FormatQuery, headers: &HeaderMap) -> Result<FileFormat, Problem> {
    let Some(name) = query.format.as_deref() else {
        let media = FileFormat::RELEASED.map(FileFormat::media_type);
        return best(headers, &media).map(|index| FileFormat::RELEASED[index]);
    };
    let format = FileFormat::RELEASED
        .into_iter()
        .find(|f| f.as_str() == name);
    format.ok_or_else(|| {
        let names = FileFormat::RELEASED.map(FileFormat::as_str).join(", ");
        Problem::new(
            Code::InvalidParameter,
            format!("`format` must be one of {names}"),
        )
    })
}

/// The entity tag of the bytes of a table in a format. CSV is identified by its SHA-256. The bytes
/// of the other formats depend on the version of the program, too.
fn etag(table: &StoredTable, rendering: &Rendering) -> Result<ETag, Problem> {
    let tag = if rendering.is_exact_csv() {
        format!("\"{}\"", table.sha256)
    } else {
        format!(
            "\"{}-{}-{}\"",
            table.sha256,
            rendering.file_ending(),
            env!("CARGO_PKG_VERSION")
        )
    };
    tag.parse().map_err(|_| {
        tracing::error!(tag, "a table's entity tag is invalid");
        internal_error()
    })
}

/// Serves the file of a rendered table.
async fn serve(
    service: &App,
    table: &Arc<StoredTable>,
    rendering: &Rendering,
    method: Method,
    range: Option<Range>,
) -> Result<Response, ApiError> {
    // The rendered file may be removed before it is opened; then it is rendered again.
    for _ in 0..3 {
        let path = service.renderer().render(table, rendering).await?;
        if let Some(response) = serve_file(path, &method, range.clone()).await? {
            return Ok(response);
        }
    }
    Err(unservable())
}

/// Sets the headers that describe a table.
fn describe(headers: &mut HeaderMap, table: &StoredTable, rendering: &Rendering, etag: ETag) {
    let format = rendering.format;
    let content_type = match format {
        FileFormat::Text(_) => "text/csv; charset=utf-8",
        FileFormat::Ndjson | FileFormat::Parquet => format.media_type(),
    };
    let disposition = format!("attachment; filename=\"{}\"", file_name(table, format));
    // The modification time of a rendered file is not that of the table.
    headers.remove(header::LAST_MODIFIED);
    headers.typed_insert(etag);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
}

/// A file name that is valid in every file system and in a header.
fn file_name(table: &StoredTable, format: FileFormat) -> String {
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

/// The columns of numbers and dates of a released table, whose bounds can be rendered.
///
/// # Errors
/// `invalid_value` where another column has the name of a bound; `not_found`.
async fn bounded_columns(
    app: &App,
    caller: Caller,
    table: &StoredTable,
) -> Result<Arc<[BoundedColumn]>, ApiError> {
    let release = load_release(&app.db, caller, table.release).await?;
    let damaged = |_| StoreError::Damaged("the codebook of a release");
    let codebook = release.codebook.unwrap_or_default();
    let codebook: Codebook = serde_json::from_value(codebook).map_err(damaged)?;
    let bounded = codebook.bounded_columns();
    let columns = table.columns.as_array().map_or(&[][..], Vec::as_slice);
    let names = columns.iter().filter_map(column_name);
    if let Some(name) = taken_name(names, &bounded) {
        let detail = format!(
            "the bounds of a column would be in `{name}`, which is another column of the table; \
             leave `intervals` out, or rename the column in the dataset"
        );
        return Err(Problem::new(Code::InvalidValue, detail).into());
    }
    Ok(bounded.into())
}

fn column_name(column: &Value) -> Option<&str> {
    column["name"].as_str()
}

/// A table of a release that the caller may see, without its rows.
///
/// # Errors
/// `not_found`; `withdrawn`.
pub(super) async fn get_table(
    app: &App,
    caller: Caller,
    id: ReleaseId,
    name: &str,
) -> Result<StoredTable, ApiError> {
    // PostgreSQL rejects NUL in text, and no table's name contains it.
    if name.contains('\0') {
        return Err(ApiError::not_found());
    }
    let table = releases::table(&app.db, viewer(caller), id, name).await?;
    let table = table.ok_or_else(ApiError::not_found)?;
    if table.is_withdrawn {
        Err(ApiError::withdrawn())
    } else {
        Ok(table)
    }
}

/// Whether a caller who has begun to read a table of a release may still read it: its token works,
/// a recipient still has a grant, and the release is not withdrawn. `false` if the database fails.
pub(super) async fn may_still_read(app: &App, caller: Caller, id: ReleaseId, name: &str) -> bool {
    let permitted = async {
        let is_valid = token_validity::is_valid(&app.db, caller.token).await?;
        let table = releases::table(&app.db, viewer(caller), id, name).await?;
        Ok::<_, StoreError>(is_valid && table.is_some_and(|table| !table.is_withdrawn))
    };
    permitted.await.unwrap_or_else(|error| {
        tracing::warn!(
            release = %id,
            error = &error as &dyn std::error::Error,
            "a download ends because its permission could not be checked"
        );
        false
    })
}
