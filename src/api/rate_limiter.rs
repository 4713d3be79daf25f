//! The limit on the requests of a token per second.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};

use crate::ids::TokenId;

use crate::api::error::ApiError;

/// Number of requests after which tokens that are not in use are removed from the limiter.
const CLEANUP_INTERVAL: u32 = 4096;

/// Admits a number of requests of each token per second, and the same number at once after a pause.
pub struct RateLimiter {
    limiter: DefaultKeyedRateLimiter<TokenId>,
    clock: DefaultClock,
    since_cleanup: AtomicU32,
}

impl RateLimiter {
    /// Creates a limiter; `None` for 0, which means no limit.
    pub fn new(requests_per_second: u32) -> Option<Self> {
        let quota = Quota::per_second(NonZeroU32::new(requests_per_second)?);
        Some(Self {
            limiter: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            since_cleanup: AtomicU32::new(0),
        })
    }

    /// Counts a request of a token.
    ///
    /// # Errors
    /// [`ApiError::TooManyRequests`] if the token is over its limit.
    pub fn admit(&self, token: TokenId) -> Result<(), ApiError> {
        if self.since_cleanup.fetch_add(1, Ordering::Relaxed) >= CLEANUP_INTERVAL {
            self.since_cleanup.store(0, Ordering::Relaxed);
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&token).map_err(|refused| {
            let wait: Duration = refused.wait_time_from(self.clock.now());
            ApiError::TooManyRequests {
                retry_after: wait.as_secs_f64().ceil().max(1.0) as u64,
            }
        })
    }
}
