//! `/v1/tokens`.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ids::TokenId;
use crate::problem::{Code, Problem};
use crate::roles::Role;
use crate::store::tokens::{self, NewToken, Token};

use super::{ApiError, AppState, JsonBody, Operator, Page, PageQuery, Parameters, Path, text};

/// The routes of this resource.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(revoke))
}

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Name or id of the organization on whose behalf the token acts.
    organization: String,
    /// With which rights.
    role: Role,
    /// What it is for.
    label: Option<String>,
    /// From when on it no longer works; never when omitted.
    #[serde(default, with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
}

/// A token as it is shown once, with its secret.
#[derive(Serialize, ToSchema)]
pub struct ShownToken {
    #[serde(flatten)]
    record: Token,
    /// What its bearer sends; shown this once.
    #[schema(example = "pais_…")]
    token: String,
}

/// Issue a token.
#[utoipa::path(post, path = "/v1/tokens", tag = "administration", request_body = TokenRequest,
    responses((status = 201, description = "Issued; the secret is shown this once",
        body = ShownToken),
        (status = 404, description = "`not_found`: no such organization"),
        (status = 422, description = "`invalid_value`")))]
async fn create(
    State(state): State<AppState>,
    Operator(caller): Operator,
    JsonBody(new): JsonBody<TokenRequest>,
) -> Result<impl IntoResponse, ApiError> {
    text::free("/label", new.label.as_deref(), 200)?;
    if new.expires_at.is_some_and(|at| at <= state.store.now()) {
        return Err(Problem::at(
            Code::InvalidValue,
            "/expires_at",
            "`expires_at` lies in the past; name a time to come, or leave it out",
        )
        .into());
    }
    let wanted = NewToken {
        role: new.role,
        label: new.label.as_deref(),
        expires_at: new.expires_at,
    };
    let issued = tokens::create_token(&state.store, Some(caller), &new.organization, wanted)
        .await?
        .ok_or_else(|| {
            Problem::at(
                Code::NotFound,
                "/organization",
                "there is no such organization",
            )
        })?;
    let shown = ShownToken {
        record: issued.token,
        token: issued.secret.expose_secret().to_owned(),
    };
    // The one answer with a secret: no cache on the way may keep it.
    Ok((
        StatusCode::CREATED,
        [(header::CACHE_CONTROL, "no-store")],
        Json(shown),
    ))
}

/// List tokens without their secrets, oldest first.
#[utoipa::path(get, path = "/v1/tokens", tag = "administration", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<Token>)))]
async fn list(
    State(state): State<AppState>,
    _: Operator,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Token>>, ApiError> {
    let page = query.parse()?;
    let rows = tokens::list(&state.store, page.after, page.limit + 1).await?;
    Ok(Json(Page::cut(rows, page, |row| row.id.0)))
}

/// Revoke a token, at once.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "administration",
    params(("id" = TokenId, Path, description = "Its id")),
    responses((status = 204, description = "It no longer works")))]
async fn revoke(
    State(state): State<AppState>,
    Operator(caller): Operator,
    Path(id): Path<TokenId>,
) -> Result<StatusCode, ApiError> {
    match tokens::revoke(&state.store, caller, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found()),
    }
}
