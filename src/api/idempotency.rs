//! The `Idempotency-Key` header: a retried request gets the answer of the first.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::db::idempotency::{self, IdempotentAnswer, KeyState, Reservation, StoredAnswer};
use crate::problem::Code;

use super::error::{ApiError, internal_error, problem_response};
use super::state::{AppState, CallerApp};

/// Maximum length of a key, in bytes.
const KEY_BYTES: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey(Option<String>);

impl FromRequestParts<AppState> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(Self(None));
        };
        let key = value.to_str().ok().map(str::trim);
        let is_key = |key: &&str| {
            (1..=KEY_BYTES).contains(&key.len())
                && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        match key.filter(is_key) {
            Some(key) => Ok(Self(Some(key.to_owned()))),
            None => Err(ApiError::new(
                Code::InvalidParameter,
                "an `Idempotency-Key` must have 1 to 255 printable ASCII characters",
            )),
        }
    }
}

/// How to continue with a request.
pub(crate) enum KeyedRequest {
    /// Process it. The reservation is `None` if the request has no key.
    New(Option<Reservation>),
    /// Repeat the answer to an earlier request with the same key.
    Repeated(StoredAnswer),
}

/// The error of a request whose key another running request holds.
pub(crate) fn key_in_use() -> ApiError {
    ApiError::new(
        Code::IdempotencyKeyInUse,
        "a request with this `Idempotency-Key` is still running; try again when it has ended",
    )
}

/// The answer to the earlier request with the same key.
///
/// # Errors
/// `idempotency_key_reused` if that request had another body.
pub(crate) fn replay(
    stored: StoredAnswer,
    body_sha256: &[u8],
) -> Result<IdempotentAnswer, ApiError> {
    stored.replay(body_sha256).ok_or_else(|| {
        ApiError::new(
            Code::IdempotencyKeyReused,
            "this `Idempotency-Key` was used with another body, or another `?replaces=`; use a new \
             key for a new request",
        )
    })
}

/// Releases the reservation of a request that created nothing.
///
/// # Errors
/// When the database fails.
pub(crate) async fn abandon(reservation: Option<Reservation>) -> Result<(), ApiError> {
    match reservation {
        Some(reservation) => Ok(reservation.abandon().await?),
        None => Ok(()),
    }
}

impl CallerApp {
    /// Reserves the key of a request, if it has one. `endpoint` is its method and path, such as `POST
    /// /v1/jobs`.
    ///
    /// # Errors
    /// `idempotency_key_in_use`; when the database fails.
    pub(crate) async fn reserve(
        &self,
        endpoint: &str,
        key: &IdempotencyKey,
    ) -> Result<KeyedRequest, ApiError> {
        let Some(key) = &key.0 else {
            return Ok(KeyedRequest::New(None));
        };
        let (store, keys) = (&self.db, &self.keys);
        match idempotency::begin(store, keys, self.caller.organization, endpoint, key).await? {
            KeyState::Reserved(reservation) => Ok(KeyedRequest::New(Some(reservation))),
            KeyState::Answered(answer) => Ok(KeyedRequest::Repeated(answer)),
            KeyState::InUse => Err(key_in_use()),
        }
    }
}

/// An answer with a path and a document, to be stored under an idempotency key.
///
/// # Errors
/// When the document cannot be written as JSON.
pub(crate) fn idempotent_answer(
    status: StatusCode,
    path: String,
    document: &impl Serialize,
) -> Result<IdempotentAnswer, serde_json::Error> {
    Ok(IdempotentAnswer {
        status: status.as_u16(),
        headers: BTreeMap::from([
            ("content-type".to_owned(), "application/json".to_owned()),
            ("location".to_owned(), path),
        ]),
        body: serde_json::to_vec(document)?,
    })
}

impl IntoResponse for IdempotentAnswer {
    fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response
            .body(Body::from(self.body))
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a stored answer is not a valid response");
                problem_response(&internal_error())
            })
    }
}
