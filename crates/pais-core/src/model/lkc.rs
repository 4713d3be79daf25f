//! LKC-privacy and k^m-anonymity.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

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
