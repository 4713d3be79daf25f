//! Why a job is refused.

use crate::rejection::Rejection;

/// What is wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobErrorKind {
    /// A parameter is missing, of another model, or not of its type.
    Shape,
    /// A parameter of the privacy model is out of range.
    OutOfRange,
    /// Another value is out of range.
    InvalidValue,
    /// The job does not fit the columns of the dataset.
    Unfit,
    /// The work would exceed a limit.
    LimitExceeded,
}

/// Why a job is refused, with a pointer into it.
pub type JobError = Rejection<JobErrorKind>;
