//! `/v1/releases/{id}/package` and the public key of packages.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headers::{ETag, HeaderMapExt};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::ReleaseId;
use crate::service::packages::PackageDocuments;

use super::error::{ApiError, internal_error};
use super::extract::{HolderOrRecipient, Path};
use super::response::permitted_body::while_permitted;
use super::response::served_file::{is_cached, requested_range, serve_file, unservable};
use super::state::AppState;

/// The media type of a package.
const ZIP: &str = "application/zip";

/// The public key that verifies the signatures of packages, as a JSON Web Key (RFC 8037).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SigningKeyDocument {
    /// `OKP`.
    kty: String,
    /// `Ed25519`.
    crv: String,
    /// The key: 32 bytes in base64url without padding.
    x: String,
    /// `EdDSA`.
    alg: &'static str,
    /// `sig`.
    #[serde(rename = "use")]
    usage: &'static str,
}

/// The routes of packages.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(package))
}

/// The route of the public key, which needs no token.
pub(super) fn key_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(pais_signing_key))
}

/// The public key of the signatures of packages.
#[utoipa::path(get, path = "/.well-known/pais-signing-key.json", tag = "operation", security(()),
    responses((status = 200, description = "The key", body = SigningKeyDocument)))]
async fn pais_signing_key(
    State(state): State<AppState>,
) -> Result<Json<SigningKeyDocument>, ApiError> {
    let key = state.unscoped().signing_key()?;
    Ok(Json(SigningKeyDocument {
        kty: key.kty,
        crv: key.crv,
        x: key.x,
        alg: "EdDSA",
        usage: "sig",
    }))
}

/// Fetch a release as one signed file.
///
/// A zip with the tables as CSV and Parquet, `datapackage.json` (Frictionless Data Package, version
/// 1), the report as JSON and as a page, and `manifest.json` with the SHA-256 of each file and an
/// Ed25519 signature. `pais verify-package` checks it.
#[utoipa::path(
    get, path = "/v1/releases/{id}/package", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 200, description = "The package", content((Vec<u8> = "application/zip")),
         headers(("ETag" = String, description = "Changes with the report, the purpose of the grant and the version of the service"))),
        (status = 206, description = "The part asked for by `Range`", content((Vec<u8> = "application/zip"))),
        (status = 304, description = "The client has it, by `If-None-Match`"),
        (status = 410, description = "`withdrawn`"),
        (status = 416, description = "`range_not_satisfiable`"),
        (status = 422, description = "`limit_exceeded`: the package has more than 4 GiB, or a table needs more memory than there is"),
    ),
)]
async fn package(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(id): Path<ReleaseId>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let service = state.of(caller);
    let (owner, page) = service.get_packed_page(caller, id).await?;
    let documents = PackageDocuments {
        release: service.get_release(caller, id).await?,
        report_page: page.render().into_bytes(),
        report: page.report,
    };
    let etag: ETag = format!("\"{}\"", documents.digest())
        .parse()
        .map_err(|_| internal_error())?;
    let name = documents.release.name.as_deref();
    let disposition = disposition(name, id);
    if is_cached(&headers, &etag) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(response.headers_mut(), etag, &disposition);
        return Ok(response);
    }
    let is_get = method == Method::GET;
    let range = requested_range(&headers, &etag).filter(|_| is_get);
    // The file may be removed before it is opened; then it is written again.
    for _ in 0..3 {
        let path = service.render_package(caller, &documents).await?;
        let Some(mut response) = serve_file(path, &method, range.clone()).await? else {
            continue;
        };
        if !response.status().is_success() {
            return Ok(response);
        }
        describe(response.headers_mut(), etag, &disposition);
        if is_get {
            service.record_fetch(caller, owner, id, "package").await?;
        }
        let tables = documents.release.tables.as_array();
        let first = tables.and_then(|tables| tables.first()?["name"].as_str());
        let (service, table) = (service.clone(), first.unwrap_or_default().to_owned());
        return Ok(response.map(|body: Body| {
            while_permitted(body, move || {
                let (service, table) = (service.clone(), table.clone());
                async move { service.may_still_read(caller, id, &table).await }
            })
        }));
    }
    Err(unservable())
}

/// Sets the headers that describe a package.
fn describe(headers: &mut HeaderMap, etag: ETag, disposition: &str) {
    headers.remove(header::LAST_MODIFIED);
    headers.typed_insert(etag);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ZIP));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
}

/// A file name that is valid in every file system and in a header.
fn disposition(name: Option<&str>, id: ReleaseId) -> String {
    let id = id.to_string();
    let safe = |char: char| match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => char,
        _ => '_',
    };
    let stem: String = name.unwrap_or(&id).chars().take(100).map(safe).collect();
    format!("attachment; filename=\"{stem}.zip\"")
}
