//! `/v1/audit`.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::store::audit::{self, Event};

use super::{ApiError, AppState, Auditor, Page, PageQuery, Parameters};

/// The routes of this resource.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// List the events of the auditor's organization, newest first.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Event>)))]
async fn list(
    State(state): State<AppState>,
    Auditor(caller): Auditor,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Event>>, ApiError> {
    let page = query.parse()?;
    let organization = caller.organization;
    let rows = audit::list(&state.store, organization, page.after, page.limit + 1).await?;
    Ok(Json(Page::cut(rows, page, |row| row.id.0)))
}
