//! `/v1/jobs/{id}/steps` and `/v1/jobs/{id}/sweep`: what a job found.

use axum::Json;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use pais_anonymize::StepItem;
use pais_core::definition::{CombinationQuery, MOST_COMBINATIONS, Sweep};
use pais_report::{SweepPage, SweepPoint, SweepPromise, SweepTable};

use crate::db::jobs::StoredJob;
use crate::db::{datasets, runs};
use crate::engine::attempt;
use crate::engine::records::SweepItem;
use crate::ids::JobId;

use super::error::ApiError;
use super::extract::headers::best;
use super::extract::{Parameters, Path, Staff};
use super::jobs::load_job;
use super::page::{NumberedPageQuery, Page, PageRequest};
use super::reports::combination_name;
use super::response::html_document;
use super::state::CallerApp;

/// List the steps of a job
///
/// From step 0, the topmost table, on; none for a job without steps or one that has not
/// succeeded. The cursor is the number of the last step seen.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/steps", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), NumberedPageQuery, CombinationQuery),
    responses(
        (status = 200, description = "A page of steps", body = Page<StepItem>),
        (status = 422, description = "`invalid_job`: the parameters name no combination of the sweep; `limit_exceeded`: ask for fewer steps"),
    ),
)]
pub(super) async fn steps(
    Staff(app): Staff,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<NumberedPageQuery>,
    Parameters(combination): Parameters<CombinationQuery>,
) -> Result<Response, ApiError> {
    let page = query.parse()?;
    let job = load_job(&app, id).await?;
    let sweep = Sweep::new(&attempt::stored_job(&job.definition)?)?;
    let run = sweep.find(combination);
    let run = run.map_err(|error| ApiError::from(error).of_query())? as u32;
    let (first, limit) = (page.first(), page.rows_to_query());
    let bytes = runs::step_bytes(&app.db, id, run, first, limit).await?;
    let answer = async || {
        let (organization, dataset) = (app.caller.organization, job.dataset_id);
        let items = match datasets::data_key(&app.db, &app.keys, organization, dataset).await? {
            Some(key) => runs::steps(&app.db, &key, id, run, first, limit).await?,
            // The steps were deleted with the dataset.
            None => Vec::new(),
        };
        Ok(Json(Page::new(items, page, |item| item.step)))
    };
    app.documents.answer(bytes, answer).await
}

/// List the combinations of a sweep
///
/// As JSON, or as a page for people where `Accept` prefers `text/html`: all combinations, loss against risk,
/// and the best of them.
///
/// One row for each combination of the job's lists of `l`, `k`, `c`, recodings and objectives, in
/// the order of the lists; none for a job without lists or one that has not succeeded. Any combination that has
/// succeeded can be released: `POST /v1/releases` with its parameters.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/sweep", tag = "jobs",
    params(("id" = JobId, Path, description = "The job"), NumberedPageQuery),
    responses(
        (status = 200, description = "A page of combinations", content((Page<SweepItem> = "application/json"), (String = "text/html"))),
        (status = 406, description = "`not_acceptable`"),
    ),
)]
pub(super) async fn sweep_rows(
    Staff(app): Staff,
    Path(id): Path<JobId>,
    Parameters(query): Parameters<NumberedPageQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wants_page = best(&headers, &["application/json", "text/html"])? == 1;
    let page: PageRequest<u32> = query.parse()?;
    let job = load_job(&app, id).await?;
    let response = if wants_page {
        html_document(sweep_page(&app, &job).await?.render())
    } else {
        let rows =
            runs::sweep::<SweepItem>(&app.db, id, page.first(), page.rows_to_query()).await?;
        let rows = Page::new(rows, page, |row| row.run);
        Json(rows.map(|row| row.item)).into_response()
    };
    Ok(([(header::VARY, "accept")], response).into_response())
}

/// All combinations of a job as a page.
async fn sweep_page(app: &CallerApp, job: &StoredJob) -> Result<SweepPage, ApiError> {
    let dataset = datasets::name(&app.db, app.caller.organization, job.dataset_id).await?;
    let rows = runs::sweep(&app.db, job.id, 0, MOST_COMBINATIONS as i64).await?;
    let points = rows.into_iter().map(|row| SweepPoint {
        name: combination_name(&row.item),
        promise: SweepPromise {
            l: row.item.l.as_ref().and_then(serde_json::Number::as_f64),
            c: row.item.c.unwrap_or(1.0),
        },
        table: sweep_table(&row.item),
    });
    Ok(SweepPage {
        job: job.id.to_string(),
        dataset,
        combinations: points.collect(),
    })
}

/// The figures of a combination's table; `None` where no table meets it.
fn sweep_table(item: &SweepItem) -> Option<SweepTable> {
    let smallest = item.smallest_group?;
    // The figure is absent if it would take too long; the smallest known group is never below *K*.
    let least = || item.k.map_or(smallest, |k| smallest.max(k.unsigned_abs()));
    let known = item.smallest_known_group.unwrap_or_else(least);
    Some(SweepTable {
        loss: item.ncp?,
        dr: item.dr?,
        smallest: known,
        suppressed: item.suppressed_rows?,
    })
}
