//! Errors as `application/problem+json`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::{Code, Problem};
use crate::store::StoreError;
use crate::store::seal::SealError;
use crate::worker::WorkError;

/// The media type of RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What a handler answers when it cannot answer what was asked.
#[derive(Debug)]
pub enum ApiError {
    /// The client's matter: told as it is.
    Problem(Problem),
    /// The token is used too often: told with the seconds to wait.
    TooManyRequests {
        /// Whole seconds after which the next request is admitted.
        retry_after: u64,
    },
    /// Ours: logged, and told without its cause.
    Store(StoreError),
}

impl ApiError {
    /// A problem without places.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::Problem(Problem::new(code, detail))
    }

    /// The one answer for what does not exist and for what belongs to another.
    pub fn not_found() -> Self {
        Self::new(
            Code::NotFound,
            "there is nothing here for this token; check the id",
        )
    }
}

impl<E: Into<Problem>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<WorkError> for ApiError {
    fn from(failure: WorkError) -> Self {
        match failure {
            WorkError::Problem(problem) => Self::Problem(problem),
            WorkError::Store(error) => Self::Store(error),
            WorkError::Panicked => {
                tracing::error!("work on a table ended in a panic");
                Self::new(
                    Code::Internal,
                    "something went wrong on our side; the log has it under this request's id",
                )
            }
        }
    }
}

impl From<SealError> for ApiError {
    fn from(error: SealError) -> Self {
        Self::Store(error.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::Problem(problem) => problem,
            Self::TooManyRequests { retry_after } => {
                let problem = Problem::new(
                    Code::TooManyRequests,
                    format!("this token is used too often; try again in {retry_after} s"),
                );
                let mut response = problem_response(&problem);
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
                return response;
            }
            Self::Store(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the store failed");
                if error.is_unreachable() {
                    Problem::new(
                        Code::Unavailable,
                        "the database cannot be reached; try again",
                    )
                } else {
                    Problem::new(
                        Code::Internal,
                        "something went wrong on our side; the log has it under this request's id",
                    )
                }
            }
        };
        problem_response(&problem)
    }
}

/// The answer for a problem.
pub fn problem_response(problem: &Problem) -> Response {
    let status =
        StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(&problem.document()).unwrap_or_default();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if problem.code == Code::Unavailable {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
