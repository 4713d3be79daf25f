//! `/v1/releases/{id}/report`: the report of a release, as JSON and as a page for people.

use axum::Json;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use pais_core::definition::Sweep;
use pais_core::warning::Warning;
use pais_measure::{Report, for_package, for_recipient};
use pais_report::{
    ApprovalFact, ApprovalState, EditionFact, GrantFact, Reader, ReportPage, StepFact, SweepFact,
    percent,
};
use serde::Serialize;
use serde_json::{Number, Value, json};
use time::OffsetDateTime;
use time::macros::format_description;
use utoipa::ToSchema;

use crate::db::approvals::{Approval, ApprovalStatus};
use crate::db::releases::{self, StoredRelease, Viewer};
use crate::db::seal::DataKey;
use crate::db::{StoreError, datasets, grants, jobs, runs};
use crate::engine::attempt;
use crate::engine::records::SweepItem;
use crate::ids::ReleaseId;

use super::error::ApiError;
use super::extract::headers::best;
use super::extract::{Path, ReleaseReader};
use super::releases::{load_release, record_fetch, viewer};
use super::response::html_document;
use super::state::CallerApp;

/// Maximum number of grants that a page names.
const MOST_GRANTS: i64 = 20;

/// Maximum number of steps of a run, and combinations of a sweep, that a page draws.
const MOST_STEPS: i64 = 1_000;

/// The report of a release. What needs raw rows is for the holder only.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReportDocument {
    /// The figures.
    #[serde(flatten)]
    pub report: Report,
    /// What a reader should know about the release.
    pub warnings: Vec<Warning>,
}

/// Fetch the utility and risk report of a release.
///
/// As JSON, or as a page for people where `Accept` prefers `text/html`.
#[utoipa::path(
    get, path = "/v1/releases/{id}/report", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    responses(
        (status = 200, description = "The report", content((ReportDocument = "application/json"), (String = "text/html"))),
        (status = 406, description = "`not_acceptable`"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`limit_exceeded`: it does not fit into memory"),
    ),
)]
pub(super) async fn report(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<ReleaseId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wants_page = best(&headers, &["application/json", "text/html"])? == 1;
    let bytes = releases::document_bytes(&app.db, id).await?;
    let answer = async || {
        let response = if wants_page {
            html_document(get_report_page(&app, id).await?.render())
        } else {
            let mut report = get_report(&app, id).await?;
            if viewer(app.caller).is_holder() {
                add_distributions(&app, &load_release(&app, id).await?, &mut report).await?;
            }
            Json(report).into_response()
        };
        record_fetch(&app, &[id], "report").await?;
        Ok(([(header::VARY, "accept")], response))
    };
    let bytes = bytes.report + if wants_page { bytes.release } else { 0 };
    app.documents.answer(bytes, answer).await
}

/// The report of a release that the caller may see, without distributions. What needs raw rows is for the
/// holder only.
///
/// # Errors
/// `not_found`; `withdrawn`.
pub(super) async fn get_report(app: &CallerApp, id: ReleaseId) -> Result<Value, ApiError> {
    let viewer = viewer(app.caller);
    let stored = releases::report(&app.db, viewer, id).await?;
    let stored = stored.ok_or_else(ApiError::not_found)?;
    if stored.is_withdrawn {
        return Err(ApiError::withdrawn());
    }
    let mut report = match viewer {
        Viewer::Holder(_) => stored.report,
        Viewer::Recipient(_) => for_recipient(stored.report),
    };
    report["warnings"] = serde_json::to_value(stored.warnings).map_err(StoreError::from)?;
    Ok(report)
}

