//! The caller of a request: bearer tokens, and extractors that admit only certain roles.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use headers::HeaderMapExt;
use headers::authorization::{Authorization, Bearer};

use crate::http::response::error::ApiError;
use crate::http::state::AppState;
use crate::problem::Code;
use crate::roles::{Caller, Role};
use crate::service::ServiceError;

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let refused = || ApiError::from(ServiceError::unauthenticated());
        let bearer = parts.headers.typed_get::<Authorization<Bearer>>();
        let bearer = bearer.ok_or_else(refused)?;
        let caller = state.service.authenticate(bearer.token().trim()).await?;
        let caller = caller.ok_or_else(refused)?;
        match &state.rate_limiter {
            Some(limiter) => limiter.admit(caller.token).map(|()| caller),
            None => Ok(caller),
        }
    }
}

fn check_role(caller: Caller, roles: &[Role]) -> Result<Caller, ApiError> {
    if roles.contains(&caller.role) {
        return Ok(caller);
    }
    let detail = format!("a token of the role `{}` may not do this", caller.role);
    Err(ApiError::new(Code::Forbidden, detail))
}

macro_rules! role_extractors {
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
                check_role(caller, &[$(Role::$role),+]).map(Self)
            }
        }
    )+};
}

role_extractors! {
    /// A caller with the role `admin`.
    Admin = [Admin];
    /// A caller with the role `holder`.
    Holder = [Holder];
    /// A caller with the role `holder` or `recipient`.
    HolderOrRecipient = [Holder, Recipient];
    /// A caller with the role `auditor`.
    Auditor = [Auditor];
}
