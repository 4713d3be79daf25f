//! What released labels cover: codes of raw values, or shares of bins of equal width.

use pais_core::table::Domain;
use pais_core::taxonomy::{Interval, MISSING_LABEL, Scale};

/// Most bins of a numeric column.
const BINS: usize = 20;

/// The codes that a label covers, as a range and whether missing cells of a numeric column are
/// covered too. `None` for a text that is no label of the domain.
pub(super) fn covered(domain: &Domain, label: &str) -> Option<(usize, usize, bool)> {
    match domain {
        Domain::Taxonomy(tree) => {
            let node = tree.node(tree.find(label)?);
            Some((node.first_leaf as usize, node.end_leaf as usize, false))
        }
        Domain::Numeric {
            values, missing, ..
        } if label == MISSING_LABEL => {
            let end = values.len() + usize::from(*missing);
            Some((values.len(), end, false))
        }
        Domain::Numeric { values, scale, .. } => {
            let interval = Interval::parse_on(label, *scale)?;
            let first = values.partition_point(|&value| value < interval.lo);
            let end = values.partition_point(|&value| {
                if interval.closed {
                    value <= interval.hi
                } else {
                    value < interval.hi
                }
            });
            // The outermost interval is above missing cells too.
            let encloses = first == 0 && end == values.len();
            Some((first, end, encloses))
        }
    }
}

/// Bins of equal width. Numbers outside of them, and missing cells, have bins of their own at the
/// end.
pub(super) struct Bins {
    lo: f64,
    hi: f64,
    count: usize,
    scale: Scale,
}

impl Bins {
    /// Bins of a range, one where it is a point.
    pub(super) fn new(lo: f64, hi: f64, scale: Scale) -> Self {
        let count = if hi > lo { BINS } else { 1 };
        Self {
            lo,
            hi,
            count,
            scale,
        }
    }

    /// Number of bins, with the two at the end.
    pub(super) fn len(&self) -> usize {
        self.count + 2
    }

    /// The bin of missing cells.
    pub(super) fn missing(&self) -> usize {
        self.count + 1
    }

    /// The bin of a number.
    pub(super) fn of(&self, value: f64) -> usize {
        if value < self.lo || value > self.hi {
            return self.count;
        }
        let share = (value - self.lo) / (self.hi - self.lo).max(f64::MIN_POSITIVE);
        ((share * self.count as f64) as usize).min(self.count - 1)
    }

    /// Adds a share to the bins that a label covers, in proportion to the widths in common.
    pub(super) fn spread(&self, label: &str, share: f64, into: &mut [f64]) {
        let Some(interval) = Interval::parse_on(label, self.scale) else {
            let bin = if label == MISSING_LABEL {
                self.missing()
            } else {
                self.count
            };
            into[bin] += share;
            return;
        };
        let width = interval.width();
        if width <= 0.0 || self.count == 1 {
            into[self.of(interval.lo)] += share;
            return;
        }
        for (bin, sum) in into.iter_mut().enumerate().take(self.count) {
            let (lo, hi) = self.ends(bin);
            let common = (interval.hi.min(hi) - interval.lo.max(lo)).max(0.0);
            *sum += share * common / width;
        }
    }

    fn ends(&self, bin: usize) -> (f64, f64) {
        let width = (self.hi - self.lo) / self.count as f64;
        let end = |bin: usize| {
            if bin == self.count {
                self.hi
            } else {
                self.lo + width * bin as f64
            }
        };
        (end(bin), end(bin + 1))
    }

    /// The bin as an interval; `None` for the two at the end.
    pub(super) fn label(&self, bin: usize) -> Option<String> {
        if bin >= self.count {
            return None;
        }
        let (lo, hi) = self.ends(bin);
        let interval = if bin + 1 == self.count {
            Interval::closed(lo, hi)
        } else {
            Interval::half_open(lo, hi)
        };
        Some(interval.on(self.scale).to_string())
    }
}