/// The page of the report of a release that the caller may see. The holder's page has the distributions of its
/// columns, whose labels are raw values.
///
/// # Errors
/// As [`get_report`].
pub(super) async fn get_report_page(
    app: &CallerApp,
    id: ReleaseId,
) -> Result<ReportPage, ApiError> {
    let report = get_report(app, id).await?;
    let release = load_release(app, id).await?;
    let mut page = page_with(app, &release, report).await?;
    // The words of the holder's people are not in a package.
    if let (Some(fact), Some(approval)) = (&mut page.approval, &release.approval) {
        fact.by = approval.by.as_ref().and_then(|by| by.label.clone());
        fact.reason.clone_from(&approval.reason);
    }
    if viewer(app.caller).is_holder() {
        add_distributions(app, &release, &mut page.report).await?;
    }
    Ok(page)
}

/// Adds the distributions to a report for the holder, if the dataset still exists.
async fn add_distributions(
    app: &CallerApp,
    release: &StoredRelease,
    report: &mut Value,
) -> Result<(), ApiError> {
    if let Some(key) = key_of_release(app, release).await?
        && let Some(shares) = releases::distributions(&app.db, &key, release.id).await?
    {
        report["distributions"] = shares;
    }
    Ok(())
}

/// The data key of a release's dataset; `None` if the dataset was deleted, and with it everything that the key
/// sealed.
async fn key_of_release(
    app: &CallerApp,
    release: &StoredRelease,
) -> Result<Option<DataKey>, ApiError> {
    let (organization, dataset) = (release.organization, release.dataset);
    Ok(datasets::data_key(&app.db, &app.keys, organization, dataset).await?)
}

/// The page for a package, which may be passed on: without distributions, counts of raw items and the holder's
/// words.
///
/// # Errors
/// As [`get_report`].
pub(super) async fn get_packed_page(
    app: &CallerApp,
    id: ReleaseId,
) -> Result<ReportPage, ApiError> {
    let report = get_report(app, id).await?;
    let release = load_release(app, id).await?;
    let mut page = page_with(app, &release, for_package(report)).await?;
    if let Some(edition) = &mut page.edition {
        edition.held_back_rows = None;
    }
    Ok(page)
}

/// The page of a release that the caller may see, with this report.
async fn page_with(
    app: &CallerApp,
    release: &StoredRelease,
    report: Value,
) -> Result<ReportPage, ApiError> {
    let id = release.id;
    let context = releases::report_context(&app.db, app.caller.organization, id).await?;
    let mut page = ReportPage {
        release: id.to_string(),
        name: release.name.clone(),
        dataset: Some(context.dataset),
        description: context.description.filter(|text| !text.is_empty()),
        holder: Some(context.holder),
        made_at: Some(moment(release.created_at)),
        reader: Reader::Recipient {
            recipient: Some(context.reader),
            purpose: release.purpose.clone(),
        },
        approval: release.approval.as_ref().map(approval_fact),
        privacy: release.privacy.clone(),
        suppression_for: json!(release.suppression_for),
        verification: release.verification.clone().unwrap_or(Value::Null),
        report,
        tables: release.tables.clone(),
        cut: release.cut.clone().unwrap_or(Value::Null),
        codebook: release.codebook.clone().unwrap_or(Value::Null),
        edition: release.edition.as_ref().map(|edition| EditionFact {
            number: edition.number,
            held_back_rows: edition.held_back_rows,
        }),
        released_step: release.step(),
        ..ReportPage::default()
    };
    if viewer(app.caller).is_holder() {
        page.reader = Reader::Holder {
            grants: grant_facts(app, id).await?,
        };
        add_tradeoff(app, release, &mut page).await?;
    }
    Ok(page)
}

/// The state of an approval, and since when.
fn approval_fact(approval: &Approval) -> ApprovalFact {
    let state = match approval.status {
        ApprovalStatus::Pending => ApprovalState::Pending,
        ApprovalStatus::Approved => ApprovalState::Approved,
        ApprovalStatus::Rejected => ApprovalState::Rejected,
    };
    ApprovalFact {
        state,
        at: approval.at.map(moment),
        by: None,
        reason: None,
    }
}

