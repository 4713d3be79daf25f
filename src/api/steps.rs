//! `/v1/jobs/{id}/steps` and `/v1/jobs/{id}/sweep`: what a job found.

use axum::Json;
use axum::response::Response;
use pais_anonymize::StepItem;
use pais_core::definition::{CombinationQuery, Objective, Recoding, Sweep};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::db::runs;
use crate::engine::records::SweepItem;
use crate::engine::{attempt, load_rows};
use crate::ids::JobId;

use super::datasets::find_live;
use super::error::ApiError;
use super::extract::{Parameters, Path, Staff};
use super::jobs::load_job;
use super::page::{NumberedPageQuery, Page, page_request};

/// List the steps of a job
///
/// From step 0, the topmost table, on; none for a job without steps or one that has not
/// succeeded. The cursor is the number of the last step seen.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/steps", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), StepQuery),
    responses(
        (status = 200, description = "A page of steps", body = Page<StepItem>),
        (status = 422, description = "`invalid_job`: the parameters name no combination of the sweep; `limit_exceeded`: ask for fewer steps"),
    ),
)]
pub(super) async fn steps(
    Staff(app): Staff,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<StepQuery>,
) -> Result<Response, ApiError> {
    let page = page_request(query.limit, query.cursor.as_deref())?;
    let combination = CombinationQuery {
        l: query.l,
        k: query.k,
        c: query.c,
        recoding: query.recoding,
        objective: query.objective,
    };
    let job = load_job(&app, id).await?;
    let sweep = Sweep::new(&attempt::stored_job(&job.definition)?)?;
    let run = sweep.find(combination)? as u32;
    let (first, limit) = (page.first(), page.rows_to_query());
    let bytes = runs::step_bytes(&app.db, id, run, first, limit).await?;
    let answer = async || {
        let items = match find_live(&app, app.caller.organization, job.dataset_id).await? {
            Some(dataset) => {
                let key = load_rows::open_key(&app.keys, &dataset)?;
                runs::steps(&app.db, &key, id, run, first, limit).await?
            }
            // Its steps were deleted with it.
            None => Vec::new(),
        };
        Ok(Json(Page::new(items, page, |item| item.step)))
    };
    app.documents.answer(bytes, answer).await
}

/// List the combinations of a sweep
///
/// One row for each combination of the job's lists of `l`, `k`, `c`, recodings and objectives, in
/// the order of the lists; none for a job without lists or one that has not succeeded. Any combination that has
/// succeeded can be released: `POST /v1/releases` with its parameters.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/sweep", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), NumberedPageQuery),
    responses((status = 200, description = "A page of combinations", body = Page<SweepItem>)),
)]
pub(super) async fn sweep_rows(
    Staff(app): Staff,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<NumberedPageQuery>,
) -> Result<Json<Page<SweepItem>>, ApiError> {
    let page = query.parse()?;
    load_job(&app, id).await?;
    let rows = runs::sweep(&app.db, id, page.first(), page.rows_to_query()).await?;
    let rows = Page::new(rows, page, |row| row.run);
    Ok(Json(rows.map(|row| row.item)))
}

/// A page of steps, and of which combination they are where the job is a sweep.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StepQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,9}$")]
    cursor: Option<String>,
    /// *L* of the combination.
    l: Option<f64>,
    /// *K* of the combination.
    k: Option<f64>,
    /// *C* of the combination.
    c: Option<f64>,
    /// Recoding of the combination.
    recoding: Option<Recoding>,
    /// Objective of the combination.
    objective: Option<Objective>,
}
