//! `/v1/publications/{id}/data` and `/manifest`: all editions as one table, and their list.

use std::sync::Arc;

use axum::Json;
use axum::http::request::Parts;
use axum::response::Response;
use pais_core::codebook::Codebook;
use pais_io::FileFormat;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

use crate::db::editions::{self, ReceivedEdition};
use crate::engine::stacked_editions::{EditionTable, StackLabels, Stacked};
use crate::ids::PublicationId;
use crate::problem::{Code, Problem};

use super::downloads::Download;
use super::error::ApiError;
use super::events::editions::check_visible;
use super::extract::{Parameters, Path, ReleaseReader};
use super::releases::{load_release, viewer};
use super::state::CallerApp;
use super::tables::{FormatQuery, get_table, requested_rendering};

/// Maximum number of editions of one table.
const MOST_EDITIONS: usize = 10_000;

/// `?editions=` and `?format=`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StackQuery {
    /// `as_released` (default): the labels of each edition. `common`: the finest labels that cover
    /// those of all editions, so that one query fits the whole.
    #[param(pattern = "^(as_released|common)$")]
    pub editions: Option<String>,
    /// `csv`, `ndjson` or `parquet`; wins over `Accept`.
    #[param(pattern = "^(csv|ndjson|parquet)$")]
    pub format: Option<String>,
}

impl StackQuery {
    fn has_common_labels(&self) -> Result<bool, Problem> {
        match self.editions.as_deref() {
            None | Some("as_released") => Ok(false),
            Some("common") => Ok(true),
            Some(_) => Err(Problem::new(
                Code::InvalidParameter,
                "`editions` must be as_released or common",
            )),
        }
    }
}

/// Fetch all published editions as one table
///
/// Its first column `edition` has the number of the edition of each row. It has the editions that the
/// caller may read; those that are withdrawn are left out. The entity tag changes with each edition.
#[utoipa::path(
    get, path = "/v1/publications/{id}/data", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication"), StackQuery),
    responses(
        (status = 200, description = "The table", content((String = "text/csv"), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet")),
         headers(("ETag" = String, description = "Changes with each edition"))),
        (status = 206, description = "The part that `Range` requests", content((String = "text/csv"), (String = "application/x-ndjson"), (Vec<u8> = "application/vnd.apache.parquet"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 400, description = "`invalid_parameter`: no such format, or another word than `as_released` and `common`"),
        (status = 404, description = "`not_found`: no such publication, or no edition that may be read"),
        (status = 406, description = "`not_acceptable`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`limit_exceeded`: the table needs more memory than there is, or has more than 10,000 editions"),
    ),
)]
pub(super) async fn stacked(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<PublicationId>,
    Parameters(query): Parameters<StackQuery>,
    request: Parts,
) -> Result<Response, ApiError> {
    let is_common = query.has_common_labels()?;
    let format = FormatQuery {
        format: query.format.clone(),
        ..FormatQuery::default()
    };
    let rendering = requested_rendering(&format, &request.headers)?;
    let published = published(&app, id, MOST_EDITIONS as i64 + 1).await?;
    if published.len() > MOST_EDITIONS {
        let detail = "the publication has more than 10,000 editions; fetch their releases, which \
                      `GET /v1/publications/{id}/manifest` lists";
        return Err(ApiError::new(Code::LimitExceeded, detail));
    }
    if published.is_empty() {
        let detail = "no edition of the publication is published yet that this token may read";
        return Err(ApiError::new(Code::NotFound, detail));
    }
    let format = rendering.format;
    let word = if is_common { "common" } else { "as_released" };
    let mut digest = Sha256::new();
    for edition in &published {
        digest.update(format!("{}:{}\n", edition.number, edition.sha256));
    }
    let digest = hex::encode(digest.finalize());
    let version = env!("CARGO_PKG_VERSION");
    let download = Download {
        releases: published.iter().map(|it| it.release_id).collect(),
        part: "data".to_owned(),
        tag: format!("{digest}-{word}-{}-{version}", rendering.file_ending()),
        content_type: match format {
            FileFormat::Text(_) => "text/csv; charset=utf-8",
            FileFormat::Ndjson | FileFormat::Parquet => format.media_type(),
        },
        stem: format!("publication-{id}-{word}"),
        ending: format.as_str(),
        is_negotiated: true,
    };
    // A recipient may read other editions than the holder: the digest covers those.
    let name = format!("{id}-{digest}-{word}");
    let render = || async {
        let stack = Arc::new(Stacked {
            name: name.clone(),
            labels: if is_common {
                StackLabels::Common(codebooks(&app, &published).await?)
            } else {
                StackLabels::AsReleased
            },
            tables: edition_tables(&app, &published).await?,
        });
        Ok(app.renderer().render_stack(&stack, &rendering).await?)
    };
    download.answer(&app, &request, render).await
}

/// The tables of editions, without their rows.
async fn edition_tables(
    app: &CallerApp,
    published: &[ReceivedEdition],
) -> Result<Vec<EditionTable>, ApiError> {
    let mut tables = Vec::with_capacity(published.len());
    for edition in published {
        tables.push(EditionTable {
            number: edition.number,
            table: get_table(app, edition.release_id, "data").await?,
        });
    }
    Ok(tables)
}

/// The codebooks of editions.
async fn codebooks(
    app: &CallerApp,
    published: &[ReceivedEdition],
) -> Result<Vec<Codebook>, ApiError> {
    let mut codebooks = Vec::with_capacity(published.len());
    for edition in published {
        codebooks.push(load_release(app, edition.release_id).await?.codebook()?);
    }
    Ok(codebooks)
}

/// The editions of a publication that the caller may read, with the SHA-256 of each.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PublicationManifest {
    /// The publication.
    pub publication_id: PublicationId,
    /// Its published editions, oldest first. `sha256` is that of the CSV of the edition's release.
    pub editions: Vec<ReceivedEdition>,
}

/// Look up what editions there are, with the SHA-256 of each.
#[utoipa::path(
    get, path = "/v1/publications/{id}/manifest", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication")),
    responses((status = 200, description = "The editions that may be read", body = PublicationManifest)),
)]
pub(super) async fn manifest(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<PublicationId>,
) -> Result<Json<PublicationManifest>, ApiError> {
    Ok(Json(PublicationManifest {
        publication_id: id,
        editions: published(&app, id, i64::MAX).await?,
    }))
}

/// The published editions that the caller may read, oldest first, at most `limit`.
///
/// # Errors
/// `not_found`.
async fn published(
    app: &CallerApp,
    id: PublicationId,
    limit: i64,
) -> Result<Vec<ReceivedEdition>, ApiError> {
    check_visible(app, id).await?;
    Ok(editions::readable(&app.db, viewer(app.caller), id, 0, limit).await?)
}
