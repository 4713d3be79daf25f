//! What a search over groups of records shows each group to.

use super::profiles::{KnownValue, Share, ValueCount};

/// All qids of the greatest size that have one group.
pub(super) struct FoundQids {
    /// The values that select the group.
    pub(super) known: Vec<KnownValue>,
    /// Values of further attributes, which all records of the group have.
    pub(super) shared: Vec<KnownValue>,
    /// How many of `shared` each qid has in addition to `known`.
    pub(super) more: usize,
}

impl FoundQids {
    /// A single qid.
    pub(super) fn of(known: Vec<KnownValue>) -> Self {
        Self {
            known,
            shared: Vec::new(),
            more: 0,
        }
    }
}

/// Decides which groups the search explores, and receives the groups of complete qids.
pub(super) trait GroupVisitor {
    /// Whether [`Self::group`] needs the most frequent sensitive value also for a group that is
    /// relevant for its size alone.
    const NAMES_VALUES: bool;

    /// Only groups of fewer records, or persons, are relevant for their size.
    fn limit(&self) -> u64;

    /// Whether a group of `records` records is relevant for its size.
    #[inline]
    fn size_matters(&self, records: u32) -> bool {
        u64::from(records) < self.limit()
    }

    /// Whether a group with this greatest confidence is relevant for it. If false, it must also be
    /// false for a lower confidence.
    fn confidence_matters(&self, share: Share) -> bool;

    /// Receives the group of complete qids: its number of records, or persons, its most frequent
    /// sensitive value, and the qids.
    fn group(&mut self, size: u32, most: Option<ValueCount>, qids: impl FnOnce() -> FoundQids);

    /// Whether to stop the search.
    fn should_stop(&self) -> bool;
}
