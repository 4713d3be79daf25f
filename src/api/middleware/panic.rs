//! Handlers that panic.

use std::any::Any;

use axum::response::Response;

use crate::api::error::{internal_error, problem_response};

/// The response for a handler that panicked. The panic hook has logged where; the panic's own
/// message may contain a value, so it is neither logged nor sent.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    problem_response(&internal_error())
}
