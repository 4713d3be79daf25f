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

use crate::http::extract::auth::Admin;
use crate::http::extract::body::JsonBody;
use crate::http::extract::page_query::PageQuery;
use crate::http::extract::parameters::{Parameters, Path};
use crate::http::response::error::ApiError;
use crate::http::response::page::Page;
use crate::http::state::AppState;
use crate::ids::TokenId;
use crate::roles::Role;
use crate::store::tokens::{NewToken, Token};

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(revoke))
}

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Name or id of the organization on whose behalf the token acts.
    #[schema(min_length = 1)]
    organization: String,
    /// With which rights.
    role: Role,
    /// What it is for.
    #[schema(max_length = 200)]
    label: Option<String>,
    /// From when on it no longer works; the longest lifetime when omitted
    /// (`security.token_max_days`).
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
    Admin(caller): Admin,
    JsonBody(request, _memory): JsonBody<TokenRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let new = NewToken {
        role: request.role,
        label: request.label.as_deref(),
        expires_at: request.expires_at,
    };
    let issued = state
        .service
        .create_token(caller, &request.organization, new)
        .await?;
    let shown = ShownToken {
        record: issued.token,
        token: issued.secret.expose_secret().to_owned(),
    };
    // This response contains a secret, so no cache may store it.
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
    _: Admin,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<Token>>, ApiError> {
    let tokens = state.service.list_tokens(query.parse()?).await?;
    Ok(Json(tokens.into()))
}

/// Revoke a token, at once.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "administration",
    params(("id" = TokenId, Path, description = "Its id")),
    responses((status = 204, description = "It no longer works")))]
async fn revoke(
    State(state): State<AppState>,
    Admin(caller): Admin,
    Path(id): Path<TokenId>,
) -> Result<StatusCode, ApiError> {
    state.service.revoke_token(caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
