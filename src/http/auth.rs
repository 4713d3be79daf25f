//! Who calls: bearer tokens, and extractors that admit only the roles of an endpoint.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use crate::problem::Code;
use crate::roles::{Caller, Role};
use crate::store::tokens;

use super::{ApiError, AppState};

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let refused = || {
            ApiError::new(
                Code::Unauthenticated,
                "send `Authorization: Bearer <token>` with a token that is neither expired nor revoked",
            )
        };
        let header = parts
            .headers
            .get(header::AUTHORIZATION)
            .ok_or_else(refused)?;
        let text = header.to_str().map_err(|_| refused())?;
        let (scheme, secret) = text.split_once(' ').ok_or_else(refused)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(refused());
        }
        let caller = tokens::authenticate(&state.store, secret.trim())
            .await?
            .ok_or_else(refused)?;
        match &state.rate {
            Some(rate) => rate.admit(caller.token).map(|()| caller),
            None => Ok(caller),
        }
    }
}

fn admit(caller: Caller, roles: &[Role]) -> Result<Caller, ApiError> {
    if roles.contains(&caller.role) {
        return Ok(caller);
    }
    let detail = format!("a token of the role `{}` may not do this", caller.role);
    Err(ApiError::new(Code::Forbidden, detail))
}

macro_rules! admitted {
    ($($(#[$doc:meta])* $name:ident = [$($role:ident),+];)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub Caller);

        impl FromRequestParts<AppState> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(
                parts: &mut Parts,
                state: &AppState,
            ) -> Result<Self, ApiError> {
                let caller = Caller::from_request_parts(parts, state).await?;
                admit(caller, &[$(Role::$role),+]).map(Self)
            }
        }
    )+};
}

admitted! {
    /// A caller with the role `admin`.
    Operator = [Admin];
    /// A caller with the role `holder`.
    Holder = [Holder];
    /// A caller with the role `holder` or `recipient`.
    HolderOrRecipient = [Holder, Recipient];
    /// A caller with the role `auditor`.
    Auditor = [Auditor];
}
