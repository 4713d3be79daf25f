//! LKC-privacy and k^m-anonymity.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use super::Confidence;

/// *L*, the most values of quasi-identifiers that an adversary knows (KDD'09, Definition 3.1).
pub type PriorKnowledge = NonZeroU32;

/// *K*, the fewest records that share what an adversary knows (KDD'09, Definition 3.1).
pub type MinimumAnonymity = NonZeroU64;

/// Sensitive column to its sensitive values.
pub type SensitiveValues = BTreeMap<String, Vec<String>>;

/// LKC-privacy (KDD'09, Definition 3.1) with its parameters in range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lkc {
    /// *L*; `None` is the number of quasi-identifiers.
    pub l: Option<PriorKnowledge>,
    /// *K*.
    pub k: MinimumAnonymity,
    /// *C*.
    pub c: Confidence,
    /// *S*; `None` is every value of every sensitive column.
    pub sensitive_values: Option<SensitiveValues>,
    /// How missing sensitive cells count.
    pub missing_sensitive: MissingSensitive,
}

/// How the missing cells of a sensitive column count in *P(s|qid)*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissingSensitive {
    /// The confidence in a value is its share among the rows of the group that have a value in
    /// its column: a missing cell protects nobody.
    #[default]
    Excluded,
    /// The confidence in a value is its share among all rows of the group, the literal reading of
    /// Definition 3.1.
    Counted,
}

impl Lkc {
    /// Whether every table meets the model: *K* = 1 and *C* = 1.
    pub fn asks_nothing(&self) -> bool {
        self.k == MinimumAnonymity::MIN && self.c.is_unbounded()
    }
}

/// k^m-anonymity (Terrovitis, Mamoulis, Kalnis: VLDB 2008; 2014 paper, Section 2) with its
/// parameters in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmAnonymity {
    /// Fewest records that hold what is known.
    pub k: MinimumAnonymity,
    /// Most items that are known of a record.
    pub m: NonZeroU32,
}
