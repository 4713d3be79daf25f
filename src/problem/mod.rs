//! Problem documents (RFC 9457) and the table of error codes.
//!
//! A problem is what a user reads, over HTTP and on the command line. It says where the error is and
//! what to do, and never contains the value of a raw cell.

mod codes;
mod from_libraries;

use std::collections::BTreeMap;

use pais_core::definition::json;
use pais_core::rejection::{Fault, Place};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use codes::Code;
pub use from_libraries::NOT_VERIFIED;

/// A problem: a code, a sentence, and the faults that cause it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code.
    pub code: Code,
    /// What happened and what to do.
    pub detail: String,
    /// The faults with their places. Empty if the problem has no place.
    pub errors: Vec<Fault>,
    /// The number of all faults of a file by column.
    pub errors_by_column: BTreeMap<String, u64>,
}

impl Problem {
    /// A problem without places.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::with(code, detail, Vec::new())
    }

    /// A problem at one place of the JSON body.
    pub fn at(code: Code, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::with(code, detail.clone(), vec![Fault::at(pointer, detail)])
    }

    /// A problem with the faults that cause it.
    pub fn with(code: Code, detail: impl Into<String>, errors: Vec<Fault>) -> Self {
        Self {
            code,
            detail: detail.into(),
            errors,
            errors_by_column: BTreeMap::new(),
        }
    }

    /// The problem with other pointers, as of a part of another document.
    pub(crate) fn map_pointers(mut self, change: impl Fn(&str) -> String) -> Self {
        for fault in &mut self.errors {
            if let Place::Pointer(pointer) = &mut fault.place {
                *pointer = change(pointer);
            }
        }
        self
    }

    /// The problem with pointers to parts that a document has. Of what is missing, they name the innermost part
    /// that lacks it. Those of `unchanged_key` name the reasons to add: clients read the columns from them.
    pub(crate) fn within(self, document: &Value) -> Self {
        if self.code == Code::UnchangedKey {
            return self;
        }
        self.map_pointers(|pointer| json::part_of(pointer, document).to_owned())
    }

    /// The document of RFC 9457.
    pub fn document(&self) -> ProblemDocument {
        ProblemDocument {
            r#type: format!("/docs/errors#{}", self.code.as_str()),
            title: self.code.title().to_owned(),
            status: self.code.status(),
            detail: self.detail.clone(),
            code: self.code.as_str().to_owned(),
            errors: self.errors.iter().map(FaultDocument::from).collect(),
            errors_by_column: self.errors_by_column.clone(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}

/// One fault inside a document or a file: its place, its cause and its remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Fault)]
pub struct FaultDocument {
    /// RFC 6901 pointer into the JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Physical line on which the record starts, the header being line 1; the n-th record in
    /// NDJSON and Parquet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Name of the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What is wrong.
    pub detail: String,
    /// What would fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
}

impl From<&Fault> for FaultDocument {
    fn from(fault: &Fault) -> Self {
        Self {
            pointer: fault.pointer().map(str::to_owned),
            line: fault.line(),
            column: fault.column().map(str::to_owned),
            detail: fault.detail.clone(),
            suggested_fix: fault.suggested_fix.clone(),
        }
    }
}

/// The body of an `application/problem+json` answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemDocument {
    /// Where the code is explained, relative to the service.
    pub r#type: String,
    /// What the code means.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened and what to do.
    pub detail: String,
    /// The stable word.
    pub code: String,
    /// Where, when it is a matter of places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultDocument>,
    /// The number of faults of a refused file by column. `errors` lists only the first 20 faults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_column: BTreeMap<String, u64>,
}
