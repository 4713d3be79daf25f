//! `/v1/datasets/{id}/risk`: how far the rows single out persons, before any run.

use axum::Json;
use axum::extract::State;
use pais_core::definition::DatasetId;
use pais_core::risk::{DEFAULT_COMBINED, MOST_COMBINED, TableRisk};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::ApiError;
use crate::api::extract::auth::Holder;
use crate::api::extract::parameters::{Parameters, Path};
use crate::api::state::AppState;
use crate::problem::{Code, Problem};

/// The route of the risk.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Which combinations are examined.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RiskQuery {
    /// Size of the largest combinations of quasi-identifiers, 1 to 6; 2 when omitted.
    #[param(minimum = 1, maximum = 6)]
    l: Option<i64>,
}

impl RiskQuery {
    /// Checks the parameter.
    ///
    /// # Errors
    /// `invalid_parameter`.
    fn parse(&self) -> Result<usize, Problem> {
        let Some(l) = self.l else {
            return Ok(DEFAULT_COMBINED);
        };
        let l = usize::try_from(l).ok();
        let l = l.filter(|l| (1..=MOST_COMBINED).contains(l));
        l.ok_or_else(|| {
            let detail = format!("`l` must be a number from 1 to {MOST_COMBINED}");
            Problem::new(Code::InvalidParameter, detail)
        })
    }
}

/// Assess the risk of a dataset's rows.
///
/// Before any run: how distinct each column and each combination of up to `l` quasi-identifiers is,
/// how many persons they single out, which insensitive columns do so, what keeps a column at its
/// topmost value, and which K, l and C the rows can meet. Counts and shares only, never a value or a
/// row. At most 500,000 combinations, and 2,000,000,000 rows times combinations, are examined.
#[utoipa::path(
    get, path = "/v1/datasets/{id}/risk", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id"), RiskQuery),
    responses(
        (status = 200, description = "The risk", body = TableRisk),
        (status = 422, description = "`limit_exceeded`: too many combinations, or its rows need more memory than there is"),
    ),
)]
async fn show(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(id): Path<DatasetId>,
    Parameters(query): Parameters<RiskQuery>,
) -> Result<Json<TableRisk>, ApiError> {
    let l = query.parse()?;
    Ok(Json(state.of(caller).assess_dataset(caller, id, l).await?))
}
