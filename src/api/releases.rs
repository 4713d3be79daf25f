//! `/v1/releases`: a job's table after a step is released; releases are listed.

use axum::Json;
use axum::response::{IntoResponse, Response};
use pais_core::definition::{CombinationQuery, Objective, Recoding};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::db::audit::Action;
use crate::db::jobs;
use crate::db::releases::{self, Fetch, ListedReleases, StoredRelease, Viewer};
use crate::db::{editions, organizations, policies, submissions};
use crate::engine::release_packing::{self, PackedRelease, ReleaseOrigin};
use crate::ids::{JobId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::{Caller, Role};
use crate::telemetry::traces::{self, TraceContext};

use super::error::ApiError;
use super::extract::{Holder, JsonBody, Parameters, Path, ReleaseReader};
use super::found_table::{FoundTable, ReplayedTable, dataset_deleted};
use super::page::{Page, PageQuery, PageRequest};
use super::response::created;
use super::state::CallerApp;
use super::text;

/// A release to be made.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseDefinition {
    /// A job that has succeeded.
    pub job_id: JobId,
    /// *L* of the combination, where the job is a sweep over it.
    #[serde(default)]
    pub l: Option<f64>,
    /// *K* of the combination, where the job is a sweep over it.
    #[serde(default)]
    pub k: Option<f64>,
    /// *C* of the combination, where the job is a sweep over it.
    #[serde(default)]
    pub c: Option<f64>,
    /// Recoding of the combination, where the job is a sweep over both.
    #[serde(default)]
    pub recoding: Option<Recoding>,
    /// Objective of the combination, where the job is a sweep over several.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// After which of its steps; the last when omitted.
    #[serde(default, deserialize_with = "pais_core::definition::whole::option")]
    #[schema(minimum = 0)]
    pub step: Option<i64>,
    /// A name for people.
    #[serde(default)]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    pub name: Option<String>,
}

/// Make a release of a job's table as it stood after a step.
#[utoipa::path(
    post, path = "/v1/releases", tag = "releases",
    request_body = ReleaseDefinition,
    responses(
        (status = 201, description = "Made", body = StoredRelease,
         headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such job"),
        (status = 409, description = "`job_not_succeeded`, `dataset_deleted`, `conflict`: the columns of the dataset have changed since; `location_changed`; `submission_replaced`: another submission has taken the place of one that the job read"),
        (status = 422, description = "`no_such_step`, `invalid_job`, `invalid_name`; `below_policy`"),
    ),
)]
pub(super) async fn create(
    Holder(app): Holder,
    JsonBody(definition, _memory): JsonBody<ReleaseDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let release = create_release(&app, definition).await?;
    let path = format!("/v1/releases/{}", release.id);
    Ok(created(path, release))
}

/// List releases, oldest first: a holder's own, or those granted to a recipient
///
/// Without their cuts and what the verifier found. A page has fewer than `limit` releases where their
/// documents are large; `next_cursor` is set if there are more.
#[utoipa::path(
    get, path = "/v1/releases", tag = "releases", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<StoredRelease>)),
)]
pub(super) async fn list(
    ReleaseReader(app): ReleaseReader,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<StoredRelease>>, ApiError> {
    let page: PageRequest = query.parse()?;
    let listed = releases::list(&app.db, viewer(app.caller), page.after, page.limit).await?;
    let ListedReleases { releases, has_more } = listed;
    Ok(Json(Page::part(releases, has_more, |release| release.id.0)))
}

/// Look up a release.
#[utoipa::path(
    get, path = "/v1/releases/{id}", tag = "releases",
    params(("id" = ReleaseId, Path, description = "Its id")),
    responses(
        (status = 200, description = "The release", body = StoredRelease),
        (status = 422, description = "`limit_exceeded`: its document does not fit into memory"),
    ),
)]
pub(super) async fn show(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<ReleaseId>,
) -> Result<Response, ApiError> {
    let bytes = releases::document_bytes(&app.db, id).await?.release;
    let release = async || Ok(Json(load_release(&app, id).await?));
    app.documents.answer(bytes, release).await
}

