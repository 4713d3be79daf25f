//! The errors of the libraries as problems, with the code of each kind.

use pais_anonymize::RunError;
use pais_core::definition::{DocumentErrorKind, JobErrorKind};
use pais_core::rejection::Rejection;
use pais_core::risk::RiskError;
use pais_core::schema::SchemaErrorKind;
use pais_core::table::ReadErrorKind;
use pais_io::hierarchy::HierarchyErrorKind;
use pais_io::read::TextFormatError;

use super::{Code, Problem};

impl<K: Into<Code>> From<Rejection<K>> for Problem {
    fn from(rejection: Rejection<K>) -> Self {
        Self {
            errors_by_column: rejection.faults_by_column,
            ..Self::with(rejection.kind.into(), rejection.detail, rejection.faults)
        }
    }
}

impl From<DocumentErrorKind> for Code {
    fn from(kind: DocumentErrorKind) -> Self {
        match kind {
            DocumentErrorKind::Syntax => Self::MalformedJson,
            DocumentErrorKind::Text => Self::MalformedBody,
            DocumentErrorKind::Shape => Self::InvalidShape,
            DocumentErrorKind::Range => Self::InvalidValue,
        }
    }
}

impl Problem {
    /// Why the `format` that a dataset declares is refused.
    pub fn of_declared_format(error: &TextFormatError) -> Self {
        match error.parameter() {
            Some(name) => Self::at(
                Code::InvalidShape,
                format!("/format/{name}"),
                error.to_string(),
            ),
            None => Self::at(Code::InvalidValue, "/format", error.to_string()),
        }
    }
}

impl From<JobErrorKind> for Code {
    fn from(kind: JobErrorKind) -> Self {
        match kind {
            JobErrorKind::Shape => Self::InvalidShape,
            JobErrorKind::OutOfRange => Self::InvalidPrivacy,
            JobErrorKind::InvalidValue => Self::InvalidValue,
            JobErrorKind::Unfit => Self::InvalidJob,
            JobErrorKind::LimitExceeded => Self::LimitExceeded,
            JobErrorKind::UnchangedKey => Self::UnchangedKey,
        }
    }
}

impl From<SchemaErrorKind> for Code {
    fn from(kind: SchemaErrorKind) -> Self {
        match kind {
            SchemaErrorKind::UnknownTaxonomy => Self::NotFound,
            SchemaErrorKind::Taxonomy => Self::InvalidTaxonomy,
            SchemaErrorKind::Columns => Self::InvalidSchema,
        }
    }
}

impl From<HierarchyErrorKind> for Code {
    fn from(kind: HierarchyErrorKind) -> Self {
        match kind {
            HierarchyErrorKind::Malformed => Self::MalformedBody,
            HierarchyErrorKind::Tree => Self::InvalidTaxonomy,
        }
    }
}

impl From<ReadErrorKind> for Code {
    fn from(kind: ReadErrorKind) -> Self {
        match kind {
            ReadErrorKind::Malformed => Self::MalformedBody,
            ReadErrorKind::Header => Self::InvalidHeader,
            ReadErrorKind::Cells => Self::InvalidCells,
            ReadErrorKind::Empty => Self::EmptySubmission,
            ReadErrorKind::TooLarge => Self::TooLarge,
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let detail = error.to_string();
        match error {
            RunError::Job(error) => error.into(),
            RunError::NotAnonymizable { faults, .. } => {
                Self::with(Code::NotAnonymizable, detail, faults)
            }
            RunError::NoSuchStep { .. } => Self::at(Code::NoSuchStep, "/step", detail),
            // The reason can quote labels and intervals, which can be raw values.
            RunError::NotVerified { .. } => Self::new(Code::VerificationFailed, NOT_VERIFIED),
            RunError::Internal { reason } => {
                Self::new(Code::Internal, format!("{INTERNAL}. What failed: {reason}"))
            }
            RunError::NotCounted { .. } => Self::new(Code::ExecutorUnavailable, detail),
            RunError::Cancelled => Self::new(Code::Cancelled, detail),
        }
    }
}

impl From<RiskError> for Problem {
    fn from(error: RiskError) -> Self {
        let code = match error {
            RiskError::TooMuchWork { .. } => Code::LimitExceeded,
            RiskError::Hierarchy(_) => Code::InvalidTaxonomy,
            RiskError::Cancelled => Code::Cancelled,
        };
        Self::new(code, error.to_string())
    }
}

/// The detail of `verification_failed`.
pub const NOT_VERIFIED: &str = "the verifier did not accept the table, and nothing was released; \
     this is a fault of the program: please report it with the job's definition";

/// The detail of a fault in the libraries.
const INTERNAL: &str = "the run failed by a fault of the program or of the system that it runs on; \
     please report it with the job's definition";

#[cfg(test)]
mod tests {
    use pais_anonymize::RunError;

    use crate::problem::{Code, Problem};

    #[test]
    fn a_table_that_is_not_verified_is_reported_without_its_labels() {
        let reason = "the label \"zz-secret-zz\" is not an ancestor".to_owned();
        let problem = Problem::from(RunError::NotVerified { reason });
        assert_eq!(problem.code, Code::VerificationFailed);
        let document = serde_json::to_string(&problem.document()).unwrap();
        assert!(!document.contains("secret"), "{document}");
    }

    #[test]
    fn a_fault_of_the_program_says_what_failed() {
        let reason = "there is no table";
        let problem = Problem::from(RunError::Internal { reason });
        assert_eq!(problem.code, Code::Internal);
        assert!(problem.to_string().contains(reason), "{problem}");
    }
}
