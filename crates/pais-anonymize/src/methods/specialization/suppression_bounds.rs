//! What trials of earlier steps say of a specialization that is tried again.
//!
//! Both bounds hold for the same split of the same value in all later states. Let *R* be the rows
//! that remain after a trial that suppresses only for *K*: the largest set of rows, without those
//! suppressed before, in which each group is empty or has *K* persons. Later the other values of the
//! cut are the same or finer, and more rows are suppressed. Each group of the former state is a
//! union of later groups, so the later *R* also is such a set in the former state, and thus
//! part of the former *R*. Hence the rows suppressed before the trial and in it never decrease in
//! total. A trial that is given up has suppressed some of these rows, which bounds the total too.
//! Rows that are suppressed for *C* as well only add to them.
//!
//! The scores over partitions never increase: they are sums over partitions of products of the
//! sizes of parts, and refining a partition or suppressing its rows does not increase its term.

use rustc_hash::FxHashMap;

use super::attribute::{ConceptId, ConceptSplit};

/// A split of a value: the attribute, the concept and the end of the first child's codes. The
/// children of a node are given, and those of an interval have one border.
pub(super) type SplitKey = (usize, ConceptId, u32);

/// Bounds of one split.
#[derive(Clone, Copy)]
struct SplitBounds {
    suppressed: u64,
    score: f64,
}

/// The bounds by split.
#[derive(Default)]
pub(super) struct SuppressionBounds {
    by_split: FxHashMap<SplitKey, SplitBounds>,
}

impl SuppressionBounds {
    /// The key of a split of a concept.
    pub(super) fn key(attribute: usize, concept: ConceptId, split: &ConceptSplit) -> SplitKey {
        let first = split.children.first();
        (attribute, concept, first.map_or(0, |child| child.codes.end))
    }

    /// Records that after the specialization at least this many rows are suppressed in total, and
    /// its score.
    pub(super) fn record(&mut self, key: SplitKey, suppressed: u64, score: f64) {
        let bounds = self.by_split.entry(key).or_insert(SplitBounds {
            suppressed: 0,
            score,
        });
        bounds.suppressed = bounds.suppressed.max(suppressed);
        bounds.score = bounds.score.min(score);
    }

    /// The least number of rows that are suppressed in total after the specialization.
    pub(super) fn suppressed(&self, key: SplitKey) -> u64 {
        self.by_split
            .get(&key)
            .map_or(0, |bounds| bounds.suppressed)
    }

    /// The greatest score that it can have, if that is known.
    pub(super) fn score(&self, key: SplitKey) -> Option<f64> {
        self.by_split.get(&key).map(|bounds| bounds.score)
    }
}
