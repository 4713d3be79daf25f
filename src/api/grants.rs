//! `/v1/releases/{id}/grants`: which recipients may fetch a release.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::db::audit::Action;
use crate::db::grants::{self, GrantCreation, GrantRefusal, NewGrant, StoredGrant};
use crate::db::policies;
use crate::ids::{GrantId, OrganizationId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::compositions::compose;
use super::error::{ApiError, found};
use super::extract::{Holder, JsonBody, Parameters, Path};
use super::page::{Page, PageQuery};
use super::policies::check_release;
use super::releases::load_release;
use super::response::created;
use super::state::{App, AppState};
use super::text;

/// A grant that is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantDefinition {
    /// Name or id of the organization that may fetch the release.
    #[schema(min_length = 1)]
    pub recipient: String,
    /// The purpose for which it needs the data.
    #[schema(min_length = 1, max_length = 2000)]
    pub purpose: String,
    /// Until when; without an end when omitted.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// Why the grant is made although the releases that the recipient then knows may break a privacy
    /// model together. It is kept in the audit log.
    #[schema(min_length = 1, max_length = 2000)]
    pub acknowledge_composition_risk: Option<String>,
}

/// A grant in its current state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct GrantDocument {
    /// Its id.
    pub id: GrantId,
    /// What may be fetched.
    pub release_id: ReleaseId,
    /// By whom.
    pub recipient: RecipientDocument,
    /// The purpose.
    pub purpose: String,
    /// Until when; null for without end.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The organization that may fetch a release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct RecipientDocument {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
}

impl From<StoredGrant> for GrantDocument {
    fn from(grant: StoredGrant) -> Self {
        Self {
            id: grant.id,
            release_id: grant.release,
            recipient: RecipientDocument {
                id: grant.recipient,
                name: grant.recipient_name,
            },
            purpose: grant.purpose,
            expires_at: grant.expires_at,
            created_at: grant.created_at,
        }
    }
}

/// The grants' routes.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(delete))
}

/// Grant a release to a recipient
///
/// The release is decided together with all releases of its dataset that the recipient may read or
/// has fetched. Where an adversary with all of them could break a privacy model, the grant is refused
/// unless `acknowledge_composition_risk` says why the risk is taken.
#[utoipa::path(
    post, path = "/v1/releases/{id}/grants", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release")),
    request_body = GrantDefinition,
    responses(
        (status = 201, description = "Granted", body = GrantDocument,
         headers(("Location" = String, description = "Its path"))),
        (status = 404, description = "`not_found`: no such release or recipient"),
        (status = 409, description = "`grant_exists`; `approval_required`: the policy requires approval first; `composition_risk`: the releases together break a privacy model"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`invalid_value`; `below_policy`; `limit_exceeded`"),
    ),
)]
async fn create(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
    JsonBody(definition, _memory): JsonBody<GrantDefinition>,
) -> Result<impl IntoResponse, ApiError> {
    let new = NewGrant {
        release,
        recipient: &definition.recipient,
        purpose: definition.purpose.trim(),
        expires_at: definition.expires_at,
        acknowledged_risk: definition
            .acknowledge_composition_risk
            .as_deref()
            .map(str::trim),
    };
    let app = state.of(caller);
    let granted = decide_grant(&app, caller, &new).await;
    let subject = (Action::GrantCreated, release.0);
    let grant = app.recorded(caller, subject, granted).await?;
    let path = format!("/v1/releases/{release}/grants/{}", grant.id);
    Ok(created(path, GrantDocument::from(grant)))
}

/// List the grants of a release, oldest first, expired ones too.
#[utoipa::path(
    get, path = "/v1/releases/{id}/grants", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), PageQuery),
    responses(
        (status = 200, description = "A page", body = Page<GrantDocument>),
    ),
)]
async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path(release): Path<ReleaseId>,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<GrantDocument>>, ApiError> {
    let page = query.parse()?;
    let (organization, limit) = (caller.organization, page.rows_to_query());
    let rows = grants::list(&state.db(caller), organization, release, page.after, limit).await?;
    let rows = rows.ok_or_else(ApiError::not_found)?;
    let grants = Page::new(rows, page, |grant| grant.id.0);
    Ok(Json(grants.map(GrantDocument::from)))
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
async fn delete(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path((release, grant)): Path<(ReleaseId, GrantId)>,
) -> Result<StatusCode, ApiError> {
    found(grants::delete(&state.db(caller), caller, release, grant).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Maximum length of a purpose, and of the reason why a risk is taken, in characters.
const PURPOSE_LENGTH: usize = 2_000;

/// How often a grant is decided, where the recipient comes to know other releases meanwhile.
const COMPOSITIONS: usize = 4;

/// Grants a release to a recipient, unless it breaks a privacy model together with what the
/// recipient knows of the dataset and the request does not acknowledge that.
async fn decide_grant(
    app: &App,
    caller: Caller,
    new: &NewGrant<'_>,
) -> Result<StoredGrant, ApiError> {
    check_grant(new, app.db.now())?;
    let release = load_release(&app.db, caller, new.release).await?;
    let policy = policies::load(&app.db, caller.organization).await?;
    check_release(&app.db, &policy, &release, "").await?;
    // A grant is made only together with those releases that were decided with it. Where the
    // recipient comes to know others meanwhile, it is decided again.
    let mut composed = Vec::new();
    for _ in 0..COMPOSITIONS {
        let known = match grants::create(&app.db, caller, new, &composed).await? {
            GrantCreation::Made(grant) => return Ok(grant),
            GrantCreation::Refused(refusal) => return Err(refused(refusal)),
            GrantCreation::Undecided(known) => known,
        };
        let composition = compose(app, caller, release.clone(), &known).await?;
        if !composition.holds && new.acknowledged_risk.is_none() {
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

fn check_grant(grant: &NewGrant<'_>, now: OffsetDateTime) -> Result<(), Problem> {
    if grant.purpose.is_empty() {
        return Err(Problem::at(
            Code::InvalidValue,
            "/purpose",
            "the purpose is empty; say what the recipient needs the data for",
        ));
    }
    text::check_length("/purpose", Some(grant.purpose), PURPOSE_LENGTH)?;
    let risk = "/acknowledge_composition_risk";
    if grant.acknowledged_risk.is_some_and(str::is_empty) {
        return Err(Problem::at(
            Code::InvalidValue,
            risk,
            "the reason is empty; say why the risk is taken, or leave it out",
        ));
    }
    text::check_length(risk, grant.acknowledged_risk, PURPOSE_LENGTH)?;
    if grant.expires_at.is_some_and(|at| at <= now) {
        return Err(Problem::at(
            Code::InvalidValue,
            "/expires_at",
            "`expires_at` is in the past; give a later time, or leave it out",
        ));
    }
    Ok(())
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
        GrantRefusal::BelowPolicy(problem) => problem.into(),
        GrantRefusal::Withdrawn => ApiError::withdrawn(),
        GrantRefusal::Exists => ApiError::new(
            Code::GrantExists,
            "the recipient already has a grant of this release; withdraw that grant first",
        ),
    }
}