async fn grant_facts(app: &CallerApp, release: ReleaseId) -> Result<Vec<GrantFact>, ApiError> {
    let organization = app.caller.organization;
    let grants = grants::list(&app.db, organization, release, None, MOST_GRANTS).await?;
    let now = app.db.now();
    let grants = grants.unwrap_or_default().into_iter();
    let current = grants.filter(|grant| grant.expires_at.is_none_or(|at| at > now));
    let fact = |grant: grants::Grant| GrantFact {
        recipient: grant.recipient.name,
        purpose: grant.purpose,
        until: grant.expires_at.map(moment),
    };
    Ok(current.map(fact).collect())
}

/// Adds the steps of the run, or the combinations of the sweep.
async fn add_tradeoff(
    app: &CallerApp,
    release: &StoredRelease,
    page: &mut ReportPage,
) -> Result<(), ApiError> {
    let store = &app.db;
    let job = jobs::load(store, &app.keys, app.caller.organization, release.job).await?;
    let Some(job) = job else { return Ok(()) };
    let definition = attempt::stored_job(&job.definition)?;
    if Sweep::new(&definition)?.is_sweep {
        let rows = runs::sweep(store, release.job, 0, MOST_STEPS).await?;
        let facts = rows.iter().map(|row| combination(&row.item, release));
        page.sweep = facts.collect();
        if let Some(ncp) = page.report["utility"]["ncp"].as_f64() {
            keep_nearest(&mut page.sweep, ncp);
        }
        return Ok(());
    }
    let Some(key) = key_of_release(app, release).await? else {
        return Ok(());
    };
    let steps = runs::steps(store, &key, release.job, 0, 0, MOST_STEPS).await?;
    let steps = steps.into_iter();
    let facts = steps.map(|item| StepFact {
        step: item.step,
        column: item.attribute,
        ncp: item.ncp,
        dr: item.dr,
        smallest: item.smallest_known_group.unwrap_or(item.smallest_group),
    });
    page.steps = facts.collect();
    Ok(())
}

/// Among combinations that a release may come from, such as recodings and objectives under the same parameters,
/// keeps the one with the nearest loss. The search measures some columns in the raw range, and a release
/// measures them in the range of its rows.
fn keep_nearest(combinations: &mut [SweepFact], ncp: f64) {
    let distance = |fact: &SweepFact| fact.ncp.map_or(f64::INFINITY, |it| (it - ncp).abs());
    let released = combinations.iter().filter(|fact| fact.is_released);
    let nearest = released.map(distance).fold(f64::INFINITY, f64::min);
    for fact in combinations {
        fact.is_released &= distance(fact) <= nearest;
    }
}

/// A combination, and whether the release may come from it.
fn combination(item: &SweepItem, release: &StoredRelease) -> SweepFact {
    let privacy = &release.privacy;
    let is_of = |name: &str, value: Option<f64>| {
        value.is_none_or(|value| privacy[name].as_f64().is_none_or(|it| it == value))
    };
    let same = is_of("l", item.l.as_ref().and_then(Number::as_f64))
        && is_of("k", item.k.map(|k| k as f64))
        && is_of("c", item.c);
    SweepFact {
        name: combination_name(item),
        ncp: item.ncp,
        dr: item.dr,
        is_released: same && release.step().is_none_or(|step| Some(step) == item.steps),
    }
}

/// A combination in words.
pub(super) fn combination_name(item: &SweepItem) -> String {
    let mut parts = Vec::new();
    parts.extend(item.l.as_ref().map(|l| format!("L {l}")));
    parts.extend(item.k.map(|k| format!("K {k}")));
    parts.extend(item.c.map(|c| format!("C {}", percent(c))));
    for word in [json!(item.recoding), json!(item.objective)] {
        parts.extend(word.as_str().map(str::to_owned));
    }
    parts.join(", ")
}

/// A time as people read it.
fn moment(at: OffsetDateTime) -> String {
    let form =
        format_description!("[day padding:none] [month repr:long] [year], [hour]:[minute] UTC");
    at.format(&form).unwrap_or_else(|_| at.to_string())
}
