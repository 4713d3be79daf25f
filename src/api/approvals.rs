//! `/v1/approvals`, and `/v1/releases/{id}/approval`: a second person lets a release leave, or not.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use pais_core::definition::json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::db::approvals::{
    self, Approval, ApprovalCreation, ApprovalStatus, Decision, ListedApproval, NewDecision,
};
use crate::db::audit::Action;
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};

use super::error::ApiError;
use super::extract::headers::require_json;
use super::extract::{Parameters, Path, Staff, WholeBody};
use super::page::{Page, page_request};
use super::text;

/// A decision about a release; without a body it is approved.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalDefinition {
    /// Whether the release may leave; `approved` when omitted.
    #[serde(default)]
    pub decision: Option<Decision>,
    /// Why; the log keeps it.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: Option<String>,
}

/// The decision about a release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DecidedRelease {
    /// The release.
    release_id: ReleaseId,
    /// The decision.
    #[serde(flatten)]
    approval: Approval,
}

/// Approve or reject a release
///
/// The approver's token must not have made the release, sent rows of its edition or last set the recipients of its
/// publication; for people who sign in with the issuer, this holds for all tokens of the person. A decision is final. No grant of a rejected release takes effect, including earlier grants. If the organization has an officer, a
/// holder is refused.
#[utoipa::path(post, path = "/v1/releases/{id}/approval", tag = "policy",
    params(("id" = ReleaseId, Path, description = "The release")),
    request_body = Option<ApprovalDefinition>,
    responses(
        (status = 201, description = "Decided", body = DecidedRelease),
        (status = 403, description = "`officer_required`; `forbidden`"),
        (status = 409, description = "`conflict`: the caller made the release, or a decision already exists"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`below_policy`: the policy was raised since the release was made; `invalid_value`"),
    ))]
pub(super) async fn decide(
    Staff(app): Staff,
    Path(release): Path<ReleaseId>,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<impl IntoResponse, ApiError> {
    let definition = body.process(async move |body| {
        if body.is_empty() {
            return Ok(ApprovalDefinition::default());
        }
        require_json(&headers)?;
        // `null` counts as an empty body.
        Ok(json::parse::<Option<ApprovalDefinition>>(&body)?.unwrap_or_default())
    });
    let definition = definition.await?;
    let reason = definition.reason.as_deref();
    let reason = reason.map(|reason| text::reason(reason, "this is decided"));
    let new = NewDecision {
        decision: definition.decision.unwrap_or_default(),
        reason: reason.transpose()?,
    };
    let decided = approvals::decide(&app.db, app.caller, release, new).await;
    let decided = decided.map_err(ApiError::from).and_then(made);
    let action = match new.decision {
        Decision::Approved => Action::ReleaseApproved,
        Decision::Rejected => Action::ReleaseRejected,
    };
    let approval = app.recorded(action, release.0, decided).await?;
    app.settle_editions().await;
    let document = DecidedRelease {
        release_id: release,
        approval,
    };
    Ok((StatusCode::CREATED, Json(document)))
}

fn made(creation: ApprovalCreation) -> Result<Approval, ApiError> {
    let conflict = |detail| Err(ApiError::new(Code::Conflict, detail));
    match creation {
        ApprovalCreation::Made(approval) => Ok(approval),
        ApprovalCreation::NoRelease => Err(ApiError::not_found()),
        ApprovalCreation::Withdrawn => Err(ApiError::withdrawn()),
        ApprovalCreation::OfficerDecides => Err(officer_required()),
        ApprovalCreation::SamePerson => conflict(
            "a token that made the release, sent rows of its edition or last set the recipients of its publication \
             cannot decide about it, nor can another token of the same person; use the token of somebody else",
        ),
        ApprovalCreation::Exists => conflict(
            "the release is decided already, and a decision is final; an approved release can be \
             withdrawn, and of a rejected one another can be made",
        ),
        ApprovalCreation::Published => conflict(
            "the edition of this release is published: recipients may have its rows, which are in no later \
             edition. If they are not to read it any more, withdraw the release",
        ),
    }
}

/// The error of a holder who may not set the policy and approve.
pub(super) fn officer_required() -> ApiError {
    ApiError::new(
        Code::OfficerRequired,
        "the organization has a privacy officer, who sets the policy and approves releases",
    )
}

/// Which approvals are listed.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApprovalQuery {
    /// `pending`, `approved` or `rejected`; all when omitted.
    #[param(value_type = Option<ApprovalStatus>)]
    pub status: Option<String>,
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(value_type = Option<Uuid>)]
    pub cursor: Option<String>,
}

/// List approvals, oldest release first
///
/// A release is pending where the policy requires an approval, nobody has decided, and it is not withdrawn.
#[utoipa::path(get, path = "/v1/approvals", tag = "policy", params(ApprovalQuery),
    responses((status = 200, description = "A page", body = Page<ListedApproval>)))]
pub(super) async fn list(
    Staff(app): Staff,
    Parameters(query): Parameters<ApprovalQuery>,
) -> Result<Json<Page<ListedApproval>>, ApiError> {
    let status = query.status.as_deref();
    if status.is_some_and(|status| !ApprovalStatus::WORDS.contains(&status)) {
        let detail = "`status` must be pending, approved or rejected";
        return Err(Problem::new(Code::InvalidParameter, detail).into());
    }
    let page = page_request::<Uuid>(query.limit, query.cursor.as_deref())?;
    let (organization, limit) = (app.caller.organization, page.rows_to_query());
    let rows = approvals::list(&app.db, organization, status, page.after, limit).await?;
    Ok(Json(Page::new(rows, page, |listed| listed.release_id.0)))
}