/// Makes a release of a job's table: replays the recorded steps up to the requested one, verifies the
/// table, and packs it.
///
/// # Errors
/// `not_found`; `job_not_succeeded`; `dataset_deleted`; `no_such_step`; `invalid_job` if the
/// request names no combination of the sweep; `invalid_name`; `busy`.
async fn create_release(
    app: &CallerApp,
    request: ReleaseDefinition,
) -> Result<StoredRelease, ApiError> {
    app.storage.check()?;
    let name = request.name.as_deref().map(text::name).transpose()?;
    let job = jobs::load(&app.db, &app.keys, app.caller.organization, request.job_id).await?;
    let job = job.ok_or_else(|| ApiError::not_found_at("/job_id"))?;
    if editions::is_edition(&app.db, job.id).await? {
        let detail = "the job is that of an edition, which is its only release; create a job of your \
                      own for another release";
        return Err(ApiError::new(Code::Conflict, detail));
    }
    if TraceContext::current().is_some()
        && let Some(trace) = jobs::trace(&app.db, job.id).await?
    {
        traces::link_current(trace);
    }
    let combination = CombinationQuery {
        l: request.l,
        k: request.k,
        c: request.c,
        recoding: request.recoding,
        objective: request.objective,
    };
    let table = FoundTable::of(app, job, combination, request.step).await?;
    let (job, dataset) = (&table.job, &table.dataset);
    // The policy may be stricter than when the job was created.
    let policy = policies::load(&app.db, app.caller.organization).await?;
    let allowed = policy.check_job(&table.definition, &dataset.schema);
    let allowed =
        allowed.map_err(|problem| Problem::at(problem.code, "/job_id", problem.detail).into());
    app.recorded(Action::ReleaseCreated, request.job_id.0, allowed)
        .await?;
    let origin = ReleaseOrigin {
        id: ReleaseId::new(),
        folder: None,
        organization: app.caller.organization,
        holder: organizations::holder(&app.db, app.caller.organization).await?,
        job: job.id,
        dataset: dataset.id,
        submissions: job.submissions.clone(),
        row_warnings: submissions::person_warnings(&app.db, dataset.id, &job.submissions).await?,
        definition: dataset.definition.clone(),
        name,
        by: app.caller.into(),
        created_at: app.db.now(),
        rows: None,
    };
    let definition = table.definition.clone();
    let storage = app.storage.clone();
    let release = table.replay(app, move |table, observer| {
        let ReplayedTable {
            run,
            found,
            step,
            key,
        } = table;
        let mut packed = PackedRelease::new(&run, &found, step, &storage, observer)?;
        drop(run);
        let rendered = packed.take_rendered();
        let release = release_packing::pack(packed, origin, &definition, &key)?;
        Ok((release, rendered))
    });
    let (release, rendered) = release.await?;
    let made = releases::create(&app.db, &release).await;
    let made = made.map_err(ApiError::from);
    let made = app.recorded(Action::ReleaseCreated, request.job_id.0, made);
    if !made.await? {
        return Err(dataset_deleted());
    }
    rendered.keep(release.id, &app.storage).await;
    load_release(app, release.id).await
}

/// A release that the caller may see.
///
/// # Errors
/// `not_found`.
pub(super) async fn load_release(
    app: &CallerApp,
    id: ReleaseId,
) -> Result<StoredRelease, ApiError> {
    let release = releases::load(&app.db, viewer(app.caller), id).await?;
    release.ok_or_else(ApiError::not_found)
}

/// Records that the caller fetches a part of releases, which may be sent then ([`releases::record_fetch`]).
///
/// # Errors
/// `not_found`, `withdrawn` or `unauthenticated` where that is so meanwhile.
pub(super) async fn record_fetch(
    app: &CallerApp,
    ids: &[ReleaseId],
    part: &str,
) -> Result<(), ApiError> {
    let viewer = viewer(app.caller);
    match releases::record_fetch(&app.db, app.caller, viewer, ids, part).await? {
        Fetch::Recorded => Ok(()),
        Fetch::Withdrawn => Err(ApiError::withdrawn()),
        Fetch::NotVisible => Err(ApiError::not_found()),
    }
}

/// The viewer that a caller reads releases as.
pub(super) fn viewer(caller: Caller) -> Viewer {
    match caller.role {
        Role::Holder | Role::Officer => Viewer::Holder(caller.organization),
        Role::Admin | Role::Recipient | Role::Auditor => Viewer::Recipient(caller.organization),
    }
}
