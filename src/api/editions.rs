//! `/v1/publications/{id}/editions`: editions are queued and listed.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::db::StoreError;
use crate::db::editions::{self, Cause, Edition, Queueing};
use crate::ids::PublicationId;
use crate::problem::{Code, Problem};

use super::error::ApiError;
use super::events::editions::{SeenEdition, check_visible, seen, wait_for_edition};
use super::extract::{Holder, Parameters, Path, ReleaseReader};
use super::page::{Page, PageRequest, page_request};

/// Longest time that a list waits for its first item, in seconds.
const LONGEST_WAIT: i64 = 30;

/// `?after=`, `?wait=` and `?limit=`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EditionsQuery {
    /// Only editions with a greater number; 0 when omitted.
    #[param(minimum = 0, maximum = 999_999_999)]
    pub after: Option<i64>,
    /// Seconds to wait for an edition if there is none, 0 to 30; 0 when omitted.
    #[param(minimum = 0, maximum = 30)]
    pub wait: Option<i64>,
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,9}$")]
    pub cursor: Option<String>,
}

/// Publish an edition now
///
/// Of the rows that no published edition has. It is a job; `GET …/editions` has its state.
#[utoipa::path(
    post, path = "/v1/publications/{id}/editions", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication")),
    responses(
        (status = 202, description = "Queued", body = Edition),
        (status = 409, description = "`nothing_new`: all rows are in editions, or wait since the last one; `edition_open`: the edition before is not published yet; `publication_paused`; `dataset_deleted`"),
    ),
)]
pub(super) async fn create(
    Holder(app): Holder,
    Path(id): Path<PublicationId>,
) -> Result<Response, ApiError> {
    app.storage.check()?;
    app.settle_editions().await;
    let cause = Cause::Request(app.caller);
    let organization = app.caller.organization;
    let number = match editions::queue(app.edition_queue(), organization, id, cause).await? {
        Queueing::Queued(number) => number,
        Queueing::NotFound => return Err(ApiError::not_found()),
        Queueing::NoDataset => {
            let detail = "the dataset was deleted with its rows; only earlier editions remain";
            return Err(ApiError::new(Code::DatasetDeleted, detail));
        }
        Queueing::Paused => {
            let detail =
                "the publication is paused; go on with `PATCH` and `\"paused\": false` first";
            return Err(ApiError::new(Code::PublicationPaused, detail));
        }
        Queueing::Open(number) => {
            let detail = format!(
                "edition {number} is not published yet, and the next one depends on it; wait until it \
                 has ended"
            );
            return Err(ApiError::new(Code::EditionOpen, detail));
        }
        Queueing::NothingNew => {
            let detail = "no submission came since the last edition; send rows first";
            return Err(ApiError::new(Code::NothingNew, detail));
        }
    };
    app.wake.notify_one();
    let mut made = editions::list(&app.db, organization, id, number - 1, 1).await?;
    let made = made.pop().ok_or(StoreError::Damaged("an edition"))?;
    Ok((StatusCode::ACCEPTED, Json(made)).into_response())
}

/// List editions, oldest first
///
/// With `?after=N&wait=SECONDS` the response is sent as soon as an edition with a number above N exists, or
/// when the time is over. A waiting request counts as an open stream; the number of open streams is limited
/// per token and per organization. A recipient gets the published editions that it may read.
#[utoipa::path(
    get, path = "/v1/publications/{id}/editions", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication"), EditionsQuery),
    responses((status = 200, description = "A page", body = Page<SeenEdition>)),
)]
pub(super) async fn list(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<PublicationId>,
    Parameters(query): Parameters<EditionsQuery>,
) -> Result<Json<Page<SeenEdition>>, ApiError> {
    let page: PageRequest<u32> = page_request(query.limit, query.cursor.as_deref())?;
    let after = bounded("after", query.after, 999_999_999)?;
    let after = page.after.unwrap_or_default().max(after as u32);
    let wait = Duration::from_secs(bounded("wait", query.wait, LONGEST_WAIT)?);
    check_visible(&app, id).await?;
    let mut found = seen(&app, id, after, page.rows_to_query()).await?;
    if found.is_empty() && !wait.is_zero() {
        wait_for_edition(&app, id, after, wait).await?;
        found = seen(&app, id, after, page.rows_to_query()).await?;
    }
    Ok(Json(Page::new(found, page, SeenEdition::number)))
}

fn bounded(name: &str, value: Option<i64>, most: i64) -> Result<u64, Problem> {
    let value = value.unwrap_or_default();
    let bounded = u64::try_from(value).ok().filter(|_| value <= most);
    bounded.ok_or_else(|| {
        let detail = format!("`{name}` must be a whole number from 0 to {most}");
        Problem::new(Code::InvalidParameter, detail)
    })
}
