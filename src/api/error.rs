//! Errors of handlers, as `application/problem+json` (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::db::StoreError;
use crate::engine::WorkError;
use crate::problem::{Code, Problem};
use pais_seal::SealError;

/// The media type of RFC 9457.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The request is refused. The client gets the problem as it is.
    #[error(transparent)]
    Problem(Problem),
    /// The database or the encryption failed. The client gets no details; the cause is logged.
    #[error(transparent)]
    Store(StoreError),
    /// A token has sent too many requests, or an address too many refused tokens.
    #[error("{reason}; try again in {retry_after} s")]
    TooManyRequests {
        /// What there are too many of, with the limit.
        reason: &'static str,
        /// Seconds until the next request is admitted.
        retry_after: u64,
    },
}

impl ApiError {
    /// A problem without places.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::Problem(Problem::new(code, detail))
    }

    /// The same error for what does not exist and for what belongs to another organization.
    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, NOTHING_HERE)
    }

    /// The error of a request without a valid token.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(
            Code::Unauthenticated,
            "send `Authorization: Bearer <token>` with a token that is neither expired nor revoked",
        )
    }

    /// Like [`Self::not_found`], for an id in a JSON body.
    pub(crate) fn not_found_at(pointer: &str) -> Self {
        Self::Problem(Problem::at(Code::NotFound, pointer, NOTHING_HERE))
    }

    /// The error of a request with parameters in its query, which pointers do not name.
    pub(crate) fn of_query(self) -> Self {
        match self {
            Self::Problem(problem) => Self::new(problem.code, problem.detail),
            other => other,
        }
    }

    /// The error of a request for the tables or the report of a withdrawn release.
    pub(crate) fn withdrawn() -> Self {
        Self::new(
            Code::Withdrawn,
            "the release was withdrawn; `GET /v1/releases/{id}` has the reason and the time",
        )
    }

    /// The error of a request whose work panicked. The client gets no details.
    pub(crate) fn panicked() -> Self {
        tracing::error!("a thread that worked for a request panicked");
        Self::Problem(internal_error())
    }

    /// The error of a request that arrives while the service stops.
    pub(crate) fn stopping() -> Self {
        Self::new(Code::Unavailable, "the service is stopping")
    }
}

const NOTHING_HERE: &str = "there is nothing here for this token; check the id";

/// `204 No Content`, or `not_found` if a statement found no row.
pub(crate) fn done(is_found: bool) -> Result<StatusCode, ApiError> {
    let done = is_found.then_some(StatusCode::NO_CONTENT);
    done.ok_or_else(ApiError::not_found)
}

impl<E: Into<Problem>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::BelowPolicy(problem) | StoreError::SubmissionReplaced(problem) => {
                (*problem).into()
            }
            StoreError::TokenEnded => Self::unauthenticated(),
            StoreError::Quota(exceeded) => Self::new(Code::QuotaExceeded, exceeded.to_string()),
            error => Self::Store(error),
        }
    }
}

impl From<SealError> for ApiError {
    fn from(error: SealError) -> Self {
        Self::Store(error.into())
    }
}

impl From<WorkError> for ApiError {
    fn from(error: WorkError) -> Self {
        match error {
            // The client is gone, or the service stops.
            WorkError::Problem(problem) if problem.code == Code::Cancelled => Self::stopping(),
            WorkError::Problem(problem) => Self::Problem(problem),
            WorkError::Store(error) => error.into(),
            WorkError::Panicked => Self::panicked(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match &self {
            Self::TooManyRequests { retry_after, .. } => {
                let problem = Problem::new(Code::TooManyRequests, self.to_string());
                let mut response = problem_response(&problem);
                let headers = response.headers_mut();
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after));
                response
            }
            Self::Problem(problem) => problem_response(problem),
            Self::Store(error) => problem_response(&store_problem(error)),
        }
    }
}

/// What the client gets when the database fails.
fn store_problem(error: &StoreError) -> Problem {
    tracing::error!(error = error as &dyn std::error::Error, "the store failed");
    if error.is_storage_full() {
        let detail = "the disk of the database is full; nothing was stored";
        Problem::new(Code::StorageFull, detail)
    } else if error.is_unreachable() {
        let detail = "the database cannot be reached; try again";
        Problem::new(Code::Unavailable, detail)
    } else {
        internal_error()
    }
}

/// Seconds after which to repeat a request that was refused for a temporary reason.
fn retry_after(code: Code) -> Option<&'static str> {
    match code {
        Code::Unavailable | Code::Busy => Some("5"),
        Code::QuotaExceeded => Some("10"),
        Code::StorageFull => Some("60"),
        _ => None,
    }
}

/// The problem of an error in the service itself.
pub(crate) fn internal_error() -> Problem {
    Problem::new(
        Code::Internal,
        "internal error; the service's log has the details under this request's id",
    )
}

/// The response for a problem.
pub(crate) fn problem_response(problem: &Problem) -> Response {
    let status =
        StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    metrics::counter!("pais_problems_total", "code" => problem.code.as_str()).increment(1);
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
