//! `/v1/releases/{id}/data` and `/tables/{table}`: released tables are fetched.

use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use pais_core::table::{BoundedColumn, taken_name};
use pais_io::FileFormat;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

use crate::db::releases::{self, StoredTable};
use crate::engine::composition_tables::ANATOMIZED_TABLE;
use crate::engine::rendering::Rendering;
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};

use super::downloads::Download;
use super::error::ApiError;
use super::extract::headers::best;
use super::extract::{Parameters, Path, ReleaseReader};
use super::releases::{load_release, viewer};
use super::state::CallerApp;

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
    /// `bounds` adds the columns `<column>_lo` and `<column>_hi` after each generalized column of
    /// numbers or dates: the ends of its intervals, null where a label has none.
    #[param(pattern = "^bounds$")]
    pub intervals: Option<String>,
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
        (status = 206, description = "The part that `Range` requests", content((String = "text/csv"), (String = "application/x-ndjson"), (Vec<u8> = "application/vnd.apache.parquet"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 400, description = "`invalid_parameter`: no such format, or another word than `bounds`"),
        (status = 406, description = "`not_acceptable`"),
        (status = 409, description = "`release_in_files`: the rows are in the files of the release alone"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`invalid_value`: `safe_csv` with another format than CSV, or bounds whose name another column has; `limit_exceeded`: the table needs more memory than there is"),
    ),
)]
pub(super) async fn data(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<ReleaseId>,
    Parameters(query): Parameters<FormatQuery>,
    request: Parts,
) -> Result<Response, ApiError> {
    fetch(&app, id, "data", &query, &request).await
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
        (status = 206, description = "The part that `Range` requests", content((String = "text/csv"), (String = "application/x-ndjson"), (Vec<u8> = "application/vnd.apache.parquet"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 400, description = "`invalid_parameter`: no such format, or another word than `bounds`"),
        (status = 406, description = "`not_acceptable`"),
        (status = 409, description = "`release_in_files`: the rows are in the files of the release alone"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`invalid_value`: `safe_csv` with another format than CSV, or bounds whose name another column has; `limit_exceeded`: the table needs more memory than there is"),
    ),
)]
pub(super) async fn table(
    ReleaseReader(app): ReleaseReader,
    Path((id, name)): Path<(ReleaseId, String)>,
    Parameters(query): Parameters<FormatQuery>,
    request: Parts,
) -> Result<Response, ApiError> {
    fetch(&app, id, &name, &query, &request).await
}

async fn fetch(
    app: &CallerApp,
    id: ReleaseId,
    name: &str,
    query: &FormatQuery,
    request: &Parts,
) -> Result<Response, ApiError> {
    let table = Arc::new(get_table(app, id, name).await?);
    let mut rendering = requested_rendering(query, &request.headers)?;
    if has_bounds(query)? {
        rendering.bounds = Some(bounded_columns(app, &table).await?);
    }
    let format = rendering.format;
    let version = env!("CARGO_PKG_VERSION");
    let stem = table.release_name.clone().unwrap_or_else(|| id.to_string());
    let download = Download {
        releases: vec![id],
        part: name.to_owned(),
        // CSV is identified by its SHA-256. The bytes of the other formats depend on the version of
        // the program, too.
        tag: if rendering.is_exact_csv() {
            table.sha256.clone()
        } else {
            format!("{}-{}-{version}", table.sha256, rendering.file_ending())
        },
        content_type: match format {
            FileFormat::Text(_) => "text/csv; charset=utf-8",
            FileFormat::Ndjson | FileFormat::Parquet => format.media_type(),
        },
        stem: if name == "data" {
            stem
        } else {
            format!("{stem}-{name}")
        },
        ending: format.as_str(),
        is_negotiated: true,
    };
    let render = || async { Ok(app.renderer().render(&table, &rendering).await?) };
    download.answer(app, request, render).await
}

/// `?safe_csv=` with the requested format.
pub(super) fn requested_rendering(
    query: &FormatQuery,
    headers: &HeaderMap,
) -> Result<Rendering, Problem> {
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

/// The columns of numbers and dates of a released table, whose bounds can be rendered.
///
/// # Errors
/// `invalid_value` where another column has the name of a bound; `not_found`.
async fn bounded_columns(
    app: &CallerApp,
    table: &StoredTable,
) -> Result<Arc<[BoundedColumn]>, ApiError> {
    let release = load_release(app, table.release).await?;
    let bounded = release.codebook()?.bounded_columns();
    let names = table.columns.iter().map(|column| &*column.name);
    if let Some(name) = taken_name(names, &bounded) {
        let detail = format!(
            "the bounds of a column would be in `{name}`, which is another column of the table; \
             leave `intervals` out, or rename the column in the dataset"
        );
        return Err(Problem::new(Code::InvalidValue, detail).into());
    }
    Ok(bounded.into())
}

/// A table of a release that the caller may see, without its rows.
///
/// # Errors
/// `not_found`; `withdrawn`; `release_in_files`.
pub(super) async fn get_table(
    app: &CallerApp,
    id: ReleaseId,
    name: &str,
) -> Result<StoredTable, ApiError> {
    // PostgreSQL rejects NUL in text, and no table's name contains it.
    if name.contains('\0') {
        return Err(ApiError::not_found());
    }
    let viewer = viewer(app.caller);
    let find = async |name| releases::table(&app.db, viewer, id, name).await;
    let Some(table) = find(name).await? else {
        if let Some(place) = releases::table_place(&app.db, viewer, id, name).await? {
            return Err(if place.is_withdrawn {
                ApiError::withdrawn()
            } else {
                let detail = "the rows of the release are in its files alone: `/v1/releases/{id}/files` \
                              lists them, and `/files/{name}` has each of them";
                ApiError::new(Code::ReleaseInFiles, detail)
            });
        }
        let is_anatomized = name == "data" && find(ANATOMIZED_TABLE).await?.is_some();
        return Err(if is_anatomized {
            let detail = "the release is anatomized, so it has several tables: \
                          `/v1/releases/{id}/tables/qit` has the rows, and its `tables` the names";
            ApiError::new(Code::NotFound, detail)
        } else {
            ApiError::not_found()
        });
    };
    if table.is_withdrawn {
        Err(ApiError::withdrawn())
    } else {
        Ok(table)
    }
}
