//! What was found about qids: the worst figures by length, the numbers of qids by size and by confidence, and
//! the classes below *K*.

use super::buckets::{Buckets, CONFIDENCE_BUCKETS, SIZE_BUCKETS, confidence_bucket, size_bucket};
use super::classes_of_table::TableClasses;
use crate::profiles::Share;

/// The worst figures of some qids.
#[derive(Clone, Copy)]
pub(super) struct QidFigures {
    /// The least size.
    pub(super) size: u32,
    /// The greatest confidence.
    pub(super) greatest: Share,
}

impl QidFigures {
    /// The figures of no qids.
    pub(super) const NONE: Self = Self {
        size: u32::MAX,
        greatest: Share::NONE,
    };

    fn worst(self, other: Self) -> Self {
        Self {
            size: self.size.min(other.size),
            greatest: self.greatest.max(other.greatest),
        }
    }
}

/// What was found of all qids up to each length.
pub(super) struct FoundLengths {
    pub(super) qids: MeasuredQids,
    /// By class, the least length at which it is below *K*.
    pub(super) below_from: Vec<u8>,
}

/// The figures of some qids.
pub(super) struct MeasuredQids {
    /// By length minus 1.
    pub(super) by_length: Vec<QidFigures>,
    sizes: [u64; SIZE_BUCKETS],
    confidences: [u64; CONFIDENCE_BUCKETS],
}

impl MeasuredQids {
    /// None yet.
    pub(super) fn new(lengths: usize) -> Self {
        Self {
            by_length: vec![QidFigures::NONE; lengths],
            sizes: [0; SIZE_BUCKETS],
            confidences: [0; CONFIDENCE_BUCKETS],
        }
    }

    /// Notes a qid of this length.
    pub(super) fn note(&mut self, length: usize, figures: QidFigures) {
        self.by_length[length - 1] = self.by_length[length - 1].worst(figures);
    }

    /// Counts qids with the same figures.
    pub(super) fn count(&mut self, QidFigures { size, greatest }: QidFigures, qids: u64) {
        let count = &mut self.sizes[size_bucket(size)];
        *count = count.saturating_add(qids);
        let count = &mut self.confidences[confidence_bucket(greatest)];
        *count = count.saturating_add(qids);
    }

    /// Adds other qids.
    pub(super) fn merge(&mut self, other: &Self) {
        for (one, other) in self.by_length.iter_mut().zip(&other.by_length) {
            *one = one.worst(*other);
        }
        let counts = self.sizes.iter_mut().zip(other.sizes);
        let confidences = self.confidences.iter_mut().zip(other.confidences);
        for (one, other) in counts.chain(confidences) {
            *one = one.saturating_add(other);
        }
    }

    /// The worst figures of the qids of at most this length.
    pub(super) fn up_to(&self, length: usize) -> QidFigures {
        let figures = self.by_length.iter().take(length.max(1)).copied();
        figures.fold(QidFigures::NONE, QidFigures::worst)
    }
}

impl FoundLengths {
    /// Adds what was found of other qids of the same classes.
    pub(super) fn merge(mut self, other: &Self) -> Self {
        self.qids.merge(&other.qids);
        for (one, other) in self.below_from.iter_mut().zip(&other.below_from) {
            *one = (*one).min(*other);
        }
        self
    }

    /// Whether longer qids add nothing to what was found: one class, which is the group of a longest qid, has
    /// the smallest size, one has the greatest confidence, and none is below *K*.
    pub(super) fn is_final(&self, classes: &TableClasses, k: u64) -> bool {
        let found = self.up_to(self.qids.by_length.len());
        let smallest = classes.smallest();
        // Persons of a class are no more than its records, and are not looked up here.
        classes.persons.is_none()
            && u64::from(smallest) >= k
            && found.size == smallest
            && !classes.greatest_confidence().exceeds(found.greatest)
    }

    /// The worst figures of the qids of at most this length.
    pub(super) fn up_to(&self, length: usize) -> QidFigures {
        self.qids.up_to(length)
    }

    /// The classes that have a qid of at most this length below *K*.
    pub(super) fn below_k(&self, length: usize) -> Vec<u32> {
        let classes = (0u32..).zip(&self.below_from);
        let below = classes.filter(|(_, from)| usize::from(**from) <= length.max(1));
        below.map(|(class, _)| class).collect()
    }

    /// The distributions over the qids that were counted.
    pub(super) fn buckets(&self) -> Buckets {
        Buckets::new(&self.qids.sizes, &self.qids.confidences)
    }
}
