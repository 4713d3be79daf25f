//! `/v1/releases/{id}/composition`: what a recipient's releases say together.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::ReleaseId;
use crate::service::compositions::ReleaseComposition;

use super::error::ApiError;
use super::extract::{Holder, Parameters, Path};
use super::state::AppState;

/// Whose releases are considered.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CompositionQuery {
    /// Name or id of an organization.
    #[param(min_length = 1)]
    pub recipient: String,
}

/// What a release says together with all releases of its dataset that a recipient may read or has
/// fetched.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompositionDocument {
    /// Whether the privacy models of the releases hold for an adversary who has all of them and can
    /// match their rows.
    pub holds: bool,
    /// The releases that were considered, this one first.
    pub releases: Vec<ReleaseId>,
    /// Records, or persons, of the smallest group that such an adversary finds; null where it could
    /// not be decided.
    pub smallest_group: Option<u64>,
    /// The greatest confidence in a sensitive value, from 0 to 1; null where it could not be decided.
    pub greatest_confidence: Option<f64>,
    /// Whether the decision is exact; otherwise it is on the safe side.
    pub exact: bool,
    /// Why it does not hold, or cannot be decided; null where it holds.
    pub reason: Option<String>,
}

impl From<ReleaseComposition> for CompositionDocument {
    fn from(found: ReleaseComposition) -> Self {
        Self {
            holds: found.holds,
            releases: found.releases,
            smallest_group: found.smallest_group,
            greatest_confidence: found.greatest_confidence,
            exact: found.exact,
            reason: found.reason,
        }
    }
}

/// The route of compositions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Look up what a release and a recipient's other releases say together
///
/// The same decision as before a grant of the release to the recipient, which changes nothing.
#[utoipa::path(
    get, path = "/v1/releases/{id}/composition", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), CompositionQuery),
    responses(
        (status = 200, description = "The decision", body = CompositionDocument),
        (status = 404, description = "`not_found`: no such release or recipient"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`limit_exceeded`"),
    ),
)]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
    Parameters(query): Parameters<CompositionQuery>,
) -> Result<Json<CompositionDocument>, ApiError> {
    let service = state.of(caller);
    let found = service.composition(caller, release, &query.recipient);
    Ok(Json(found.await?.into()))
}
