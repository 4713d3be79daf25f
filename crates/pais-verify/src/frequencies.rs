//! Frequencies of the values of one sensitive column in a group, for the group models that use
//! them: distinct, entropy and recursive (c,l)-diversity, and t-closeness.

use pais_core::model::Decimal;

/// Tolerance of an entropy, in nats, for the rounding of its logarithms.
const ROUNDING: f64 = 1e-9;

/// For each value of a group, the number of rows with it, in descending order.
pub(super) struct Frequencies(Vec<u64>);

impl Frequencies {
    /// Counts the values of a group; `values` must not contain missing ones.
    pub(super) fn count(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        let runs = values.chunk_by(|one, other| one == other);
        let mut counts: Vec<u64> = runs.map(|run| run.len() as u64).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        Self(counts)
    }

    /// Number of distinct values.
    pub(super) fn distinct(&self) -> f64 {
        self.0.len() as f64
    }

    /// The number of equally frequent values that have the same entropy; 0 without values.
    pub(super) fn effective_count(&self) -> f64 {
        let total: u64 = self.0.iter().sum();
        let share = |count: &u64| *count as f64 / total as f64;
        let entropy: f64 = self
            .0
            .iter()
            .map(|count| -share(count) * share(count).ln())
            .sum();
        if total == 0 { 0.0 } else { entropy.exp() }
    }

    /// Whether the entropy is at least that of `l` equally frequent values.
    pub(super) fn has_entropy(&self, l: f64) -> bool {
        !self.0.is_empty() && self.effective_count().ln() >= l.ln() - ROUNDING
    }

    /// Rows with the most frequent value, and rows with the `l`-th most frequent and all after it.
    pub(super) fn head_and_tail(&self, l: usize) -> (u64, u64) {
        let head = self.0.first().copied().unwrap_or(0);
        (head, self.0.iter().skip(l - 1).sum())
    }

    /// Whether the values are recursively (c,l)-diverse.
    pub(super) fn is_recursive(&self, c: Decimal, l: usize) -> bool {
        let (head, tail) = self.head_and_tail(l);
        c.times_exceeds(tail, head)
    }
}

/// The distance of a group's value distribution from that of the table, as an exact fraction
/// (numerator, denominator). The distance is the sum of the positive differences of shares; the
/// denominator is the rows of the group times those of the table. `table_counts` has the rows
/// of the table with each value, and `total` is their sum.
pub(super) fn distance(group: &[u32], table_counts: &[u64], total: u64) -> (u64, u64) {
    let mut values = group.to_vec();
    values.sort_unstable();
    let size = group.len() as u64;
    let surplus = values.chunk_by(|one, other| one == other).map(|run| {
        let expected = table_counts[run[0] as usize] * size;
        (run.len() as u64 * total).saturating_sub(expected)
    });
    (surplus.sum(), size * total)
}

/// Whether a distance is at most *t*.
pub(super) fn is_close((numerator, denominator): (u64, u64), t: Decimal) -> bool {
    !t.is_exceeded_by(numerator, denominator)
}
