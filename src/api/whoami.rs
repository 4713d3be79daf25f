//! `/v1/whoami`: who the caller is, so that a client need not try what its token may do.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::db::tokens;
use crate::ids::{OrganizationId, TokenId};
use crate::problem::Code;
use crate::roles::{Caller, Role};

use super::error::ApiError;
use super::state::AppState;

/// The caller of a request.
#[derive(Serialize, ToSchema)]
pub(crate) struct CallerDocument {
    /// On whose behalf the caller acts.
    organization: CallerOrganization,
    /// With which rights.
    role: Role,
    /// The token; of a person who signed in with the issuer, the record of that person.
    token_id: TokenId,
    /// What the token is for.
    label: Option<String>,
    /// From when on the token no longer works; null for never, and for a person, whose own token says it.
    #[serde(with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
}

/// The organization of a caller.
#[derive(Serialize, ToSchema)]
pub(crate) struct CallerOrganization {
    /// Its id.
    id: OrganizationId,
    /// Its name.
    name: String,
}

/// Look up the caller: its organization, role and token.
#[utoipa::path(get, path = "/v1/whoami", tag = "administration",
    responses((status = 200, description = "The caller", body = CallerDocument)))]
pub(super) async fn whoami(
    State(state): State<AppState>,
    caller: Caller,
) -> Result<Json<CallerDocument>, ApiError> {
    let token = tokens::of_caller(&state.of(caller).db, caller).await?;
    let token =
        token.ok_or_else(|| ApiError::new(Code::NotFound, "the token is not there any more"))?;
    Ok(Json(CallerDocument {
        organization: CallerOrganization {
            id: token.organization_id,
            name: token.organization,
        },
        role: caller.role,
        token_id: caller.token,
        label: token.label,
        expires_at: token.expires_at,
    }))
}
