//! Limits on the requests of a token, and on requests with refused tokens from one address.
//!
//! Only refusals by the database count. An address over its limit gets no answer from the database until some
//! time has passed, except for tokens that were accepted recently: clients behind one proxy share an address,
//! and one of them must not lock out the others.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::ids::TokenId;

use super::connections::ClientAddress;
use super::error::ApiError;

/// Number of requests, or of refusals, after which tokens and addresses that are not in use are
/// forgotten.
const CLEANUP_INTERVAL: u32 = 1_024;

/// Counts events by key, and forgets keys that are not in use.
struct KeyedLimiter<K: Clone + Eq + Hash> {
    limiter: DefaultKeyedRateLimiter<K>,
    clock: DefaultClock,
    since_cleanup: AtomicU32,
}

impl<K: Clone + Eq + Hash> KeyedLimiter<K> {
    fn new(quota: Quota) -> Self {
        Self {
            limiter: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            since_cleanup: AtomicU32::new(0),
        }
    }

    /// Counts an event. If there are too many: the time until the next is admitted.
    fn count(&self, key: &K) -> Result<(), Duration> {
        if self.since_cleanup.fetch_add(1, Ordering::Relaxed) >= CLEANUP_INTERVAL {
            self.since_cleanup.store(0, Ordering::Relaxed);
            self.limiter.retain_recent();
        }
        let counted = self.limiter.check_key(key);
        counted.map_err(|over| over.wait_time_from(self.clock.now()))
    }
}

/// Admits a number of requests of each token per second, and the same number at once after a pause.
pub struct RateLimiter(KeyedLimiter<TokenId>);

impl RateLimiter {
    /// Creates a limiter; `None` for 0, which means no limit.
    pub fn new(requests_per_second: u32) -> Option<Self> {
        let quota = Quota::per_second(NonZeroU32::new(requests_per_second)?);
        Some(Self(KeyedLimiter::new(quota)))
    }

    /// Counts a request of a token.
    ///
    /// # Errors
    /// [`ApiError::TooManyRequests`] if the token is over its limit.
    pub(crate) fn admit(&self, token: TokenId) -> Result<(), ApiError> {
        let reason = "this token has too many requests per second (limits.requests_per_second)";
        self.0.count(&token).map_err(|wait| too_many(reason, wait))
    }
}

/// How long an accepted token is remembered.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// Number of accepted tokens that are remembered. A further one is checked like an unknown one.
const MAX_REMEMBERED: usize = 10_000;

/// Counts refused tokens for each address.
pub struct RefusedTokens {
    limiter: KeyedLimiter<ClientAddress>,
    /// Until when an address is over its limit.
    blocked: Mutex<HashMap<ClientAddress, Instant>>,
    /// Until when a token is remembered, by its SHA-256.
    accepted: Mutex<HashMap<[u8; 32], Instant>>,
}

impl RefusedTokens {
    /// Permits this number of refused tokens per minute for each address; `None` for 0.
    pub fn new(per_minute: u32) -> Option<Self> {
        let quota = Quota::per_minute(NonZeroU32::new(per_minute)?);
        Some(Self {
            limiter: KeyedLimiter::new(quota),
            blocked: Mutex::default(),
            accepted: Mutex::default(),
        })
    }

    /// Whether a token from this address is to be checked.
    ///
    /// # Errors
    /// [`ApiError::TooManyRequests`] if not.
    pub(crate) fn admit(&self, address: ClientAddress, token: &str) -> Result<(), ApiError> {
        let now = Instant::now();
        let until = self.blocked.lock().get(&address).copied();
        let Some(wait) = until.and_then(|until| until.checked_duration_since(now)) else {
            return Ok(());
        };
        let known_until = self.accepted.lock().get(&digest(token)).copied();
        match known_until {
            Some(until) if until > now => Ok(()),
            _ => Err(too_many(
                "this address has sent too many refused tokens (limits.refused_tokens_per_minute)",
                wait,
            )),
        }
    }

    /// Remembers a token that was accepted.
    pub(crate) fn accepted(&self, token: &str) {
        let now = Instant::now();
        let mut accepted = self.accepted.lock();
        if accepted.len() >= MAX_REMEMBERED {
            accepted.retain(|_, until| *until > now);
        }
        if accepted.len() < MAX_REMEMBERED {
            accepted.insert(digest(token), now + REMEMBERED);
        }
    }

    /// Counts a token that was refused, and forgets it.
    pub(crate) fn refused(&self, address: ClientAddress, token: &str) {
        self.accepted.lock().remove(&digest(token));
        if let Err(wait) = self.limiter.count(&address) {
            let now = Instant::now();
            let mut blocked = self.blocked.lock();
            blocked.retain(|_, until| *until > now);
            blocked.insert(address, now + wait);
        }
    }
}

fn too_many(reason: &'static str, wait: Duration) -> ApiError {
    ApiError::TooManyRequests {
        reason,
        retry_after: wait.as_secs_f64().ceil().max(1.0) as u64,
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::{ApiError, ClientAddress, RefusedTokens};

    fn address(last: u8) -> ClientAddress {
        ClientAddress::from(SocketAddr::from(([192, 0, 2, last], 1)))
    }

    #[test]
    fn only_refusals_count_and_only_for_their_address() {
        let tokens = RefusedTokens::new(2).unwrap();
        for _ in 0..10 {
            tokens.accepted("known");
            assert!(tokens.admit(address(1), "known").is_ok());
        }
        for _ in 0..3 {
            assert!(tokens.admit(address(1), "wrong").is_ok());
            tokens.refused(address(1), "wrong");
        }
        let refused = tokens.admit(address(1), "another").unwrap_err();
        let ApiError::TooManyRequests { retry_after, .. } = refused else {
            panic!("{refused}");
        };
        assert!((1..=30).contains(&retry_after), "{retry_after}");
        assert!(tokens.admit(address(1), "known").is_ok());
        assert!(tokens.admit(address(2), "wrong").is_ok());
        // Revoked meanwhile.
        tokens.refused(address(1), "known");
        assert!(tokens.admit(address(1), "known").is_err());
    }
}
