//! The state of the HTTP layer.

use std::sync::Arc;

use crate::service::Service;

use super::rate_limiter::RateLimiter;

/// The state that every handler can use. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The operations of the API.
    pub service: Service,
    /// Limits the requests of each token; `None` for no limit.
    pub rate_limiter: Option<Arc<RateLimiter>>,
}
