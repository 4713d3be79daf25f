//! Why a run ends without a release.

use pais_core::cancellation::Stopped;
use pais_core::definition::{JobError, JobErrorKind};
use pais_core::rejection::Fault;
use thiserror::Error;

/// Why a run ends without a release.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The job does not fit the dataset, or its work exceeds a limit.
    #[error(transparent)]
    Job(#[from] JobError),
    /// No generalization of the table meets the privacy model.
    #[error("{detail}")]
    NotAnonymizable {
        /// The condition that cannot be met, and what would satisfy it.
        detail: String,
        /// The same with pointers into the job, one for each column where several fail.
        faults: Vec<Fault>,
    },
    /// The run has no such step.
    #[error("the job has no step {step}; {}", available(*.last))]
    NoSuchStep {
        /// The step that was asked for.
        step: u32,
        /// The last step of the run; `None` where the method has no steps.
        last: Option<u32>,
    },
    /// The verifier did not accept the finished table.
    #[error("the verifier did not accept the table, and nothing was released: {reason}")]
    NotVerified {
        /// What it found; no value of a cell.
        reason: String,
    },
    /// The engine that counts the rows failed, or its counts contradict the table, several times in a row.
    #[error("the rows could not be counted: {reason}")]
    NotCounted {
        /// What failed; no value of a cell.
        reason: String,
    },
    /// The observer asked to stop.
    #[error("the job was cancelled")]
    Cancelled,
    /// A fault of this library, or of the system it runs on.
    #[error("{reason}")]
    Internal {
        /// What failed; static, so that it has no value of a cell.
        reason: &'static str,
    },
}

impl From<Stopped> for RunError {
    fn from(_: Stopped) -> Self {
        Self::Cancelled
    }
}

fn available(last: Option<u32>) -> String {
    match last {
        Some(last) => format!("its steps are 0 to {last}"),
        None => "the method has no steps, leave `step` out".to_owned(),
    }
}

impl RunError {
    /// A condition that no generalization meets, with what would satisfy it.
    pub(crate) fn unmet(pointer: impl Into<String>, condition: &str, fix: String) -> Self {
        Self::NotAnonymizable {
            detail: format!("{condition}; {fix}"),
            faults: vec![Fault::at(pointer, condition).fix(fix)],
        }
    }

    /// A table smaller than *K*.
    fn fewer_rows_than_k(rows: u64, k: u64) -> Self {
        let condition = format!("the table has {rows} rows, fewer than the {k} that `k` asks for");
        let fix = format!("lower `k` to at most {rows}, or send more rows");
        Self::unmet("/privacy/k", &condition, fix)
    }

    /// Checks that a table has *K* persons, or rows where each row is a person of its own (`None`).
    ///
    /// # Errors
    /// With the greatest *K* that the table can meet.
    pub(crate) fn check_k(rows: u64, subjects: Option<u64>, k: u64) -> Result<(), Self> {
        match subjects {
            None if rows < k => Err(Self::fewer_rows_than_k(rows, k)),
            Some(subjects) if subjects < k => {
                let condition = format!(
                    "the table has rows of {subjects} persons, fewer than the {k} that `k` asks for"
                );
                Err(Self::too_few_subjects(subjects, &condition))
            }
            _ => Ok(()),
        }
    }

    /// A table with too few persons.
    pub(crate) fn too_few_subjects(subjects: u64, condition: &str) -> Self {
        let fix = format!("lower `k` to at most {subjects}, or send rows of more persons");
        Self::unmet("/privacy/k", condition, fix)
    }

    /// A limit that the work would exceed.
    pub(crate) fn limit_exceeded(detail: impl Into<String>) -> Self {
        JobError::new(JobErrorKind::LimitExceeded, detail).into()
    }

    /// A hierarchy that cannot be made from the values of its column.
    pub(crate) fn unmade_hierarchy(detail: String) -> Self {
        JobError::new(JobErrorKind::Unfit, detail).into()
    }

    /// A finished table that the verifier refuses.
    pub(crate) fn not_verified(reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::NotVerified { reason }
    }

    /// A fault of this library.
    pub(crate) fn internal(reason: &'static str) -> Self {
        Self::Internal { reason }
    }
}
