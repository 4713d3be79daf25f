//! `/v1/releases/{id}/grants`: which recipients may fetch a release.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use time::OffsetDateTime;

use crate::db::audit::Action;
use crate::db::grants::{self, Grant, GrantCreation, GrantRefusal, NewGrant};
use crate::ids::{GrantId, ReleaseId};
use crate::problem::{Code, Problem};

use super::compositions::compose;
use super::error::{ApiError, done};
use super::extract::{JsonBody, Parameters, Path, Staff};
use super::page::{Page, PageQuery};
use super::releases::load_release;
use super::response::created;
use super::state::CallerApp;
use super::text::{self, PURPOSE_LENGTH};

/// Grant a release to a recipient
///
/// The release is decided together with all releases of its dataset that the recipient may read or
/// has fetched. Where an adversary with all of them could break a privacy model, the grant is refused
/// unless `acknowledge_composition_risk` says why the risk is taken.
#[utoipa::path(
    post, path = "/v1/releases/{id}/grants", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    request_body = NewGrant,
    responses(
        (status = 201, description = "Granted", body = Grant,
         headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such release or recipient"),
        (status = 409, description = "`grant_exists`; `approval_required`: the policy requires approval first; `composition_risk`: the releases together break a privacy model"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`invalid_value`; `below_policy`; `limit_exceeded`"),
    ),
)]
pub(super) async fn create(
    Staff(app): Staff,
    Path(release): Path<ReleaseId>,
    JsonBody(mut new, _memory): JsonBody<NewGrant>,
) -> Result<impl IntoResponse, ApiError> {
    let granted = decide_grant(&app, release, &mut new).await;
    let recorded = app.recorded(Action::GrantCreated, release.0, granted);
    let grant = recorded.await?;
    let path = format!("/v1/releases/{release}/grants/{}", grant.id);
    Ok(created(path, grant))
}

/// List the grants of a release, oldest first, expired ones too.
#[utoipa::path(
    get, path = "/v1/releases/{id}/grants", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), PageQuery),
    responses(
        (status = 200, description = "A page", body = Page<Grant>),
    ),
)]
pub(super) async fn list(
    Staff(app): Staff,
    Path(release): Path<ReleaseId>,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Grant>>, ApiError> {
    let page = query.parse()?;
    let (organization, limit) = (app.caller.organization, page.rows_to_query());
    let rows = grants::list(&app.db, organization, release, page.after, limit).await?;
    let rows = rows.ok_or_else(ApiError::not_found)?;
    Ok(Json(Page::new(rows, page, |grant| grant.id.0)))
}

/// Withdraw a grant.
#[utoipa::path(
    delete, path = "/v1/releases/{id}/grants/{grant_id}", tag = "releases",
    params(
        ("id" = ReleaseId, Path, description = "The release"),
        ("grant_id" = GrantId, Path, description = "The grant"),
    ),
    responses(
        (status = 204, description = "Withdrawn"),
    ),
)]
pub(super) async fn delete(
    Staff(app): Staff,
    Path((release, grant)): Path<(ReleaseId, GrantId)>,
) -> Result<StatusCode, ApiError> {
    done(grants::delete(&app.db, app.caller, release, grant).await?)
}

/// Maximum number of attempts at a grant, if the recipient gets access to other releases meanwhile.
const COMPOSITIONS: usize = 4;

/// Grants a release to a recipient, unless it breaks a privacy model together with what the recipient knows
/// about the dataset and the request does not acknowledge that.
async fn decide_grant(
    app: &CallerApp,
    release: ReleaseId,
    new: &mut NewGrant,
) -> Result<Grant, ApiError> {
    check_grant(new, app.db.now())?;
    let release = load_release(app, release).await?;
    // A grant is made only together with the releases that it was decided with. If the recipient gets access to
    // others meanwhile, it is decided again.
    let mut composed = Vec::new();
    for _ in 0..COMPOSITIONS {
        let known = match grants::create(&app.db, app.caller, release.id, new, &composed).await? {
            GrantCreation::Made(grant) => return Ok(grant),
            GrantCreation::Refused(refusal) => return Err(refused(refusal)),
            GrantCreation::Undecided(known) => known,
        };
        let composition = compose(app, release.clone(), &known).await?;
        if !composition.holds && new.acknowledge_composition_risk.is_none() {
            return Err(composition.problem().into());
        }
        composed = known;
    }
    Err(Problem::new(
        Code::Busy,
        "other releases are being granted to the recipient at the same time; try again",
    )
    .into())
}

/// Checks a grant, and removes white space around its texts.
fn check_grant(new: &mut NewGrant, now: OffsetDateTime) -> Result<(), Problem> {
    new.purpose = text::purpose(&new.purpose, "/purpose")?;
    if let Some(reason) = &mut new.acknowledge_composition_risk {
        let pointer = "/acknowledge_composition_risk";
        *reason = text::trimmed(reason).to_owned();
        if reason.is_empty() {
            let detail = "the reason is empty; say why the risk is taken, or leave it out";
            return Err(Problem::at(Code::InvalidValue, pointer, detail));
        }
        text::check_length(pointer, Some(reason), PURPOSE_LENGTH)?;
    }
    text::check_end(new.expires_at, "/expires_at", now)
}

fn refused(refusal: GrantRefusal) -> ApiError {
    match refusal {
        GrantRefusal::NoRelease => ApiError::not_found(),
        GrantRefusal::NoRecipient => Problem::at(
            Code::NotFound,
            "/recipient",
            "there is no organization with this name or id",
        )
        .into(),
        GrantRefusal::NotApproved => ApiError::new(
            Code::ApprovalRequired,
            "the policy requires that another token of the organization approves the release \
             first: `POST /v1/releases/{id}/approval`",
        ),
        GrantRefusal::Rejected => ApiError::new(
            Code::ApprovalRequired,
            "the release was rejected; `GET /v1/releases/{id}` has the reason; release another table",
        ),
        GrantRefusal::NotInPolicy => Problem::at(
            Code::BelowPolicy,
            "/recipient",
            "the policy's `recipients` does not name this organization",
        )
        .into(),
        GrantRefusal::Withdrawn => ApiError::withdrawn(),
        GrantRefusal::Exists => ApiError::new(
            Code::GrantExists,
            "the recipient already has a grant of this release; withdraw that grant first",
        ),
    }
}
