//! Models of how often the values of one sensitive column stand in a group.

use pais_core::model::{Decimal};

/// How far an entropy may fall short for the rounding of its logarithms.
const ROUNDING: f64 = 1e-9;

/// Rows of a group with each of its values, the most frequent first.
pub(super) struct Frequencies(Vec<u64>);

impl Frequencies {
    /// Counts the values of a group. Missing ones stand for nothing.
    pub(super) fn of(mut values: Vec<u32>) -> Self {
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

    /// How many equally frequent values have the entropy of these.
    pub(super) fn effective(&self) -> f64 {
        let total: u64 = self.0.iter().sum();
        let share = |count: &u64| *count as f64 / total as f64;
        let entropy: f64 = self
            .0
            .iter()
            .map(|count| -share(count) * share(count).ln())
            .sum();
        if total == 0 { 0.0 } else { entropy.exp() }
    }

    /// Whether the entropy is that of `l` equally frequent values.
    pub(super) fn has_entropy(&self, l: f64) -> bool {
        !self.0.is_empty() && self.effective().ln() >= l.ln() - ROUNDING
    }

    /// The most frequent value's rows, and those of the `l`-th and all after it.
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

/// The distance of a group's frequencies from those of the whole table, as a fraction: rows that
/// differ, times the table's, of the rows of both multiplied.
pub(super) fn distance(group: &[u32], whole: &[u64], total: u64) -> (u64, u64) {
    let mut values = group.to_vec();
    values.sort_unstable();
    let size = group.len() as u64;
    let surplus = values.chunk_by(|one, other| one == other).map(|run| {
        let expected = whole[run[0] as usize] * size;
        (run.len() as u64 * total).saturating_sub(expected)
    });
    (surplus.sum(), size * total)
}

/// Whether a distance is at most *t*.
pub(super) fn is_close((differ, of): (u64, u64), t: Decimal) -> bool {
    !t.is_exceeded_by(differ, of)
}
