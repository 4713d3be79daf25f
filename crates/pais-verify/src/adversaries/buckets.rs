//! Counts of qids by their number of records, and by their confidence.

use serde::{Deserialize, Serialize};

use crate::profiles::Share;

/// Number of confidence ranges, which have equal widths.
pub(super) const CONFIDENCE_BUCKETS: usize = 10;

/// The qids that are matched by `from` to `to` records, or persons where there are subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QidSizes {
    /// Minimum number of records, inclusive.
    pub from: u64,
    /// Maximum number of records, inclusive.
    pub to: u64,
    /// Number of qids.
    pub qids: u64,
}

/// The qids whose greatest confidence is from `from` to below `to`; 1 is in the last range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QidConfidences {
    /// Lowest confidence, included.
    pub from: f64,
    /// Confidence that the range ends below.
    pub to: f64,
    /// Number of qids.
    pub qids: u64,
}

/// Both distributions, without empty entries.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    pub(super) sizes: Vec<QidSizes>,
    pub(super) confidences: Vec<QidConfidences>,
}

/// Number of the bucket of a size: they start at 1, 2, 5, 10, 20, 50, …, and each ends before the next start.
pub fn size_bucket(size: u32) -> usize {
    let decade = size.checked_ilog10().unwrap_or(0);
    let first = size / 10u32.pow(decade);
    let within = match first {
        0 | 1 => 0,
        2..=4 => 1,
        _ => 2,
    };
    decade as usize * 3 + within
}

/// Number of buckets of sizes of 32 bits.
pub const SIZE_BUCKETS: usize = 30;

/// The least and the greatest size of a bucket below [`SIZE_BUCKETS`].
pub fn sizes_of_bucket(bucket: usize) -> (u64, u64) {
    let start = |bucket: usize| [1, 2, 5][bucket % 3] * 10u64.pow((bucket / 3) as u32);
    (start(bucket), start(bucket + 1) - 1)
}

/// Number of the bucket of a confidence.
pub(super) fn confidence_bucket(Share { most, of }: Share) -> usize {
    let tenths = u64::from(most) * CONFIDENCE_BUCKETS as u64 / u64::from(of.max(1));
    (tenths as usize).min(CONFIDENCE_BUCKETS - 1)
}

impl Buckets {
    /// From numbers of qids in each bucket.
    pub(super) fn new(sizes: &[u64], confidences: &[u64]) -> Self {
        let sizes = sizes.iter().enumerate().filter(|(_, qids)| **qids > 0);
        let sizes = sizes.map(|(bucket, &qids)| {
            let (from, to) = sizes_of_bucket(bucket);
            QidSizes { from, to, qids }
        });
        let width = CONFIDENCE_BUCKETS as f64;
        let confidences = confidences.iter().enumerate();
        let confidences = confidences.filter(|(_, qids)| **qids > 0);
        let confidences = confidences.map(|(bucket, &qids)| QidConfidences {
            from: bucket as f64 / width,
            to: (bucket + 1) as f64 / width,
            qids,
        });
        Self {
            sizes: sizes.collect(),
            confidences: confidences.collect(),
        }
    }
}
