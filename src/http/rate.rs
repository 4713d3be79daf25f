//! How often a token may be used.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};

use crate::ids::TokenId;

use super::ApiError;

/// Requests after which tokens that have been idle are forgotten.
const SWEEP_EVERY: u32 = 4096;

/// Admits so many requests of each token a second, and as many at once after a pause.
pub struct RateLimiter {
    limiter: DefaultKeyedRateLimiter<TokenId>,
    clock: DefaultClock,
    since_sweep: AtomicU32,
}

impl RateLimiter {
    /// Bounds the requests of each token a second; `None` for 0, which is no bound.
    pub fn new(requests_per_second: u32) -> Option<Self> {
        let quota = Quota::per_second(NonZeroU32::new(requests_per_second)?);
        Some(Self {
            limiter: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            since_sweep: AtomicU32::new(0),
        })
    }

    /// Counts a request.
    ///
    /// # Errors
    /// [`ApiError::TooManyRequests`] where the token is used too often.
    pub fn admit(&self, token: TokenId) -> Result<(), ApiError> {
        if self.since_sweep.fetch_add(1, Ordering::Relaxed) >= SWEEP_EVERY {
            self.since_sweep.store(0, Ordering::Relaxed);
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
