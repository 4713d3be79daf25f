//! The reservation of idempotency keys for operations that create something.

use crate::db::idempotency::{self, KeyState, Reservation, StoredAnswer};
use crate::problem::Code;
use crate::roles::Caller;

use super::{ApiError, App};

/// The idempotency key of a request, with the endpoint that it belongs to.
#[derive(Clone, Debug)]
pub struct RequestKey {
    /// The endpoint: a method and a path, such as `POST /v1/jobs`.
    pub endpoint: String,
    /// The key that the client sent.
    pub key: String,
}

/// How to continue with a request.
pub(super) enum KeyedRequest {
    /// Process it. The reservation is `None` if the request has no key.
    New(Option<Reservation>),
    /// Repeat the answer to an earlier request with the same key.
    Repeated(StoredAnswer),
}

/// The error of a request whose key another running request holds.
pub(super) fn key_in_use() -> ApiError {
    ApiError::new(
        Code::IdempotencyKeyInUse,
        "a request with this `Idempotency-Key` is still running; try again when it has ended",
    )
}

/// Releases the reservation of a request that created nothing.
///
/// # Errors
/// When the database fails.
pub(super) async fn abandon(reservation: Option<Reservation>) -> Result<(), ApiError> {
    match reservation {
        Some(reservation) => Ok(reservation.abandon().await?),
        None => Ok(()),
    }
}

impl App {
    /// Reserves the key of a request, if it has one.
    ///
    /// # Errors
    /// `idempotency_key_in_use`; when the database fails.
    pub(super) async fn reserve(
        &self,
        caller: Caller,
        key: Option<&RequestKey>,
    ) -> Result<KeyedRequest, ApiError> {
        let Some(RequestKey { endpoint, key }) = key else {
            return Ok(KeyedRequest::New(None));
        };
        let (store, keys) = (&self.db, &self.keys);
        match idempotency::begin(store, keys, caller.organization, endpoint, key).await? {
            KeyState::Reserved(reservation) => Ok(KeyedRequest::New(Some(reservation))),
            KeyState::Answered(answer) => Ok(KeyedRequest::Repeated(answer)),
            KeyState::InUse => Err(key_in_use()),
        }
    }
}
