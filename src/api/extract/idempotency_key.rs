//! The `Idempotency-Key` header.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::api::error::ApiError;
use crate::api::state::AppState;
use crate::problem::Code;
use crate::service::idempotency::RequestKey;

/// Maximum length of a key, in bytes.
const KEY_BYTES: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
#[derive(Clone, Debug)]
pub struct IdempotencyKey(Option<String>);

impl IdempotencyKey {
    /// The key with the endpoint it was sent to: a method and a path, such as `POST /v1/jobs`.
    pub fn at(self, endpoint: impl Into<String>) -> Option<RequestKey> {
        let endpoint = endpoint.into();
        self.0.map(|key| RequestKey { endpoint, key })
    }
}

impl FromRequestParts<AppState> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(Self(None));
        };
        let key = value.to_str().ok().map(str::trim);
        match key.filter(|key| !key.is_empty() && key.len() <= KEY_BYTES) {
            Some(key) => Ok(Self(Some(key.to_owned()))),
            None => Err(ApiError::new(
                Code::InvalidParameter,
                "an `Idempotency-Key` must have 1 to 255 visible ASCII characters",
            )),
        }
    }
}
