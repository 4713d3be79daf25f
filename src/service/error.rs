//! The errors of the service layer.

use crate::db::StoreError;
use crate::db::seal::SealError;
use crate::jobs::WorkError;
use crate::problem::{Code, Problem};

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request is refused. The client gets the problem as it is.
    #[error(transparent)]
    Problem(Problem),
    /// The database or the encryption failed. The client gets no details.
    #[error(transparent)]
    Store(StoreError),
    /// A thread that worked on a table panicked. The client gets no details.
    #[error("a thread that worked on a table panicked")]
    Panicked,
}

impl ServiceError {
    /// A problem without places.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::Problem(Problem::new(code, detail))
    }

    /// The one error both for what does not exist and for what belongs to another organization.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, NOTHING_HERE)
    }

    /// The error of a request without a token that works.
    pub fn unauthenticated() -> Self {
        Self::new(
            Code::Unauthenticated,
            "send `Authorization: Bearer <token>` with a token that is neither expired nor revoked",
        )
    }

    /// Like [`Self::not_found`], for an id in a JSON body.
    pub(super) fn not_found_at(pointer: &str) -> Self {
        Self::Problem(Problem::at(Code::NotFound, pointer, NOTHING_HERE))
    }

    /// The error of a request for the tables or the report of a withdrawn release.
    pub(super) fn withdrawn() -> Self {
        Self::new(
            Code::Withdrawn,
            "the release was withdrawn; `GET /v1/releases/{id}` has the reason and the time",
        )
    }

    /// The error of a request that comes in while the service stops.
    pub(super) fn stopping() -> Self {
        Self::new(Code::Unavailable, "the service is stopping")
    }
}

const NOTHING_HERE: &str = "there is nothing here for this token; check the id";

impl<E: Into<Problem>> From<E> for ServiceError {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SealError> for ServiceError {
    fn from(error: SealError) -> Self {
        Self::Store(error.into())
    }
}

impl From<WorkError> for ServiceError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Problem(problem) => Self::Problem(problem),
            WorkError::Store(error) => Self::Store(error),
            WorkError::Panicked => Self::Panicked,
        }
    }
}
