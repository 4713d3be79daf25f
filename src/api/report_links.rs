//! `/v1/releases/{id}/report/link`: links that open one report in a browser for some minutes, without a
//! token.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::html;
use pais_report::ReportPage;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use crate::db::{StoreError, releases, token_validity};
use crate::ids::{OrganizationId, ReleaseId, TokenId};
use crate::problem::Code;
use crate::roles::{Caller, Role};

use super::error::ApiError;
use super::extract::{Anyone, Path, ReleaseReader};
use super::releases::record_fetch;
use super::reports::{get_report, get_report_page};
use super::response;
use super::state::{App, AppState};

/// A link to a report.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReportLinkDocument {
    /// The URL to open in a browser, without a token. Anyone who has it can read the report: send it only to people
    /// who may.
    pub url: String,
    /// When it stops working.
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
}

/// Create a link to the report of a release
///
/// It opens this report in a browser for 15 minutes, without a token: a page for people, which can be
/// printed. It ends early with the token that made it, and with the grant. Making and opening it are
/// recorded in the audit log.
#[utoipa::path(
    post, path = "/v1/releases/{id}/report/link", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 201, description = "Made", body = ReportLinkDocument),
        (status = 410, description = "`withdrawn`"),
    ),
)]
pub(super) async fn create(
    State(state): State<AppState>,
    ReleaseReader(app): ReleaseReader,
    Path(release): Path<ReleaseId>,
) -> Result<impl IntoResponse, ApiError> {
    get_report(&app, release).await?;
    let expires_at = app.db.now() + LIFETIME;
    let body = LinkBody {
        release,
        organization: app.caller.organization,
        role: app.caller.role,
        token: app.caller.token,
        end: expires_at.unix_timestamp(),
    };
    let mut bytes = serde_json::to_vec(&body).map_err(StoreError::from)?;
    bytes.extend_from_slice(&app.keys.report_link(&bytes));
    releases::record_link(&app.db, app.caller, release).await?;
    let base = state.link_base();
    let document = ReportLinkDocument {
        url: format!("{base}/reports/{}", URL_SAFE_NO_PAD.encode(bytes)),
        expires_at,
    };
    Ok((StatusCode::CREATED, Json(document)))
}

/// Open a link to a report.
#[utoipa::path(
    get, path = "/reports/{link}", tag = "releases", security(()),
    params(("link" = String, Path, description = "The end of the link's address")),
    responses(
        (status = 200, description = "The report as a page", content((String = "text/html"))),
        (status = 404, description = "The link does not work, or no longer", content((String = "text/html"))),
        (status = 410, description = "The release was withdrawn", content((String = "text/html"))),
    ),
)]
pub(super) async fn open(
    State(state): State<AppState>,
    client: Anyone,
    Path(link): Path<String>,
) -> Response {
    match open_report_link(state.unscoped(), &link, client.address).await {
        Ok(page) => response::html_document(page.render()),
        Err(ApiError::Problem(problem))
            if matches!(problem.code, Code::NotFound | Code::Withdrawn) =>
        {
            let (status, title, text) = match problem.code {
                Code::Withdrawn => (
                    StatusCode::GONE,
                    "The release was withdrawn",
                    "Its report is not served any more.",
                ),
                _ => (
                    StatusCode::NOT_FOUND,
                    "This link does not work, or no longer",
                    "It works for 15 minutes, and ends with the permission of the one who made it. Ask for a new one.",
                ),
            };
            let mut ended = response::html_page(title, &html! { p { (text) } });
            *ended.status_mut() = status;
            ended
        }
        Err(error) => error.into_response(),
    }
}

/// How long a link works.
const LIFETIME: Duration = Duration::minutes(15);

/// Bytes of the authentication at the end of a link.
const MAC_BYTES: usize = 32;

/// Whose report a link opens, and until when.
#[derive(Serialize, Deserialize)]
struct LinkBody {
    release: ReleaseId,
    organization: OrganizationId,
    role: Role,
    token: TokenId,
    /// Seconds since 1970.
    end: i64,
}

/// The page that a link opens. Reading it is recorded in the audit log.
///
/// # Errors
/// `not_found` for every link that is not valid (any more).
async fn open_report_link(
    app: &App,
    code: &str,
    address: Option<IpAddr>,
) -> Result<ReportPage, ApiError> {
    let body = link_body(app, code).ok_or_else(ApiError::not_found)?;
    if !token_validity::is_valid(&app.db, body.token).await? {
        return Err(ApiError::not_found());
    }
    let app = app.of(Caller {
        organization: body.organization,
        role: body.role,
        token: body.token,
        address,
    });
    let page = get_report_page(&app, body.release).await?;
    record_fetch(&app, &[body.release], "report").await?;
    Ok(page)
}

/// The content of a link, if this service made it and it has not expired.
fn link_body(app: &App, code: &str) -> Option<LinkBody> {
    let bytes = URL_SAFE_NO_PAD.decode(code).ok()?;
    let (body, mac) = bytes.split_last_chunk::<MAC_BYTES>()?;
    // Digests are compared, so that the time reveals nothing about the expected bytes.
    let expected = app.keys.report_link(&app.keys.report_link(body));
    if app.keys.report_link(mac) != expected {
        return None;
    }
    let body: LinkBody = serde_json::from_slice(body).ok()?;
    (app.db.now().unix_timestamp() < body.end).then_some(body)
}
