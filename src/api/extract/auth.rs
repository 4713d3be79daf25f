//! The caller of a request: bearer tokens, and extractors that admit only certain roles.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use headers::HeaderMapExt;
use headers::authorization::{Authorization, Bearer};

use crate::api::connections::ClientAddress;
use crate::api::error::ApiError;
use crate::api::state::{AppState, CallerApp};
use crate::db::people::{self, Person};
use crate::db::token_validity::{self, Authentication, RefusalReason};
use crate::db::{Store, tokens};
use crate::oidc::{self, Refusal, Verifier};
use crate::problem::Code;
use crate::roles::{Caller, Role};

use super::headers::client_address;
use super::query::check_names;

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = identified(parts, state).await?;
        check_names(parts).await?;
        Ok(caller)
    }
}

/// The caller, whose query parameters are not checked yet.
async fn identified(parts: &Parts, state: &AppState) -> Result<Caller, ApiError> {
    let bearer = parts.headers.typed_get::<Authorization<Bearer>>();
    let bearer = bearer.ok_or_else(|| refused("missing"))?;
    let caller = authenticate(parts, bearer.token().trim(), state).await?;
    if let Some(limiter) = &state.rate_limiter {
        limiter.admit(caller.token)?;
    }
    Ok(caller)
}

/// A client whose request needs no token.
#[derive(Clone, Copy, Debug)]
pub struct Anyone {
    /// The address that the request came from, where it is known.
    pub address: Option<IpAddr>,
}

impl FromRequestParts<AppState> for Anyone {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        check_names(parts).await?;
        Ok(Self {
            address: client_address(parts, state.is_behind_proxy),
        })
    }
}

/// The caller with this token: an API token, or a token of a person signed by the issuer. A token
/// of an impossible form or without a valid signature is refused without a database query, and so is an unknown API
/// token from an address that has sent too many refused tokens.
async fn authenticate(parts: &Parts, token: &str, state: &AppState) -> Result<Caller, ApiError> {
    let of_person = state.oidc.as_deref().filter(|_| oidc::is_compact(token));
    if of_person.is_none() && !tokens::is_well_formed(token, tokens::PREFIX) {
        return Err(refused("malformed"));
    }
    let address = client_address(parts, state.is_behind_proxy);
    let limit = state.refused_tokens.as_deref();
    let limit = limit.zip(address.map(ClientAddress::from));
    let admit = || match limit {
        Some((limit, address)) => {
            let admitted = limit.admit(address, token);
            admitted.inspect_err(|_| count_refusal("limited"))
        }
        None => Ok(()),
    };
    let caller = match of_person {
        // Each token of a person is new to the service. A signature is checked without the database, so that bad
        // tokens of one client do not lock the others at its address out.
        Some(verifier) => {
            let caller = person(verifier, token, address, state).await?;
            if caller.is_none() {
                admit()?;
            }
            caller
        }
        None => {
            admit()?;
            let db = &state.unscoped().db;
            let found = token_validity::authenticate(db, token).await?;
            admitted(db, found, address).await?
        }
    };
    if let Some((limit, address)) = limit {
        match caller {
            Some(_) => limit.accepted(token),
            None => limit.refused(address, token),
        }
    }
    caller.ok_or_else(|| refused("unknown"))
}

/// The person with this token; `None` if it is not accepted.
async fn person(
    verifier: &Verifier,
    token: &str,
    address: Option<IpAddr>,
    state: &AppState,
) -> Result<Option<Caller>, ApiError> {
    let db = &state.unscoped().db;
    match verifier.verify(token, db.now()).await {
        Ok(person) => {
            let who = Person {
                role: person.role,
                subject: &person.subject,
            };
            let found = people::authenticate(db, &person.organization, who, address).await?;
            admitted(db, found, address).await
        }
        Err(Refusal::Invalid) => Ok(None),
        Err(Refusal::Unavailable) => Err(ApiError::new(
            Code::Unavailable,
            "the issuer of the token cannot be reached to check it; try again, or use an API token",
        )),
    }
}

/// The caller, if the token is valid. The use of an expired or revoked token is recorded in the audit log of
/// its organization.
async fn admitted(
    db: &Store,
    found: Authentication,
    address: Option<IpAddr>,
) -> Result<Option<Caller>, ApiError> {
    match found {
        Authentication::Valid(caller) => Ok(Some(Caller { address, ..caller })),
        Authentication::Refused {
            token,
            organization,
            reason,
        } => {
            token_validity::record_refusal(db, token, organization, reason, address).await?;
            Ok(None)
        }
        Authentication::Unknown => Ok(None),
    }
}

/// The error of a request without a valid token.
fn refused(reason: &'static str) -> ApiError {
    count_refusal(reason);
    ApiError::unauthenticated()
}

fn count_refusal(reason: &'static str) {
    metrics::counter!("pais_refused_tokens_total", "reason" => reason).increment(1);
}

/// The shared state for a caller with one of these roles. If its role does not permit the request, that is
/// recorded in the audit log of its organization, at most once a minute for a token. A failure to record it is
/// logged: the request is refused anyway.
async fn admitted_role(
    parts: &mut Parts,
    state: &AppState,
    roles: &[Role],
) -> Result<CallerApp, ApiError> {
    let caller = identified(parts, state).await?;
    let app = state.of(caller);
    if roles.contains(&caller.role) {
        check_names(parts).await?;
        return Ok(app);
    }
    let (token, organization) = (caller.token, caller.organization);
    let (reason, address) = (RefusalReason::Role, caller.address);
    let recorded = token_validity::record_refusal(&app.db, token, organization, reason, address);
    if let Err(error) = recorded.await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "a refused request could not be recorded");
    }
    let detail = format!("a token of the role `{}` may not do this", caller.role);
    Err(ApiError::new(Code::Forbidden, detail))
}

macro_rules! role_extractors {
    ($($(#[$doc:meta])* $name:ident = [$($role:ident),+];)+) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(pub CallerApp);

        impl FromRequestParts<AppState> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(
                parts: &mut Parts,
                state: &AppState,
            ) -> Result<Self, ApiError> {
                admitted_role(parts, state, &[$(Role::$role),+]).await.map(Self)
            }
        }
    )+};
}

role_extractors! {
    /// A caller with the role `admin`.
    Admin = [Admin];
    /// A caller with the role `holder`.
    Holder = [Holder];
    /// A caller with the role `holder` or `officer`: one of the hospital.
    Staff = [Holder, Officer];
    /// A caller with the role `holder`, `officer` or `recipient`.
    ReleaseReader = [Holder, Officer, Recipient];
    /// A caller with the role `holder`, `officer` or `auditor`.
    StaffOrAuditor = [Holder, Officer, Auditor];
    /// A caller with the role `officer` or `auditor`.
    LogReader = [Officer, Auditor];
}
