//! What the verifier found in an accepted table.

use pais_verify::{GroupVerification, Verification};
use serde::Serialize;

/// What the verifier found in a table that it accepted.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Verdict {
    /// Of LKC-privacy, its special cases, or k^m-anonymity.
    Subsets(Verification),
    /// Of a model of groups.
    Groups(GroupVerification),
}

impl Verdict {
    /// Rows of the smallest group that an adversary of the model can know; 0 for an empty table.
    pub(crate) fn smallest_group(&self) -> u64 {
        match self {
            Self::Subsets(found) => found.smallest_group,
            Self::Groups(found) => found.smallest_group,
        }
    }

    /// Greatest confidence in a sensitive value.
    pub(crate) fn greatest_confidence(&self) -> f64 {
        match self {
            Self::Subsets(found) => found.greatest_confidence,
            Self::Groups(found) => found.greatest_confidence,
        }
    }
}
