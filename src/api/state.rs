//! The state of the HTTP layer.

use std::sync::Arc;
use std::time::Duration;

use crate::oidc::Verifier;
use crate::roles::Caller;
use crate::service::Service;

use super::rate_limiter::RateLimiter;
use super::refused_tokens::RefusedTokens;
use super::upload::UploadPace;

/// The state that every handler can use. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The operations of the API.
    pub operations: Operations,
    /// Limits the requests of each token; `None` for no limit.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Limits the refused tokens of each address; `None` for no limit.
    pub refused_tokens: Option<Arc<RefusedTokens>>,
    /// Verifies the tokens of people; `None` where no issuer is configured.
    pub oidc: Option<Arc<Verifier>>,
    /// Longest time that a client may take to send a body that is read as a whole.
    pub body_timeout: Duration,
    /// How slowly a client may send an upload.
    pub upload_pace: UploadPace,
    /// Whether every request comes through a proxy, which names the address of its client.
    pub is_behind_proxy: bool,
    /// The URL at which clients reach the service, without a trailing slash; `None` where it is not
    /// configured.
    pub public_url: Option<String>,
}

impl AppState {
    /// The operations of the API for this caller.
    pub fn of(&self, caller: Caller) -> Service {
        self.operations.0.of(caller)
    }

    /// The operations of the API, without a restriction by PostgreSQL to the rows of an organization:
    /// for what comes before the caller is known, and for what has none.
    pub fn unscoped(&self) -> &Service {
        &self.operations.0
    }
}

/// The operations of the API. A handler can use them only by [`AppState::of`] or
/// [`AppState::unscoped`], and so says for whom.
#[derive(Clone)]
pub struct Operations(Service);

impl From<Service> for Operations {
    fn from(service: Service) -> Self {
        Self(service)
    }
}
