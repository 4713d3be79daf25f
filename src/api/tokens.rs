//! `/v1/tokens`.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::clock;
use crate::db::Store;
use crate::db::tokens::{self, IssuedToken, NewToken, Token};
use crate::ids::{OrganizationId, TokenId};
use crate::problem::{Code, Problem};
use crate::roles::Role;

use super::connections::ClientAddress;
use super::error::{ApiError, done};
use super::extract::{Admin, Anyone, JsonBody, Parameters, Path, StaffOrAuditor};
use super::page::{Page, PageQuery};
use super::state::AppState;
use super::text;

/// Maximum length of a label, in characters.
const LABEL_LENGTH: usize = 200;

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenRequest {
    /// Name or id of the organization on whose behalf the token acts.
    #[schema(min_length = 1)]
    organization: String,
    /// With which rights.
    role: Role,
    /// What it is for, without control characters.
    #[schema(max_length = 200)]
    label: Option<String>,
    /// From when on it no longer works; the longest lifetime when omitted
    /// (`security.token_max_days`).
    #[serde(default, deserialize_with = "clock::optional_time")]
    expires_at: Option<OffsetDateTime>,
}

/// A token as it is shown once, with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShownToken {
    #[serde(flatten)]
    record: Token,
    /// What its bearer sends; shown this once. Absent where the organization enrols.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "pais_…")]
    token: Option<String>,
    /// With which the organization gets the token, once; only with `security.enrolment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "paisenrol_…")]
    enrolment_code: Option<String>,
}

impl From<IssuedToken> for ShownToken {
    fn from(issued: IssuedToken) -> Self {
        let secret = Some(issued.secret.expose_secret().to_owned());
        let (token, enrolment_code) = if issued.token.enrolment_expires_at.is_some() {
            (None, secret)
        } else {
            (secret, None)
        };
        Self {
            record: issued.token,
            token,
            enrolment_code,
        }
    }
}

/// A code to be redeemed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Enrolment {
    /// The code that the administrator passed on.
    #[schema(example = "paisenrol_…")]
    code: String,
}

/// Issue a token.
#[utoipa::path(post, path = "/v1/tokens", tag = "administration", request_body = TokenRequest,
    responses((status = 201, description = "Issued; the secret is shown this once",
        body = ShownToken),
        (status = 404, description = "`not_found`: no such organization"),
        (status = 422, description = "`invalid_value`")))]
pub(super) async fn create(
    Admin(app): Admin,
    JsonBody(request, _memory): JsonBody<TokenRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let label = request.label.as_deref();
    label.map_or(Ok(()), check_label)?;
    let lifetime = app.limits.token_lifetime;
    let new = NewToken {
        role: request.role,
        label,
        expires_at: lifetime.end(request.expires_at, app.db.now())?,
        is_enrolled: app.limits.enrolment,
    };
    let issued =
        tokens::create_token(&app.db, Some(app.caller), &request.organization, new).await?;
    let issued = issued.ok_or_else(|| {
        let detail = "there is no such organization";
        Problem::at(Code::NotFound, "/organization", detail)
    })?;
    Ok(shown(issued))
}

/// Checks the label of a token.
///
/// # Errors
/// `invalid_value` at `/label` if it is too long, or has control characters.
pub fn check_label(label: &str) -> Result<(), Problem> {
    text::check_length("/label", Some(label), LABEL_LENGTH)?;
    if label.contains(char::is_control) {
        let detail = "a label has no control characters; write it in one line";
        return Err(Problem::at(Code::InvalidValue, "/label", detail));
    }
    Ok(())
}

/// The answer that shows a secret, which no cache may store.
fn shown(issued: IssuedToken) -> impl IntoResponse {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    let document = Json(ShownToken::from(issued));
    (StatusCode::CREATED, no_store, document)
}

/// Redeem an enrolment code
///
/// The response has the token's secret, which is generated now: nobody else ever has it. A code works once,
/// for seven days.
#[utoipa::path(post, path = "/v1/enrolments", tag = "administration", security(()),
    request_body = Enrolment,
    responses((status = 201, description = "Redeemed; the secret is shown this once",
        body = ShownToken),
        (status = 404, description = "`not_found`: the code does not work, or no longer")))]
pub(super) async fn redeem(
    State(state): State<AppState>,
    client: Anyone,
    JsonBody(enrolment, _memory): JsonBody<Enrolment>,
) -> Result<impl IntoResponse, ApiError> {
    let code = &enrolment.code;
    let limit = state.refused_tokens.as_deref();
    let limit = limit.zip(client.address.map(ClientAddress::from));
    if let Some((limit, address)) = limit {
        limit.admit(address, code)?;
    }
    let issued = if tokens::is_well_formed(code, tokens::CODE_PREFIX) {
        tokens::redeem(&state.unscoped().db, code, client.address).await?
    } else {
        None
    };
    let Some(issued) = issued else {
        if let Some((limit, address)) = limit {
            limit.refused(address, code);
        }
        let detail = "the code does not work: it was redeemed, or is older than seven days, or its \
                      token was revoked; ask the administrator for another";
        return Err(ApiError::new(Code::NotFound, detail));
    };
    Ok(shown(issued))
}

/// List tokens without their secrets, oldest first.
#[utoipa::path(get, path = "/v1/tokens", tag = "administration", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Token>)))]
pub(super) async fn list(
    Admin(app): Admin,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Token>>, ApiError> {
    page_of_tokens(&app.db, None, &query).await
}

/// List the tokens of the caller's organization
///
/// Oldest first, without their secrets: also those that an administrator has issued, so that none is
/// unknown to the organization. An auditor finds the same as `token.created` in the audit log.
#[utoipa::path(get, path = "/v1/organization/tokens", tag = "administration", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Token>)))]
pub(super) async fn list_own(
    StaffOrAuditor(app): StaffOrAuditor,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Token>>, ApiError> {
    page_of_tokens(&app.db, Some(app.caller.organization), &query).await
}

/// The tokens of an organization, or of all.
async fn page_of_tokens(
    db: &Store,
    organization: Option<OrganizationId>,
    query: &PageQuery,
) -> Result<Json<Page<Token>>, ApiError> {
    let page = query.parse()?;
    let rows = tokens::list(db, organization, page.after, page.rows_to_query()).await?;
    Ok(Json(Page::new(rows, page, |token| token.id.0)))
}

/// Revoke a token, at once.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "administration",
    params(("id" = TokenId, Path, description = "Its id")),
    responses((status = 204, description = "It no longer works")))]
pub(super) async fn revoke(
    Admin(app): Admin,
    Path(id): Path<TokenId>,
) -> Result<StatusCode, ApiError> {
    done(tokens::revoke(&app.db, Some(app.caller), id).await?)
}
