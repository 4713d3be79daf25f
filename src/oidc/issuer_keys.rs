//! The public keys of an issuer: fetched, cached, and fetched again when they are rotated.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use axum::http::Uri;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use tokio::task::JoinHandle;

use super::Refusal;

/// Keys of this age are fetched again when they are used.
const REFRESH: time::Duration = time::Duration::minutes(10);

/// Keys of this age are not used any more: the issuer may have withdrawn them.
const GREATEST_AGE: time::Duration = time::Duration::hours(1);

/// Shortest time between two requests to the issuer, so that tokens with unknown keys do not make
/// the service call it for each of them.
const PAUSE: time::Duration = time::Duration::seconds(10);

/// Longest time of a request to the issuer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest document of an issuer, in bytes.
const DOCUMENT_BYTES: u64 = 256 << 10;

/// Maximum number of keys of an issuer.
const MOST_KEYS: usize = 100;

/// The keys of an issuer. Clones share them.
#[derive(Clone)]
pub struct IssuerKeys(Arc<SharedKeys>);

struct SharedKeys {
    issuer: String,
    agent: ureq::Agent,
    cache: Mutex<Cache>,
    /// Held while the issuer is queried, so that it is queried once.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Cache {
    keys: Option<(JwkSet, OffsetDateTime)>,
    tried_at: Option<OffsetDateTime>,
}

/// The discovery document of an issuer (OpenID Connect Discovery 1.0, Section 4).
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl IssuerKeys {
    /// The keys of an issuer, which are fetched when the first one is requested.
    pub(crate) fn new(issuer: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .build();
        Self(Arc::new(SharedKeys {
            issuer: issuer.to_owned(),
            agent: config.into(),
            cache: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }))
    }

    /// The key with this id, or the only key if a token names none. A known key is returned at once, and
    /// fetched again in the background when it is due.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if the issuer has no such key; [`Refusal::Unavailable`] if it cannot be reached,
    /// and the keys fetched before are too old.
    pub async fn find(&self, id: Option<&str>, now: OffsetDateTime) -> Result<Jwk, Refusal> {
        if let Some((Some(key), age)) = self.0.known(id, now)
            && age < GREATEST_AGE
        {
            if age >= REFRESH {
                self.begin_refresh(now);
            }
            return Ok(key);
        }
        // A panic of the task is a refresh that failed.
        let _ = self.begin_refresh(now).await;
        match self.0.known(id, now) {
            Some((key, age)) if age < GREATEST_AGE => key.ok_or(Refusal::Invalid),
            _ => Err(Refusal::Unavailable),
        }
    }

    /// Fetches the keys in a task of its own, which a client that leaves does not end: else each request of such
    /// clients would call the issuer.
    fn begin_refresh(&self, now: OffsetDateTime) -> JoinHandle<()> {
        let shared = self.0.clone();
        tokio::spawn(async move { shared.refresh(now).await })
    }
}

impl SharedKeys {
    /// The key with this id, or the only one, and the age of the fetched keys; `None` before the first fetch.
    fn known(
        &self,
        id: Option<&str>,
        now: OffsetDateTime,
    ) -> Option<(Option<Jwk>, time::Duration)> {
        let cache = self.cache.lock();
        let (keys, fetched) = cache.keys.as_ref()?;
        let key = match (id, &*keys.keys) {
            (Some(id), _) => keys.find(id).cloned(),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        };
        Some((key, now - *fetched))
    }

    /// Fetches the keys, unless that was just tried.
    async fn refresh(&self, now: OffsetDateTime) {
        let _guard = self.fetching.lock().await;
        let tried_at = self.cache.lock().tried_at;
        if tried_at.is_some_and(|tried| now - tried < PAUSE) {
            return;
        }
        let fetched = self.fetch().await;
        let mut cache = self.cache.lock();
        cache.tried_at = Some(now);
        match fetched {
            Ok(keys) => cache.keys = Some((keys, now)),
            Err(error) => tracing::warn!(
                error = &*error as &dyn std::error::Error,
                "the keys of the OIDC issuer could not be fetched"
            ),
        }
    }

    async fn fetch(&self) -> anyhow::Result<JwkSet> {
        let (agent, issuer) = (self.agent.clone(), self.issuer.clone());
        let fetched = tokio::task::spawn_blocking(move || {
            let base = issuer.trim_end_matches('/');
            let address = format!("{base}/.well-known/openid-configuration");
            let discovery: Discovery = get(&agent, &address)?;
            ensure!(
                discovery.issuer == issuer,
                "the discovery document is of another issuer"
            );
            let keys: JwkSet = get(&agent, &discovery.jwks_uri)?;
            let number = keys.keys.len();
            ensure!(number <= MOST_KEYS, "there are more than {MOST_KEYS} keys");
            Ok(keys)
        });
        fetched.await?
    }
}

/// Whether an address is encrypted, or stays on the machine; and has no user information, behind which
/// another host can be hidden.
pub fn is_safe_address(address: &str) -> bool {
    let Ok(address) = address.parse::<Uri>() else {
        return false;
    };
    let has_user = address
        .authority()
        .is_none_or(|it| it.as_str().contains('@'));
    let is_local = matches!(address.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    match address.scheme_str() {
        Some("https") => !has_user,
        Some("http") => !has_user && is_local,
        _ => false,
    }
}

fn get<T: DeserializeOwned>(agent: &ureq::Agent, address: &str) -> anyhow::Result<T> {
    ensure!(
        is_safe_address(address),
        "the address of the keys is neither https nor on this machine, or has user information"
    );
    let mut response = agent.get(address).call()?;
    let body = response.body_mut().with_config().limit(DOCUMENT_BYTES);
    let document = serde_json::from_slice(&body.read_to_vec()?);
    document.context("the document is not of the documented form")
}

#[cfg(test)]
mod tests {
    use super::is_safe_address;

    #[test]
    fn an_address_is_encrypted_or_local_and_hides_no_host() {
        for safe in [
            "https://issuer.example/keys",
            "https://issuer.example:8443",
            "http://127.0.0.1:8080/keys",
            "http://localhost:8080",
            "http://[::1]:8080/a",
        ] {
            assert!(is_safe_address(safe), "{safe}");
        }
        for unsafe_address in [
            "http://issuer.example/keys",
            "http://localhost:80@issuer.example/keys",
            "http://127.0.0.1:x@issuer.example/",
            "https://pais:secret@issuer.example/keys",
            "https://@issuer.example/keys",
            "file:///etc/passwd",
            "localhost:8080",
            "",
        ] {
            assert!(!is_safe_address(unsafe_address), "{unsafe_address}");
        }
    }
}
