//! `/v1/datasets/{id}/risk`: how strongly the rows single out persons, before any run.

use axum::Json;
use pais_anonymize::{SuggestionSample, Suggestions};
use pais_core::definition::DatasetId;
use pais_core::risk::{self, DEFAULT_COMBINED, MOST_COMBINED, TableRisk};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::db::audit::{self, Action, NewEvent};
use crate::db::submissions::{self, Which};
use crate::problem::{Code, Problem};

use super::datasets::load;
use super::error::ApiError;
use super::extract::{Parameters, Path, Staff};
use super::raw_rows::{RawRows, despite_deletions, on_rows};
use super::state::CallerApp;

/// Which combinations are examined.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RiskQuery {
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

/// The risk of a dataset's rows, and what a job can ask for.
#[derive(Serialize, ToSchema)]
pub(crate) struct RiskDocument {
    /// The figures.
    #[serde(flatten)]
    risk: TableRisk,
    /// Parameters of `lkc` that the rows can meet, each with what it costs on a sample of them.
    suggestions: Suggestions,
}

/// Assess the risk of a dataset's rows.
///
/// Before any run: how distinct each column and each combination of up to `l` quasi-identifiers is,
/// how many persons they single out, which insensitive columns do so, what keeps a column at its
/// topmost value, and which K, l and C the rows can meet; and parameters for a job, with their loss on
/// a sample of the rows. Counts and shares only, never a value or a row. At most 500,000 combinations, and 2,000,000,000 rows times combinations, are examined.
#[utoipa::path(
    get, path = "/v1/datasets/{id}/risk", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id"), RiskQuery),
    responses(
        (status = 200, description = "The risk", body = RiskDocument),
        (status = 422, description = "`limit_exceeded`: too many combinations, or its rows need more memory than is available"),
    ),
)]
pub(super) async fn show(
    Staff(app): Staff,
    Path(id): Path<DatasetId>,
    Parameters(query): Parameters<RiskQuery>,
) -> Result<Json<RiskDocument>, ApiError> {
    let l = query.parse()?;
    let risk = despite_deletions(&app, id, move |app| risk_of(app, id, l));
    let risk = risk.await?;
    let event = NewEvent::by(app.caller, Action::RiskRead, id.0, json!({ "l": l }));
    audit::record_alone(&app.db, event).await?;
    Ok(Json(risk))
}

async fn risk_of(app: CallerApp, id: DatasetId, l: usize) -> Result<RiskDocument, ApiError> {
    let dataset = load(&app, id).await?;
    let size = submissions::size(&app.db, id, Which::Current).await?;
    // Refused before it waits for a slot and for memory.
    risk::check_work(&dataset.schema, size.rows, l)?;
    let mut extra_bytes = risk::bytes_needed(&dataset.schema, size.rows, size.text_bytes, l);
    if dataset.schema.has_made_hierarchies() {
        // A second copy of the values in the nodes of their trees, and in the index of the nodes.
        extra_bytes = extra_bytes.saturating_add(size.text_bytes.saturating_mul(2));
    }
    let rows = RawRows {
        which: Which::Current,
        size,
        plans: &[],
        extra_bytes,
    };
    let risk = on_rows(&app, dataset, rows, move |schema, table, cancellation| {
        let sample = SuggestionSample::new(schema, &table);
        let risk = risk::assess(schema, table, l, cancellation)?;
        let suggestions = sample.suggestions(&risk.feasible, cancellation)?;
        Ok(RiskDocument { risk, suggestions })
    });
    risk.await
}
