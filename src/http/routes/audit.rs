//! `/v1/audit`.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::extract::auth::Auditor;
use crate::http::extract::page_query::PageQuery;
use crate::http::extract::parameters::Parameters;
use crate::http::response::error::ApiError;
use crate::http::response::page::Page;
use crate::http::state::AppState;
use crate::store::audit::Event;

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
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
    let events = state.service.list_events(caller, query.parse()?).await?;
    Ok(Json(events.into()))
}
