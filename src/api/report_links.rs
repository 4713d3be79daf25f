//! `/v1/releases/{id}/report/link`, and the page that a link opens.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::html;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::ReleaseId;
use crate::problem::Code;

use super::error::ApiError;
use super::extract::{Anyone, HolderOrRecipient, Path};
use super::response;
use super::state::AppState;

/// A link to a report.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReportLinkDocument {
    /// What a browser opens, without a token. Who has it can read the report: send it only to those
    /// who may.
    pub url: String,
    /// From when on it no longer works.
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
}

/// The routes of links to reports.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(open))
}

/// Make a link to the report of a release
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
async fn create(
    State(state): State<AppState>,
    HolderOrRecipient(caller): HolderOrRecipient,
    Path(release): Path<ReleaseId>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let link = state.of(caller).create_report_link(caller, release).await?;
    let base = match &state.public_url {
        Some(url) => url.clone(),
        None => {
            let host = headers
                .get(header::HOST)
                .and_then(|host| host.to_str().ok());
            format!("http://{}", host.unwrap_or("localhost"))
        }
    };
    let document = ReportLinkDocument {
        url: format!("{base}/reports/{}", link.code),
        expires_at: link.expires_at,
    };
    // The link is a secret for some minutes, so no cache may store it.
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, no_store, Json(document)))
}

/// Open a link to a report.
#[utoipa::path(
    get, path = "/reports/{link}", tag = "releases", security(()),
    params(("link" = String, Path, description = "The end of the link's address")),
    responses(
        (status = 200, description = "The report as a page", content((String = "text/html"))),
        (status = 404, description = "The link does not work, or no longer", content((String = "text/html"))),
    ),
)]
async fn open(State(state): State<AppState>, client: Anyone, Path(link): Path<String>) -> Response {
    let opened = state
        .unscoped()
        .open_report_link(&link, client.address)
        .await;
    match opened {
        Ok(page) => response::html_document(page.render()),
        Err(ApiError::Problem(problem))
            if matches!(problem.code, Code::NotFound | Code::Withdrawn) =>
        {
            let content = html! {
                p { "It works for 15 minutes, and ends with the permission of the one who made it. Ask for a new one." }
            };
            let mut ended = response::html_page("This link does not work, or no longer", &content);
            *ended.status_mut() = StatusCode::NOT_FOUND;
            ended
        }
        Err(error) => error.into_response(),
    }
}
