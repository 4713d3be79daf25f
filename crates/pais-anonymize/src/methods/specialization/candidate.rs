//! A candidate of a search.

use super::attribute::{ConceptId, ConceptSplit};
use super::score::SplitQueue;

/// A value of ∪Cut that may still be specialized.
pub(super) struct Candidate {
    pub(super) attribute: usize,
    pub(super) concept: ConceptId,
    pub(super) splits: SplitQueue,
    pub(super) split: ConceptSplit,
    pub(super) score: f64,
    /// Number of steps performed when the score was last summed over partitions; `None` if it never
    /// was.
    pub(super) scored_at: Option<usize>,
}
