//! `/v1/jobs/{id}/report`: the report that a release of a job's table would have.

use axum::Json;
use pais_core::definition::CombinationQuery;
use pais_core::warning::by_code;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::db::audit::{self, Action, NewEvent};
use crate::db::submissions;
use crate::ids::JobId;

use super::error::ApiError;
use super::extract::{Parameters, Path, Staff};
use super::found_table::FoundTable;
use super::jobs::load_job;
use super::reports::ReportDocument;

/// Which table of a job is meant.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TableQuery {
    /// After which of its steps; the last when omitted.
    #[param(minimum = 0)]
    step: Option<i64>,
}

/// Measure a job's table after a step, before anything is released
///
/// The report that `POST /v1/releases` would make with the same parameters, with the distributions of raw and
/// released values. The table is verified and measured but not stored. This takes as long as creating the
/// release.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/report", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), TableQuery, CombinationQuery),
    responses(
        (status = 200, description = "The report", body = ReportDocument),
        (status = 409, description = "`job_not_succeeded`, `dataset_deleted`, `conflict`: the columns of the dataset have changed since; `submission_replaced`: another submission has taken the place of one that the job read"),
        (status = 422, description = "`no_such_step`; `invalid_job`: the parameters name no combination of the sweep; `limit_exceeded`: its rows need more memory than there is"),
    ),
)]
pub(super) async fn measure(
    Staff(app): Staff,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<TableQuery>,
    Parameters(combination): Parameters<CombinationQuery>,
) -> Result<Json<ReportDocument>, ApiError> {
    let job = load_job(&app, id).await?;
    let table = FoundTable::of(&app, job, combination, query.step).await;
    let table = table.map_err(ApiError::of_query)?;
    let of_rows =
        submissions::person_warnings(&app.db, table.dataset.id, &table.job.submissions).await?;
    let measured = table.replay(&app, move |table, observer| {
        let verified = table.run.verify(&table.found, table.step, observer)?;
        let report = table.run.measure(&table.found, &verified, observer)?;
        let release = verified.with_report(report);
        Ok(ReportDocument {
            report: release.report().clone(),
            warnings: by_code([of_rows, release.warnings].concat()),
        })
    });
    let document = measured.await?;
    let event = NewEvent::by(
        app.caller,
        Action::JobReportRead,
        id.0,
        json!({ "step": query.step }),
    );
    audit::record_alone(&app.db, event).await?;
    Ok(Json(document))
}
