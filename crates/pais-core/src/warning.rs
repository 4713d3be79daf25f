//! What a holder should know about a dataset, a job or a release that is not refused.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What a warning is about. A program can match it; its name never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// A listed sensitive value is in no row, so its bound has no effect.
    ListedValueAbsent,
    /// A sensitive column has no bound under the model.
    UnboundedSensitiveColumn,
    /// The outermost interval of a numeric column is its exact range.
    ExactRange,
    /// The values of a column that is released unchanged are distinct, or nearly so.
    NearlyUniqueColumn,
    /// Some values of a column that is released unchanged, or of two such columns together, are in
    /// one row only.
    SingledOutRows,
    /// A quasi-identifier has its topmost value in every row of the result.
    ColumnAtTop,
    /// The values of an identifier occur in several rows, so that a person may have several.
    RepeatedIdentifier,
    /// Subjects differ only in case, leading zeros or characters that are not shown.
    SimilarSubjects,
    /// Rows were suppressed to reach the bound on confidence, which shows that what is missing
    /// was sensitive.
    SuppressedForConfidence,
    /// The order of released rows is seeded, and no key of a dataset protects it.
    SeededOrder,
    /// The job does not say its recoding, and local recoding would lose much less detail.
    LocalLosesLess,
}

/// What a holder should know about a dataset, a job or a release that is not refused. It never
/// quotes the value of a cell.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// What is the case, and what to do.
    pub detail: String,
    /// RFC 6901 pointer into the document that causes it: the dataset's definition for a dataset,
    /// else the job; absent where no part of it is the cause.
    pub pointer: Option<String>,
}

impl Warning {
    /// A warning about a whole document.
    pub fn new(code: WarningCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            pointer: None,
        }
    }

    /// A warning about a place of a document.
    pub fn at(code: WarningCode, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            pointer: Some(pointer.into()),
            ..Self::new(code, detail)
        }
    }
}
