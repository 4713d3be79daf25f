//! The `Idempotency-Key` header, and the answers kept under it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::problem::Code;
use crate::store::idempotency::Answer;

use super::{ApiError, AppState};

const LONGEST: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
#[derive(Clone, Debug)]
pub struct IdempotencyKey(pub Option<String>);

impl FromRequestParts<AppState> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(Self(None));
        };
        let key = value.to_str().ok().map(str::trim);
        match key.filter(|key| !key.is_empty() && key.len() <= LONGEST) {
            Some(key) => Ok(Self(Some(key.to_owned()))),
            None => Err(ApiError::new(
                Code::InvalidParameter,
                "an `Idempotency-Key` has 1 to 255 visible ASCII characters",
            )),
        }
    }
}

impl ApiError {
    /// The refusal of a request whose key another request holds at this moment.
    pub fn key_in_use() -> Self {
        Self::new(
            Code::IdempotencyKeyInUse,
            "a request with this `Idempotency-Key` is under way; try again when it has ended",
        )
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, self.body).into_response();
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), HeaderValue::try_from(value))
            {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
