//! Errors as `application/problem+json` (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::{Code, Problem};
use crate::service::ServiceError;

/// The media type of RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The error of a handler.
#[derive(Debug)]
pub enum ApiError {
    /// The error of the operation. Only a problem is sent to the client as it is; the cause of any
    /// other error is logged.
    Service(ServiceError),
    /// The token has used up its requests.
    TooManyRequests {
        /// Seconds until the next request is admitted.
        retry_after: u64,
    },
    /// The address has sent too many refused tokens.
    TooManyRefusedTokens {
        /// Seconds until the next token is checked.
        retry_after: u64,
    },
}

impl ApiError {
    /// A problem without places.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::Service(ServiceError::new(code, detail))
    }
}

impl<E: Into<ServiceError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self::Service(error.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Service(error) => problem_response(&problem(error)),
            Self::TooManyRequests { retry_after } => too_many(
                retry_after,
                "this token has too many requests per second (limits.requests_per_second)",
            ),
            Self::TooManyRefusedTokens { retry_after } => too_many(
                retry_after,
                "this address has sent too many refused tokens (limits.refused_tokens_per_minute)",
            ),
        }
    }
}

fn too_many(retry_after: u64, reason: &str) -> Response {
    let detail = format!("{reason}; try again in {retry_after} s");
    let mut response = problem_response(&Problem::new(Code::TooManyRequests, detail));
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    response
}

/// What the client gets for an error. The causes of errors that are not the client's are logged.
fn problem(error: ServiceError) -> Problem {
    match error {
        ServiceError::Problem(problem) => problem,
        ServiceError::Store(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the store failed");
            if error.is_storage_full() {
                Problem::new(
                    Code::StorageFull,
                    "the disk of the database is full; nothing was stored",
                )
            } else if error.is_unreachable() {
                Problem::new(
                    Code::Unavailable,
                    "the database cannot be reached; try again",
                )
            } else {
                internal_error()
            }
        }
        error @ ServiceError::Panicked => {
            tracing::error!(%error, "a request failed");
            internal_error()
        }
    }
}

/// Seconds after which a request that was refused for a passing reason is to be sent again.
fn retry_after(code: Code) -> Option<&'static str> {
    match code {
        Code::Unavailable | Code::Busy => Some("5"),
        Code::QuotaExceeded => Some("10"),
        Code::StorageFull => Some("60"),
        _ => None,
    }
}

/// The problem of an error in the service itself.
pub fn internal_error() -> Problem {
    Problem::new(
        Code::Internal,
        "internal error; the service's log has the details under this request's id",
    )
}

/// The response for a problem.
pub fn problem_response(problem: &Problem) -> Response {
    let status =
        StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(problem.document())).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = retry_after(problem.code) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
    }
    response
}
